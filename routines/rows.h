/* Rows and rules of families whose flags are read by name (no params struct).
 *
 * Limits below are what an input file may sensibly say, not what a kernel can do: they turn a slip
 * of the keyboard into a sentence. Whether a size fits the device is decided later. */
#ifndef FIB_ROUTINES_ROWS_H
#define FIB_ROUTINES_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/case.h"
#include "core/routine.h"

enum {
    FIB_LIMIT_BATCH = 1048576,
    FIB_LIMIT_TOKENS = 16777216, /* tokens of a sequence, rows, vocabulary entries */
    FIB_LIMIT_WIDTH = 1048576,   /* hidden sizes */
    FIB_LIMIT_HEADS = 65536,     /* heads, head dimensions, groups, experts, pages of tokens */
    FIB_LIMIT_RANKS = 65536
};

/* Spellings that the reference's parser takes wherever it takes a dtype. */
#define FIB_ANY_DTYPE "bfloat16 float16 float32 float64 fp8_e4m3 fp8_e5m2 nvfp4"

/* Why cases of a routine without kernels become UNSUPPORTED rows. */
#define FIB_NOT_BUILT "not implemented in this version; `fib-bench list` shows what is"

/* Unbound rows; further members follow as designated initialisers. */
#define FIB_ROW_I64(name_, min_, max_, ...)                                                        \
    {                                                                                              \
        .name = (name_), .kind = FIB_OPT_I64, .min = (min_), .max = (max_), __VA_ARGS__            \
    }
#define FIB_ROW_F64(name_, min_, max_, ...)                                                        \
    {                                                                                              \
        .name = (name_), .kind = FIB_OPT_F64, .min_f64 = (min_), .max_f64 = (max_), __VA_ARGS__    \
    }
#define FIB_ROW_CHOICE(name_, choices_, ...)                                                       \
    {                                                                                              \
        .name = (name_), .kind = FIB_OPT_CHOICE, .choices = (choices_), __VA_ARGS__                \
    }
#define FIB_ROW_SWITCH(name_, ...)                                                                 \
    {                                                                                              \
        .name = (name_), .kind = FIB_OPT_SWITCH, __VA_ARGS__                                       \
    }
#define FIB_ROWS_END                                                                               \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* A row of a table of routines that are not built. */
#define FIB_PLANNED(family_, name_, options_, ...)                                                 \
    {                                                                                              \
        .name = (name_), .family = (family_), .unavailable = FIB_NOT_BUILT, .options = (options_), \
        .default_backends = "cuda", __VA_ARGS__                                                    \
    }

#define FIB_FAMILY(name_, summary_, routines_)                                                     \
    {                                                                                              \
        .name = (name_), .summary = (summary_), .routines = (routines_),                           \
        .routine_count = sizeof(routines_) / sizeof((routines_)[0])                                \
    }

/* Rules. Each is satisfied when a value it needs is unset. */
enum fib_status fib_rows_at_most(const struct fib_case *kase, const char *flag, const char *limit,
                                 struct fib_error *err);
enum fib_status fib_rows_multiple_of_flag(const struct fib_case *kase, const char *flag,
                                          const char *divisor, struct fib_error *err);
/* `why` follows the rule in parentheses: "blocks of mxfp4". */
enum fib_status fib_rows_multiple_of(const struct fib_case *kase, const char *flag, int64_t divisor,
                                     const char *why, struct fib_error *err);
enum fib_status fib_rows_exactly(const struct fib_case *kase, const char *flag, int64_t value,
                                 const char *why, struct fib_error *err);

#endif
