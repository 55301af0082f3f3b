// Errors are values in the libraries and words in the commands.
#ifndef KILN_ERR_H
#define KILN_ERR_H

// Exit codes, the same in every program.
enum exit_code {
    EXIT_YES = 0,          // yes, done
    EXIT_NO = 1,           // the answer is no: a rule fails, a build fails
    EXIT_CANNOT_ASK = 2,   // usage, missing file, not an ELF file, no server
    EXIT_CANNOT_KNOW = 3,  // no evidence, verdict undecided
    EXIT_NOT_HERE = 77,    // not possible on this host
    EXIT_INTERRUPTED = 130 // Ctrl-C or TERM
};

// What failed, on what object, why. Filled by libraries, printed by commands.
struct err {
    int code; // an exit_code
    char msg[1000];
};

// Both fill *e and return -1, so that a library can say: return err_set(e, EXIT_NO, "...").
// err_sys adds ": " and the text of errno. A NULL e is allowed.
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_sys(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// The program's name, printed before every message. Set once, at the start of main.
void err_program(const char *name);

// For commands only. All print one line to standard error.
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void warning(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void die(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// Prints e and returns its code, for: return err_report(&e).
int err_report(const struct err *e);

#endif
