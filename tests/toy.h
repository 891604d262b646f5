/* A registry of made-up routines, for tests of the command line that must not change when a real
 * family does. */
#ifndef FIB_TESTS_TOY_H
#define FIB_TESTS_TOY_H

#include "tests/support.h"

#include <string.h>

#include "core/memory.h"
#include "tests/program.h"

struct toy_params {
    int64_t rows, cols, depth;
    double alpha;
    const char *mode;
    enum fib_dtype input_dtype, out_dtype;
    bool flip, keep;
    const char *parts, *names, *note;
};

static const struct fib_option toy_options[] = {
    FIB_I64(struct toy_params, rows, .min = 1, .max = 1048576, .required = true),
    FIB_I64(struct toy_params, cols, .min = 1, .max = 65536, .required = true),
    FIB_I64(struct toy_params, depth, .help = "layers"),
    FIB_F64(struct toy_params, alpha, .min_f64 = 0.0, .max_f64 = 2.0, .fallback = "1e-6",
            .uses = "blend"),
    FIB_CHOICE(struct toy_params, mode, .choices = "Plain Twisted", .fallback = "Plain",
               .fold_case = true),
    FIB_DTYPE(struct toy_params, input_dtype, .choices = "bfloat16 float16",
              .fallback = "bfloat16"),
    FIB_DTYPE(struct toy_params, out_dtype, .choices = "bfloat16 float16"),
    FIB_SWITCH(struct toy_params, flip, .help = "mirror"),
    FIB_SWITCH(struct toy_params, keep, .negation = "no_keep", .fallback = "True"),
    {.name = "parts",
     .kind = FIB_OPT_I64_LIST,
     .min = -4,
     .max = 100,
     .bound = true,
     .offset = offsetof(struct toy_params, parts)},
    FIB_WORDS(struct toy_params, names, .help = "names"),
    FIB_TEXT(struct toy_params, note, .help = "remark"),
    {.name = NULL},
};

static const struct fib_option_override toy_overrides[] = {
    {.name = "depth", .required = true},
    {.name = "input_dtype", .fallback = "float16", .choices = "float16 float32"},
    {.name = NULL},
};

static enum fib_status toy_check(const struct fib_case *kase, struct fib_error *err)
{
    const struct toy_params *params = kase->params;
    if (params->cols % 8)
        return fib_fail(err, FIB_ERR_USAGE, "--cols %lld: must be a multiple of 8",
                        (long long)params->cols);
    return FIB_OK;
}

static const struct fib_routine toy_routines[] = {
    {.name = "scale",
     .family = "toy",
     .params_size = sizeof(struct toy_params),
     .options = toy_options},
    {.name = "blend",
     .family = "toy",
     .params_size = sizeof(struct toy_params),
     .options = toy_options,
     .check = toy_check},
    {.name = "deep",
     .family = "toy",
     .params_size = sizeof(struct toy_params),
     .options = toy_options,
     .overrides = toy_overrides},
};
static const struct fib_family toy_family = {
    .name = "toy", .routines = toy_routines, .routine_count = 3};

/* A family without a params struct whose kernels do not exist. */
static const struct fib_option bare_options[] = {
    {.name = "rows", .kind = FIB_OPT_I64, .min = 1, .max = 8},
    {.name = "routing_method", .kind = FIB_OPT_CHOICE, .choices = "a b", .fallback = "a"},
    {.name = NULL},
};
static const struct fib_routine bare_routines[] = {
    {.name = "absent", .family = "bare", .unavailable = "not built", .options = bare_options},
};
static const struct fib_family bare_family = {
    .name = "bare", .routines = bare_routines, .routine_count = 1};

static const struct fib_family *const toy_families[] = {&toy_family, &bare_family};

static const struct fib_label toy_labels[] = {
    {.name = "cpu"},
    {.name = "cuda"},
    {.name = "fa2"},
    {.name = "trtllm-native"},
    {.name = "prims-ts"},
    {.name = "trtllm-gen-native", .alias_of = "trtllm-native", .alias_warns = true},
    {.name = "prims_ts", .alias_of = "prims-ts"},
};

static const struct fib_model toy_models[] = {
    {.name = "tiny-1b", .family = "toy", .words = "--cols 64"},
    {.name = "pair-7b", .family = "toy", .words = "--cols 64,128 --depth 2,3 --zip cols,depth"},
    {.name = "other-7b", .family = "bare", .words = "--rows 2"},
    {.name = "blendy", .family = "toy", .words = "--cols 64 --alpha 0.5"},
};

static inline const struct fib_registry *toy_registry(void)
{
    static const struct fib_registry registry = {
        .families = toy_families,
        .family_count = 2,
        .labels = toy_labels,
        .label_count = sizeof(toy_labels) / sizeof(toy_labels[0]),
        .models = toy_models,
        .model_count = sizeof(toy_models) / sizeof(toy_models[0]),
        .program = "fib-bench",
    };
    return &registry;
}

static inline enum fib_status toy_parse(const char *line, struct fib_plan **plan,
                                        struct fib_error *err)
{
    return program_parse(toy_registry(), line, plan, err);
}

static inline struct fib_plan *toy_plan(const char *line)
{
    struct fib_plan *plan = NULL;
    struct fib_error err = {0};
    if (toy_parse(line, &plan, &err) != FIB_OK)
        fail_msg("%s: %s", line, err.text);
    return plan;
}

/* The line must fail with exactly this sentence. */
static inline void toy_fails(const char *line, const char *sentence)
{
    struct fib_plan *plan = NULL;
    struct fib_error err = {0};
    if (toy_parse(line, &plan, &err) == FIB_OK) {
        fib_plan_free(&plan);
        fail_msg("parsed although it should not: %s", line);
    }
    assert_null(plan);
    assert_string_equal(err.text, sentence);
}

static inline const char *toy_text(const struct fib_plan *plan, size_t item, const char *flag)
{
    const struct fib_value *value = fib_case_value(plan->items[item].kase, flag);
    assert_non_null(value);
    return value->set ? value->text : NULL;
}

static inline const struct toy_params *toy_params_of(const struct fib_plan *plan, size_t item)
{
    return plan->items[item].kase->params;
}

#endif
