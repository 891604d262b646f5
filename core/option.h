/* The option table: one row per flag. Parsing, defaults, ranges, help, describe, docs/options.md,
 * sweeps, the CSV back-fill and the repro command are all made from it.
 *
 * Rows of a family live in routines/<family>.c; rows every routine shares and rows of the run live
 * in core/option_shared.c. Names are spelled with '_'; '-' and '_' are the same on input. */
#ifndef FIB_CORE_OPTION_H
#define FIB_CORE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/dtype.h"
#include "core/status.h"

enum fib_option_kind {
    FIB_OPT_I64,      /* integer in [min, max]; field int64_t */
    FIB_OPT_F64,      /* finite number in [min_f64, max_f64]; field double */
    FIB_OPT_CHOICE,   /* one of `choices`; field const char * */
    FIB_OPT_DTYPE,    /* one of `choices`, all of them dtype names; field enum fib_dtype */
    FIB_OPT_TEXT,     /* any text; field const char *; never swept */
    FIB_OPT_SWITCH,   /* present or absent; field bool */
    FIB_OPT_COUNT,    /* how often given (-vv); field int64_t */
    FIB_OPT_WORDS,    /* one or more words up to the next flag; field const char *: joined by ' ' */
    FIB_OPT_I64_LIST  /* one or more integers; field const char *: joined by ' ' */
};

enum fib_option_scope {
    FIB_SCOPE_ROUTINE, /* belongs to a family; an error beside --testlist */
    FIB_SCOPE_SHARED,  /* every routine has it; beside --testlist a default that a line overrides */
    FIB_SCOPE_RUN      /* belongs to the run (outputs, plan); inside a test list ignored with a
                          warning */
};

/* Absent optional integers hold this; absent optional numbers hold NaN; absent texts hold NULL. */
#define FIB_UNSET_I64 INT64_MIN

struct fib_option {
    const char *name;
    const char *short_name;   /* one letter, or NULL */
    const char *negation;     /* a second flag that turns the switch off, or NULL */
    enum fib_option_kind kind;
    enum fib_option_scope scope;
    bool own;                 /* ours: gives way to the reference's flags in prefix matching */
    bool required;
    bool needed;              /* of the run, but no case can be repeated without it */
    bool fold_case;           /* choices compare without case */
    int64_t min, max;         /* FIB_OPT_I64 and I64_LIST; both 0 = no bound stated: any int64 */
    double min_f64, max_f64;  /* FIB_OPT_F64; both 0 = any finite number */
    const char *fallback;     /* default in flag spelling; NULL = unset; switches default to off */
    const char *choices;      /* space separated; for kinds CHOICE and DTYPE; WORDS: NULL */
    const char *uses;         /* routines that read it (space separated); NULL = the whole family.
                                 Given elsewhere it is accepted with a warning and its CSV cell
                                 stays empty */
    const char *value_name;   /* placeholder in help: "N", "PATH"; NULL = made from the kind */
    const char *help;         /* half a line, no full stop */
    bool bound;               /* has a field in the params struct (or struct fib_settings) */
    size_t offset;            /* of that field */
};

/* A routine's own default, requirement or choices for a family row. NULL/false keep the row's. */
struct fib_option_override {
    const char *name;
    const char *fallback, *choices;
    bool required;
};

/* Rows of family parameter tables: the field has the flag's name. */
#define FIB_I64(type, field, ...)                                                                  \
    {.name = #field, .kind = FIB_OPT_I64, .bound = true, .offset = offsetof(type, field),          \
     __VA_ARGS__}
#define FIB_F64(type, field, ...)                                                                  \
    {.name = #field, .kind = FIB_OPT_F64, .bound = true, .offset = offsetof(type, field),          \
     __VA_ARGS__}
#define FIB_CHOICE(type, field, ...)                                                               \
    {.name = #field, .kind = FIB_OPT_CHOICE, .bound = true, .offset = offsetof(type, field),       \
     __VA_ARGS__}
#define FIB_DTYPE(type, field, ...)                                                                \
    {.name = #field, .kind = FIB_OPT_DTYPE, .bound = true, .offset = offsetof(type, field),        \
     __VA_ARGS__}
#define FIB_SWITCH(type, field, ...)                                                               \
    {.name = #field, .kind = FIB_OPT_SWITCH, .bound = true, .offset = offsetof(type, field),       \
     __VA_ARGS__}
#define FIB_TEXT(type, field, ...)                                                                 \
    {.name = #field, .kind = FIB_OPT_TEXT, .bound = true, .offset = offsetof(type, field),         \
     __VA_ARGS__}
#define FIB_WORDS(type, field, ...)                                                                \
    {.name = #field, .kind = FIB_OPT_WORDS, .bound = true, .offset = offsetof(type, field),        \
     __VA_ARGS__}

/* The effective rows of one routine, or of a verb: shared and run rows, then family rows with the
 * routine's overrides applied. Rows keep table order. */
struct fib_option_set {
    struct fib_option *rows;
    size_t count;
};

/* One parsed value. `text` is the canonical spelling: decimal integers, shortest round-trip
 * numbers, "True"/"False", words joined by one space; NULL when unset. */
struct fib_value {
    bool given;       /* on the command line, in the list line, or from --model */
    bool set;         /* has a value (given or default) */
    int64_t i64;
    double f64;
    const char *text;
};

/* Settings every routine shares and settings of the run, bound from the rows of option_shared.c. */
struct fib_settings {
    /* shared with the reference */
    const char *routine;
    int64_t num_iters, dry_run_iters; /* FIB_UNSET_I64 = adaptive */
    bool no_cuda_graph, use_cupti, use_cuda_events;
    bool refcheck, allow_output_mismatch;
    int64_t random_seed;
    int64_t verbose;
    const char *autotune_cache, *case_tag;
    bool generate_repro_command;
    const char *repro_command;
    bool enable_pdl;
    const char *backends; /* words; NULL = the routine's default for the device */
    /* ours, shared */
    const char *also;     /* words, or "none"; NULL = not given */
    const char *model, *zip;
    const char *cache;      /* cold hot both */
    const char *power_mode; /* burst sustained */
    const char *timer;      /* graph isolated cupti events wall; NULL = the device's default */
    bool quick, precise;
    double budget_ms;       /* NaN = by --quick/--precise */
    double max_case_s;      /* NaN = the device's default */
    double timeout_s;
    const char *init;       /* normal uniform zeros ints */
    bool no_check;
    const char *variant;    /* names one of a backend's kernels; NULL = its own choice */
    /* of the run */
    const char *testlist, *output_path, *json_path, *only;
    const char *lib_path; /* folder where libraries are looked for first; NULL = the usual places */
    const char *plugin;   /* paths, joined by ' ' */
    const char *devices;  /* numbers, joined by ' ' */
    bool plan, samples, force, append, resume, no_isolation, quiet, table;
};

/* Rows of struct fib_settings; ends with a row whose name is NULL. */
extern const struct fib_option fib_shared_options[];

/* Finds a flag by spelling (leading dashes already removed): exact, then a prefix unique among the
 * reference's flags, then a prefix unique among all. *negated is set when the row's negation was
 * spelled. On failure the sentence names the flag and `where` ("rmsnorm"), the nearest flag or the
 * candidates of an ambiguous prefix. Returns NULL on failure; err may be NULL (no sentence). */
const struct fib_option *fib_option_find(const struct fib_option_set *set, const char *flag,
                                         const char *where, bool *negated, struct fib_error *err);

/* Exact lookup by name; index or -1. */
int fib_option_index(const struct fib_option_set *set, const char *name);

/* Parses one value text for a row into *value (canonical text in `arena`). The sentence names flag,
 * text given and what is allowed, with the nearest choice for a choice. */
struct fib_arena;
enum fib_status fib_option_parse(const struct fib_option *option, const char *text,
                                 struct fib_arena *arena, struct fib_value *value,
                                 struct fib_error *err);

/* What a row accepts, for help and errors: "1 .. 1048576", "bfloat16 | float16". In arena. */
const char *fib_option_allowed(const struct fib_option *option, struct fib_arena *arena);

/* Writes values into the struct the bound rows point into (params of a family, or settings). */
void fib_option_bind(const struct fib_option *option, const struct fib_value *value, void *target);

#endif
