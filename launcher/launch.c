#include "launcher/launch.h"

#include "common/fs.h"
#include "common/json.h"
#include "common/proc.h"
#include "common/version.h"
#include "elfcheck/coverage.h"
#include "launcher/server.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct knob *const knobs[] = {&knob_text,   &knob_cpus, &knob_numa,
                                    &knob_malloc, &knob_idle, NULL};

static const struct knob *find_knob(const char *name)
{
    for (size_t i = 0; knobs[i]; i++)
        if (!strcmp(knobs[i]->name, name))
            return knobs[i];
    return NULL;
}

// Conditions in the order of the table: text first, since it may replace the file that is run.
static int collect_knobs(struct launch *l, struct err *e)
{
    for (size_t i = 0; i < l->subject.n; i++)
        if (!find_knob(l->subject.conditions[i].knob))
            return err_set(e, EXIT_CANNOT_ASK,
                           "%s: no such condition; there are text, cpus, numa, malloc and idle",
                           l->subject.conditions[i].knob);
    l->knobs = xcalloc(l->subject.n, sizeof *l->knobs);
    for (size_t i = 0; knobs[i]; i++) {
        const struct condition *c = subject_get(&l->subject, knobs[i]->name);
        if (c && strcmp(c->value, "off"))
            l->knobs[l->nknobs++] =
                (struct knob_state){.knob = knobs[i], .value = c->value, .prefer = c->prefer};
    }
    return 0;
}

// A preferred condition that cannot be had is noted and left out; a required one is an error.
static int settle(struct knob_state *s, int rc, const struct err *why, struct err *e)
{
    if (rc == 0)
        return 0;
    if (s->prefer && why->code != EXIT_CANNOT_ASK && why->code != EXIT_INTERRUPTED) {
        s->skipped = true;
        snprintf(s->why, sizeof s->why, "%.390s", why->msg);
        return 0;
    }
    *e = *why;
    return -1;
}

static int prepare_knobs(struct launch *l, struct err *e)
{
    for (size_t i = 0; i < l->nknobs; i++) {
        struct err why = {0};
        if (settle(&l->knobs[i], l->knobs[i].knob->prepare(l, &l->knobs[i], &why), &why, e))
            return -1;
    }
    return 0;
}

// Of a process that is gone nothing can be read back: its end is the news then.
static int verify_knobs(struct launch *l, struct err *e)
{
    for (size_t i = 0; i < l->nknobs; i++) {
        struct err why = {0}, died = {0};
        struct knob_state *s = &l->knobs[i];
        int rc = s->skipped ? 0 : s->knob->verify(l, s, &why);
        if (rc && launch_wait(l, 0.2, &died)) {
            *e = died;
            return -1;
        }
        if (settle(s, rc, &why, e))
            return -1;
    }
    return 0;
}

// A build under a closed home directory: the server's user gets a copy of what it needs.
static int reach_build(struct launch *l, struct err *e)
{
    l->exec = xstrdup(l->build.server);
    if (fs_reachable(l->build.server, l->in.uid, l->in.gid) &&
        (!l->build.messages || fs_reachable(l->build.messages, l->in.uid, l->in.gid)))
        return 0;
    char *base = xasprintf("%s/base", l->in.place);
    int rc = instance_dir(&l->in, base, e);
    char *server = xasprintf("%s/server", base), *share = xasprintf("%s/share", base);
    if (rc == 0)
        rc = fs_copy_file(l->build.server, server, 0755, e);
    if (rc == 0 && l->build.messages)
        rc = fs_copy_tree(l->build.messages, share, e);
    if (rc == 0 && l->in.drop)
        rc = fs_chown_tree(base, l->in.uid, l->in.gid, e);
    if (rc == 0) {
        free(l->exec);
        l->exec = xstrdup(server);
        free(l->build.server);
        free(l->build.basedir);
        l->build.server = server;
        l->build.basedir = base;
        if (l->build.messages) {
            free(l->build.messages);
            l->build.messages = share;
        }
    }
    return rc;
}

// The server's environment is stated, not inherited: a stray LD_PRELOAD of ours must not reach it.
static void base_environment(struct launch *l)
{
    strv_add(&l->env, "PATH=/usr/sbin:/usr/bin:/sbin:/bin");
    strv_add(&l->env, "LANG=C.UTF-8");
    strv_addf(&l->env, "HOME=%s", l->in.place);
    strv_addf(&l->env, "TMPDIR=%s", l->in.tmp);
}

static int plan(struct launch *l, const struct subject *s, struct err *e)
{
    if (build_find(s->build, &l->build, e) || elf_facts_read(l->build.server, &l->elf, e))
        return -1;
    if (subject_parse(s->text, &l->subject, e)) // a copy: the caller may free its own
        return -1;
    return collect_knobs(l, e);
}

static int start_program(struct launch *l, struct err *e)
{
    strv_add(&l->argv, l->exec);
    strv_addv(&l->argv, l->opt.program);
    if (server_spawn(l, e))
        return -1;
    sleep_seconds(0.1);
    if (server_alive(l))
        return 0;
    return err_set(e, EXIT_NO, "%s: the program ended at once (%s); its log is %s", l->subject.text,
                   proc_status_text(l->exit_status), l->in.log);
}

static int start_server(struct launch *l, struct err *e)
{
    if (!l->build.messages && !l->mysql)
        return err_set(e, EXIT_CANNOT_ASK,
                       "%s: no share directory with english/errmsg.sys beside it", l->build.server);
    return server_data(l, e) || server_command(l, e) || server_spawn(l, e) || server_ready(l, e)
               ? -1
               : 0;
}

static void describe(struct launch *l, double seconds)
{
    l->facts = json_new("kiln.launch/1");
    struct coverage c;
    json_t *args = json_array(), *env = json_array(), *conditions = json_array();
    for (size_t i = 0; i < l->argv.n; i++)
        json_array_append_new(args, json_string(l->argv.v[i]));
    for (size_t i = 0; i < l->env.n; i++)
        json_array_append_new(env, json_string(l->env.v[i]));
    for (size_t i = 0; i < l->nknobs; i++) {
        const struct knob_state *s = &l->knobs[i];
        json_t *o = json_pack("{sssssbss}", "knob", s->knob->name, "value", s->value, "required",
                              !s->prefer, "status", s->skipped ? "not had" : "verified");
        if (s->skipped)
            json_object_set_new(o, "why", json_string(s->why));
        if (s->seen)
            json_object_set(o, "seen", s->seen);
        json_array_append_new(conditions, o);
    }
    json_t *more =
        json_pack("{ss ss ss ss ss? si ss ss ss ss sf so so so}", "kiln", KILN_VERSION, "subject",
                  l->subject.text, "server", l->build.server, "version",
                  l->version ? l->version : "", "build_id", l->elf.build_id, "pid", l->pid, "user",
                  l->in.user, "socket", l->opt.program ? "" : l->in.socket, "datadir",
                  l->opt.program ? "" : l->in.data, "log", l->in.log, "start_seconds", seconds,
                  "conditions", conditions, "argv", args, "environment", env);
    json_object_update(l->facts, more);
    json_decref(more);
    if (coverage_read(l->pid, &l->elf, &c, NULL) == 0) {
        json_t *cov = coverage_json(&c);
        json_object_update(l->facts, cov);
        json_decref(cov);
    }
}

static int save_facts(const struct launch *l, struct err *e)
{
    char *path = xasprintf("%s/launch.json", l->in.log_dir);
    int rc = json_save(l->facts, path, e);
    free(path);
    return rc;
}

static int start(struct launch *l, const struct subject *s, struct err *e)
{
    double begin = now_seconds();
    unsigned found, busy;
    if (plan(l, s, e) || journal_restore(&found, &busy, e) || journal_open(&l->journal, e) ||
        instance_make(&l->in, l->opt.user, l->opt.run_dir, l->journal, e) || reach_build(l, e))
        return -1;
    if (!l->opt.program && server_identify(l, e))
        return -1;
    base_environment(l);
    if (prepare_knobs(l, e) || (l->opt.program ? start_program(l, e) : start_server(l, e)) ||
        verify_knobs(l, e))
        return -1;
    describe(l, now_seconds() - begin);
    return save_facts(l, e);
}

static void launch_free(struct launch *l)
{
    for (size_t i = 0; i < l->nknobs; i++) {
        struct knob_state *s = &l->knobs[i];
        if (s->plan && s->knob->release)
            s->knob->release(s);
        free(s->plan);
        json_decref(s->seen);
    }
    free(l->knobs);
    subject_free(&l->subject);
    build_free(&l->build);
    elf_facts_free(&l->elf);
    instance_free(&l->in);
    strv_free(&l->env);
    strv_free(&l->preload);
    strv_free(&l->argv);
    free(l->version);
    free(l->exec);
    json_decref(l->facts);
    free(l);
}

// Ends the server if it runs and undoes everything; keeps the first failure in *e.
static int finish(struct launch *l, struct err *e)
{
    struct err why = {0};
    json_t *stop = json_object();
    int rc = l->pid > 0 ? server_stop(l, stop, &why) : 0;
    if (l->facts && l->pid > 0) {
        json_object_set(l->facts, "stop", stop);
        save_facts(l, NULL);
    }
    json_decref(stop);
    if (rc == 0 && l->opt.data_to && l->facts && fs_copy_tree(l->in.data, l->opt.data_to, &why))
        rc = -1;
    struct err undo = {0};
    if (l->journal && journal_undo(l->journal, &undo)) {
        if (rc == 0)
            why = undo;
        rc = -1;
    }
    if (rc && e)
        *e = why;
    if (l->in.log_dir && !l->opt.run_dir)
        rmdir(l->in.log_dir); // stays unless nothing was written
    launch_free(l);
    return rc;
}

int launch_start(const struct subject *s, const struct launch_options *o, struct launch **out,
                 struct err *e)
{
    struct launch *l = xcalloc(1, sizeof *l);
    l->opt = *o;
    if (start(l, s, e)) {
        struct err undo = {0};
        if (finish(l, &undo)) {
            size_t n = strlen(e->msg);
            snprintf(e->msg + n, sizeof e->msg - n, "; and then: %s", undo.msg);
        }
        return -1;
    }
    *out = l;
    return 0;
}

pid_t launch_pid(const struct launch *l)
{
    return l->pid;
}

const char *launch_socket(const struct launch *l)
{
    return l->in.socket;
}

json_t *launch_facts(const struct launch *l)
{
    return l->facts;
}

int launch_wait(struct launch *l, double seconds, struct err *e)
{
    if (!l->waited)
        l->waited = proc_wait(l->pid, seconds, &l->exit_status) == 1;
    if (!l->waited)
        return 0;
    struct str words = {0};
    server_last_words(l, &words);
    err_set(e, EXIT_NO, "%s: the server ended by itself (%s); its log is %s, its last lines:%s",
            l->subject.text, proc_status_text(l->exit_status), l->in.log, str_text(&words));
    str_free(&words);
    return 1;
}

int launch_verify(struct launch *l, struct err *e)
{
    return launch_wait(l, 0, e) ? -1 : verify_knobs(l, e);
}

int launch_stop(struct launch *l, struct err *e)
{
    struct err died = {0};
    bool dead = launch_wait(l, 0, &died) != 0;
    int rc = finish(l, e);
    if (rc == 0 && dead) {
        *e = died;
        return -1;
    }
    return rc;
}
