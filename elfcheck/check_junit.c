// JUnit's XML as CI servers read it: a test case for each rule, a failure for each that is broken,
// an error for each that cannot be known.
#include "elfcheck/check_print.h"

#include <stdio.h>

// All that is no printable ASCII was replaced when it was read, but paths come from the user.
static void put_xml(const char *s)
{
    for (; *s; s++) {
        if (*s == '&')
            fputs("&amp;", stdout);
        else if (*s == '<')
            fputs("&lt;", stdout);
        else if (*s == '>')
            fputs("&gt;", stdout);
        else if (*s == '"')
            fputs("&quot;", stdout);
        else
            putchar(*s >= ' ' && *s <= '~' ? *s : '?');
    }
}

static void put_attribute(const char *name, const char *value)
{
    printf(" %s=\"", name);
    put_xml(value);
    printf("\"");
}

static void put_case(const struct check_output *o, const struct rule_result *r)
{
    char *name = xasprintf("%s=%s", r->rule, r->value);
    printf("    <testcase");
    put_attribute("classname", o->c->elf.path);
    put_attribute("name", name);
    printf(">\n");
    free(name);
    if (r->answer == ANSWER_YES || r->severity != SEVERITY_ERROR) {
        printf("      <system-out>");
        put_xml(r->evidence);
        printf("</system-out>\n");
    } else {
        const char *tag = r->answer == ANSWER_NO ? "failure" : "error";
        printf("      <%s", tag);
        put_attribute("message", r->evidence);
        printf(">");
        put_xml(r->advice);
        printf("</%s>\n", tag);
    }
    printf("    </testcase>\n");
}

static size_t count(const struct rule_results *r, enum answer a)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += r->v[i].severity == SEVERITY_ERROR && r->v[i].answer == a;
    return n;
}

void check_print_junit(const struct check_output *o)
{
    printf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite");
    put_attribute("name", "kiln check");
    printf(" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n", o->rules->n,
           count(o->rules, ANSWER_NO), count(o->rules, ANSWER_CANNOT_KNOW));
    for (size_t i = 0; i < o->rules->n; i++)
        put_case(o, &o->rules->v[i]);
    printf("  </testsuite>\n</testsuites>\n");
}
