/* One case: a routine with all its flags decided. Made by core/plan.h, read by everything after. */
#ifndef FIB_CORE_CASE_H
#define FIB_CORE_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/option.h"

struct fib_routine;
struct fib_text;

struct fib_case {
    const struct fib_routine *routine;
    const struct fib_option_set *options; /* the routine's effective rows */
    const struct fib_value *values;       /* one per row */
    const void *params;                   /* the family's params struct, filled; NULL if unbound */
    struct fib_settings settings;
    int64_t line;          /* line of the test list, 0 on the command line */
    const char *source;    /* test-list path, NULL on the command line */
    const char *line_text; /* the raw line or NULL */
};

/* Value of a flag by name; NULL when the routine has no such flag. */
const struct fib_value *fib_case_value(const struct fib_case *kase, const char *name);
/* The same by type, for routines and adapters; the routine must have the flag. Unset gives
 * FIB_UNSET_I64, NaN, NULL or false; a flag that the routine does not read has its default. Text is
 * the canonical spelling, also of choices and dtypes. */
int64_t fib_case_i64(const struct fib_case *kase, const char *flag);
double fib_case_f64(const struct fib_case *kase, const char *flag);
const char *fib_case_text(const struct fib_case *kase, const char *flag);
bool fib_case_on(const struct fib_case *kase, const char *flag);
bool fib_case_is(const struct fib_case *kase, const char *flag, const char *text);
/* True when the routine reads this flag (its row's `uses`). */
bool fib_case_uses(const struct fib_case *kase, const struct fib_option *option);

/* The command that repeats this case with all its backends: program name, --routine, then every
 * given flag of scope ROUTINE and SHARED, quoted for a POSIX shell, except --model and --zip whose
 * effect is spelled out. `program` e.g. "fib-bench". */
void fib_case_repro(const struct fib_case *kase, const char *program, struct fib_text *out);

/* 16 hex digits over the routine and the canonical values of all flags it uses that shape the
 * result (not tags, outputs or verbosity; flags of ours at their default left out): the same case
 * spelled differently has the same key. */
void fib_case_key(const struct fib_case *kase, char key[17]);

/* "rmsnorm batch_size=32 hidden_size=4096": required and given routine flags, for progress, plan
 * and tables. */
void fib_case_title(const struct fib_case *kase, struct fib_text *out);

#endif
