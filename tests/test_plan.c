/* Command lines: spelling, sweeps, models, backends, contradictions, and every sentence. */
#include "tests/toy.h"

#include <math.h>

static void assert_one_warning(const char *line, const char *warning)
{
    struct fib_plan *plan = toy_plan(line);
    assert_int_equal(plan->warning_count, 1);
    assert_string_equal(plan->warnings[0], warning);
    fib_plan_free(&plan);
}

static void one_case(void **state)
{
    (void)state;
    struct fib_plan *plan = toy_plan("--routine blend --rows 32 --cols=64");
    assert_int_equal(plan->count, 1);
    assert_int_equal(plan->bad_line_count, 0);
    assert_int_equal(plan->warning_count, 0);
    assert_null(plan->items[0].error);
    assert_null(plan->items[0].line_text);
    assert_int_equal(plan->items[0].line, 0);
    assert_string_equal(plan->items[0].routine_name, "blend");
    const struct fib_case *kase = plan->items[0].kase;
    assert_string_equal(kase->routine->name, "blend");
    assert_string_equal(kase->settings.routine, "blend");
    assert_null(kase->source);
    const struct toy_params *params = kase->params;
    assert_int_equal(params->rows, 32);
    assert_int_equal(params->cols, 64);
    assert_true(params->depth == FIB_UNSET_I64);
    assert_float_equal(params->alpha, 1e-6, 0.0);
    assert_string_equal(params->mode, "Plain");
    assert_int_equal(params->input_dtype, FIB_BF16);
    assert_true(params->keep);
    fib_plan_free(&plan);
    assert_null(plan);
    fib_plan_free(&plan);
}

static void default_settings(void **state)
{
    (void)state;
    struct fib_plan *plan = toy_plan("-R scale --rows 1 --cols 1");
    const struct fib_settings *settings = &plan->settings;
    assert_true(settings->num_iters == FIB_UNSET_I64);
    assert_true(settings->dry_run_iters == FIB_UNSET_I64);
    assert_int_equal(settings->random_seed, 42);
    assert_int_equal(settings->verbose, 0);
    assert_null(settings->backends);
    assert_null(settings->timer);
    assert_string_equal(settings->cache, "cold");
    assert_string_equal(settings->power_mode, "burst");
    assert_string_equal(settings->init, "normal");
    assert_true(isnan(settings->budget_ms));
    assert_true(isnan(settings->max_case_s));
    assert_float_equal(settings->timeout_s, 300.0, 0.0);
    assert_false(settings->no_check || settings->plan || settings->force || settings->refcheck);
    fib_plan_free(&plan);
}

static void short_flags(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "-R scale --rows 1 --cols 1 -n 5 -d 0 -v -v",
        "-Rscale --rows 1 --cols 1 -n5 -d0 -vv",
        "-R=scale --rows 1 --cols 1 -n=5 -d=0 --verbose --verbose",
        "-vvn5 -vvvvd0 --rows 1 --cols 1 -R scale --verb",
    };
    for (size_t i = 0; i < 4; i++) {
        struct fib_plan *plan = toy_plan(lines[i]);
        assert_int_equal(plan->settings.num_iters, 5);
        assert_int_equal(plan->settings.dry_run_iters, 0);
        assert_int_equal(plan->settings.verbose, i < 3 ? 2 : 7);
        fib_plan_free(&plan);
    }
}

static void spelling_of_flags(void **state)
{
    (void)state;
    struct fib_plan *plan = toy_plan("--rout scale --row 4 --co 5 --input-dtype float16 "
                                     "--parts -1 2,3 --names a b,c --depth -7 --note=-x "
                                     "--no-keep --rows 6");
    const struct toy_params *params = toy_params_of(plan, 0);
    assert_int_equal(params->rows, 6); /* the last one wins */
    assert_int_equal(params->cols, 5);
    assert_int_equal(params->input_dtype, FIB_F16);
    assert_string_equal(params->parts, "-1 2 3");
    assert_string_equal(params->names, "a b c");
    assert_int_equal(params->depth, -7);
    assert_string_equal(params->note, "-x");
    assert_false(params->keep);
    fib_plan_free(&plan);
}

static void values_are_not_flags(void **state)
{
    (void)state;
    toy_fails("--routine scale --rows 1 --cols", "--cols needs a value: 1 .. 65536");
    toy_fails("--routine scale --rows --cols 1", "--rows needs a value: 1 .. 1048576");
    toy_fails("--routine scale --note --rows 1", "--note needs a value: any text");
    toy_fails("--routine scale --names --rows 1", "--names needs at least one word");
    toy_fails("--routine scale --flip=yes", "--flip takes no value, was given yes");
    toy_fails("--routine scale -v=3", "--verbose takes no value, was given 3");
    toy_fails("--routine scale --rows 1 foo", "unexpected word 'foo'; flags start with --");
    toy_fails("--routine scale --flip foo", "unexpected word 'foo'; flags start with --");
    toy_fails("--routine scale ''", "unexpected word ''; flags start with --");
    toy_fails("--routine scale -5", "unexpected word '-5'; flags start with --");
    toy_fails("--routine scale --", "unexpected word '--'; flags start with --");
    toy_fails("--routine scale -x", "unknown flag -x for scale");
    toy_fails("--routine scale --rws 1", "unknown flag --rws for scale; did you mean --rows?");
}

static void missing_parts(void **state)
{
    (void)state;
    toy_fails("", "--routine NAME or --testlist PATH is needed; `fib-bench list` shows the "
                  "routines");
    toy_fails("--rows 1", "--routine NAME or --testlist PATH is needed; `fib-bench list` shows the "
                          "routines");
    toy_fails("--routine", "--routine needs a value; `fib-bench list` shows the routines");
    toy_fails("--routine blnd", "unknown routine blnd; did you mean blend?");
    toy_fails("--routine scale --rows 1", "--cols is required for scale");
    toy_fails("--routine deep", "--rows is required for deep, and so is --cols, --depth");
}

static void bad_values(void **state)
{
    (void)state;
    toy_fails("--routine scale --rows 0 --cols 1", "--rows 0: must be 1 .. 1048576");
    toy_fails("--routine scale --rows 1 --cols 1 -n 0", "--num_iters 0: must be 1 .. 1000000");
    toy_fails("--routine scale --rows 1 --cols 1 --budget_ms 0.5",
              "--budget_ms 0.5: must be 1.0 .. 600000.0");
    toy_fails("--routine scale --rows 1 --cols 1 --timeout_s 0",
              "--timeout_s 0: must be 0.1 .. 1000000.0");
    toy_fails("--routine scale --rows 1 --cols 1 --timer clock",
              "--timer clock: must be graph | isolated | cupti | events | wall");
    toy_fails("--routine deep --rows 1 --cols 1 --depth 1 --input_dtype bfloat16",
              "--input_dtype bfloat16: must be float16 | float32; did you mean float16?");
    toy_fails("--routine blend --rows 1 --cols 12", "--cols 12: must be a multiple of 8");
}

/* ---- sweeps ---- */

static void sweep_is_cartesian_last_fastest(void **state)
{
    (void)state;
    struct fib_plan *plan = toy_plan("--routine scale --cols 8,16 --rows 1:4:*2");
    static const int64_t expected[6][2] = {{8, 1}, {8, 2}, {8, 4}, {16, 1}, {16, 2}, {16, 4}};
    assert_int_equal(plan->count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(toy_params_of(plan, i)->cols, expected[i][0]);
        assert_int_equal(toy_params_of(plan, i)->rows, expected[i][1]);
    }
    fib_plan_free(&plan);
}

static void sweep_covers_shared_flags_and_choices(void **state)
{
    (void)state;
    struct fib_plan *plan = toy_plan(
        "--routine scale --rows 1 --cols 8 --cache cold,hot --input_dtype bfloat16,float16");
    assert_int_equal(plan->count, 4);
    assert_string_equal(plan->items[1].kase->settings.cache, "cold");
    assert_int_equal(toy_params_of(plan, 1)->input_dtype, FIB_F16);
    assert_string_equal(plan->items[2].kase->settings.cache, "hot");
    assert_string_equal(plan->settings.cache, "cold");
    fib_plan_free(&plan);
}

static void zip_walks_together(void **state)
{
    (void)state;
    struct fib_plan *plan =
        toy_plan("--routine scale --rows 1,2 --depth 5,6 --cols 8,16 --zip rows,cols");
    static const int64_t expected[4][3] = {{1, 8, 5}, {1, 8, 6}, {2, 16, 5}, {2, 16, 6}};
    assert_int_equal(plan->count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(toy_params_of(plan, i)->rows, expected[i][0]);
        assert_int_equal(toy_params_of(plan, i)->cols, expected[i][1]);
        assert_int_equal(toy_params_of(plan, i)->depth, expected[i][2]);
    }
    fib_plan_free(&plan);
    plan = toy_plan("--routine scale --rows 1 --cols 8 --zip rows cols");
    assert_int_equal(plan->count, 1);
    fib_plan_free(&plan);
}

static void zip_refuses(void **state)
{
    (void)state;
    toy_fails("--routine scale --rows 1,2,3 --cols 8,16 --zip rows,cols",
              "--zip needs flags with equally many values: --rows has 3, --cols has 2");
    toy_fails("--routine scale --rows 1,2,3 --cols 8 --zip rows,depth",
              "--zip needs flags with equally many values: --rows has 3, --depth has 1");
    toy_fails("--routine scale --rows 1 --cols 8 --zip rws,cols",
              "unknown flag --rws for scale; did you mean --rows?");
    toy_fails("--routine scale --rows 1 --cols 8 --zip note", "--zip: --note cannot be swept");
    toy_fails("--routine scale --rows 1,2 --model pair-7b --zip rows,cols",
              "--zip: --cols is already walked together with others by --model");
}

static void sweeps_are_limited(void **state)
{
    (void)state;
    toy_fails("--routine scale --cols 8 --rows 1:1000000000",
              "--rows 1:1000000000: more than 100000 values");
    toy_fails("--routine scale --cols 1:60000 --rows 1:60000 --depth 1:99999",
              "the sweeps multiply to more than 100000 cases");
}

/* ---- models, filters ---- */

static void model_fills_what_is_not_given(void **state)
{
    (void)state;
    struct fib_plan *plan = toy_plan("--routine scale --rows 3 --model TINY-1b");
    assert_int_equal(plan->count, 1);
    assert_int_equal(toy_params_of(plan, 0)->cols, 64);
    assert_true(fib_case_value(plan->items[0].kase, "cols")->given);
    fib_plan_free(&plan);
    plan = toy_plan("--routine scale --rows 3 --model tiny-1b --cols 7");
    assert_int_equal(toy_params_of(plan, 0)->cols, 7);
    fib_plan_free(&plan);
}

static void model_sweeps_zipped_groups(void **state)
{
    (void)state;
    struct fib_plan *plan = toy_plan("--routine scale --rows 1,2 --model pair-7b");
    static const int64_t expected[4][3] = {{64, 2, 1}, {64, 2, 2}, {128, 3, 1}, {128, 3, 2}};
    assert_int_equal(plan->count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(toy_params_of(plan, i)->cols, expected[i][0]);
        assert_int_equal(toy_params_of(plan, i)->depth, expected[i][1]);
        assert_int_equal(toy_params_of(plan, i)->rows, expected[i][2]);
    }
    fib_plan_free(&plan);
    /* one given flag of the group replaces it: depth stays unset */
    plan = toy_plan("--routine scale --rows 1 --model pair-7b --cols 24");
    assert_int_equal(plan->count, 1);
    assert_int_equal(toy_params_of(plan, 0)->cols, 24);
    assert_true(toy_params_of(plan, 0)->depth == FIB_UNSET_I64);
    fib_plan_free(&plan);
}

static void model_flags_of_no_use_are_left_out(void **state)
{
    (void)state;
    struct fib_plan *plan = toy_plan("--routine scale --rows 1 --model blendy");
    assert_int_equal(plan->warning_count, 0);
    assert_false(fib_case_value(plan->items[0].kase, "alpha")->given);
    fib_plan_free(&plan);
    plan = toy_plan("--routine blend --rows 1 --model blendy");
    assert_float_equal(toy_params_of(plan, 0)->alpha, 0.5, 0.0);
    fib_plan_free(&plan);
}

static void model_refuses(void **state)
{
    (void)state;
    toy_fails("--routine scale --rows 1 --model tiny-2b",
              "--model tiny-2b: unknown model, nearest is tiny-1b; `fib-bench list --models` shows "
              "all");
    toy_fails("--routine scale --rows 1 --model zzz",
              "--model zzz: unknown model; `fib-bench list --models` shows all");
    toy_fails("--routine scale --rows 1 --model other-7b",
              "--model other-7b: no shapes for scale (family toy); `fib-bench list --models` shows "
              "all");
}

static void only_filters_before_the_check(void **state)
{
    (void)state;
    /* 12 is illegal for blend, but filtered out first */
    struct fib_plan *plan =
        toy_plan("--routine blend --rows 1,2 --cols 8,12,16 --only 'cols != 12 and rows == 2'");
    assert_int_equal(plan->count, 2);
    assert_int_equal(plan->filtered_count, 4);
    assert_int_equal(toy_params_of(plan, 1)->cols, 16);
    fib_plan_free(&plan);
    plan = toy_plan("--routine blend --rows 1 --cols 8 --only 'rows == 7'");
    assert_int_equal(plan->count, 0);
    assert_int_equal(plan->filtered_count, 1);
    fib_plan_free(&plan);
    toy_fails("--routine blend --rows 1 --cols 8 --only 'rws == 7'",
              "--only: no routine has a flag rws; did you mean rows?");
}

/* ---- backends ---- */

static void backends_keep_their_order(void **state)
{
    (void)state;
    struct fib_plan *plan =
        toy_plan("--routine scale --rows 1 --cols 1 --backends fa2 cpu,prims_ts --also cuda");
    assert_string_equal(plan->settings.backends, "fa2 cpu prims-ts");
    assert_string_equal(plan->items[0].kase->settings.also, "cuda");
    assert_int_equal(plan->warning_count, 0);
    fib_plan_free(&plan);
    plan = toy_plan("--routine scale --rows 1 --cols 1 --backends plugin:mine --also none");
    assert_string_equal(plan->settings.backends, "plugin:mine");
    assert_string_equal(plan->settings.also, "none");
    fib_plan_free(&plan);
}

static void backends_are_mapped_and_announced(void **state)
{
    (void)state;
    assert_one_warning("--routine scale --rows 1 --cols 1 --backends trtllm-gen-native",
                       "backend trtllm-gen-native is now called trtllm-native");
    assert_one_warning("--routine scale --rows 1 --cols 1 --backends cpu cuda cpu",
                       "--backends names cpu more than once");
    toy_fails("--routine scale --rows 1 --cols 1 --backends fa9",
              "--backends: unknown backend fa9, nearest is fa2; `fib-bench list` shows all");
    toy_fails("--routine scale --rows 1 --cols 1 --also zzz",
              "--also: unknown backend zzz; `fib-bench list` shows all");
    toy_fails("--routine scale --rows 1 --cols 1 --also none cpu",
              "--also none stands alone, was given with others: 'none cpu'");
    toy_fails("--routine scale --rows 1 --cols 1 --backends none",
              "--backends: unknown backend none; `fib-bench list` shows all");
}

static void backends_are_limited(void **state)
{
    (void)state;
    char line[2000] = "--routine scale --rows 1 --cols 1 --backends";
    for (int i = 0; i < 65; i++)
        strcat(line, " plugin:x");
    toy_fails(line, "--backends: more than 64 backends");
}

static void contradictions(void **state)
{
    (void)state;
    toy_fails("--routine scale --rows 1 --cols 1 --quick --precise",
              "--quick and --precise exclude each other");
    toy_fails("--routine scale --rows 1 --cols 1 --append --force",
              "--force and --append exclude each other");
    assert_one_warning("--routine scale --rows 1 --cols 1 --no_check --refcheck",
                       "--no_check wins over --refcheck: results will be UNCHECKED");
    assert_one_warning("--routine scale --rows 1 --cols 1 --timer wall --use_cuda_events",
                       "--timer wins over --use_cuda_events");
}

static void useless_flags_are_announced(void **state)
{
    (void)state;
    assert_one_warning("--routine scale --rows 1,2 --cols 1 --alpha 1",
                       "--alpha has no effect on scale");
    /* And really have none: no sweep, no other value for those who read it by name. */
    struct fib_plan *swept = toy_plan("--routine scale --rows 1 --cols 1 --alpha 1,2");
    assert_int_equal(swept->count, 1);
    assert_true(fib_case_f64(swept->items[0].kase, "alpha") == 1e-6);
    fib_plan_free(&swept);
    toy_fails("--routine scale --rows 1 --cols 1 --alpha 3", "--alpha 3: must be 0.0 .. 2.0");
    struct fib_plan *plan = toy_plan("--routine blend --rows 1 --cols 8 --alpha 1");
    assert_int_equal(plan->warning_count, 0);
    fib_plan_free(&plan);
}

static void unbuilt_routines_parse(void **state)
{
    (void)state;
    struct fib_plan *plan = toy_plan("--routine absent --rows 3");
    assert_null(plan->items[0].kase->params);
    assert_string_equal(toy_text(plan, 0, "routing_method"), "a");
    fib_plan_free(&plan);
    toy_fails("--routine absent --rows 9", "--rows 9: must be 1 .. 8");
}

static void control_characters_stay_out(void **state)
{
    (void)state;
    toy_fails("--routine scale --rows 'a\nb' --cols 1",
              "--rows a?b: must be an integer, 1 .. 1048576");
}

/* ---- the real registry ---- */

static void assert_real_fails(const char *line, const char *part)
{
    struct fib_error err = {0};
    assert_int_equal(test_plan_fails(line, &err), FIB_ERR_USAGE);
    assert_contains(err.text, part);
}

static void case_53_impossible_shapes(void **state)
{
    (void)state;
#define DECODE                                                                                     \
    "--routine BatchDecodeWithPagedKVCacheWrapper --batch_size 2 --s_qo 1 --s_kv 64 "              \
    "--num_qo_heads 8 --num_kv_heads 2 --head_dim_qk 128 --head_dim_vo 128 "
    struct fib_plan *plan = test_plan(DECODE "--page_size 16");
    fib_plan_free(&plan);
    assert_real_fails(DECODE, "--page_size");
    assert_real_fails(DECODE "--page_size 0", "--page_size 0: ");
    assert_real_fails(DECODE "--page_size -1", "--page_size -1: ");
    assert_real_fails(DECODE "--page_size 16 --num_kv_heads 0", "--num_kv_heads 0: ");
    assert_real_fails(DECODE "--page_size 16 --num_qo_heads 7", "--num_qo_heads 7");
    assert_real_fails(DECODE "--page_size 16 --head_dim_qk 0", "--head_dim_qk 0: ");
    assert_real_fails(DECODE "--page_size 16 --s_qo 128", "--s_qo 128");
    assert_real_fails(DECODE "--page_size 16 --backends fa9", "unknown backend fa9");
    assert_real_fails(DECODE "--page_size 16 --num_iter5 3", "unknown flag --num_iter5");
    plan = test_plan("--routine BatchPrefillWithRaggedKVCacheWrapper --batch_size 2 --s_qo 64 "
                     "--s_kv 64 --num_qo_heads 8 --num_kv_heads 2 --head_dim_qk 128 "
                     "--head_dim_vo 128"); /* ragged: no pages needed */
    fib_plan_free(&plan);
#undef DECODE
}

static void real_routines_parse(void **state)
{
    (void)state;
    struct fib_plan *plan = test_plan("--routine rmsnorm --batch_size 32 --hidden_size 4096");
    assert_int_equal(plan->count, 1);
    assert_non_null(plan->items[0].kase->params);
    fib_plan_free(&plan);
    assert_real_fails("--routine rmsnom --batch_size 1",
                      "unknown routine rmsnom; did you mean rmsnorm?");
    assert_real_fails("--routine rmsnorm --batch_size 32 --hiden_size 4096",
                      "unknown flag --hiden_size for rmsnorm; did you mean --hidden_size?");
    assert_real_fails("--routine rmsnorm --batch_size 32", "--hidden_size is required for rmsnorm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_case),
        cmocka_unit_test(default_settings),
        cmocka_unit_test(short_flags),
        cmocka_unit_test(spelling_of_flags),
        cmocka_unit_test(values_are_not_flags),
        cmocka_unit_test(missing_parts),
        cmocka_unit_test(bad_values),
        cmocka_unit_test(sweep_is_cartesian_last_fastest),
        cmocka_unit_test(sweep_covers_shared_flags_and_choices),
        cmocka_unit_test(zip_walks_together),
        cmocka_unit_test(zip_refuses),
        cmocka_unit_test(sweeps_are_limited),
        cmocka_unit_test(model_fills_what_is_not_given),
        cmocka_unit_test(model_sweeps_zipped_groups),
        cmocka_unit_test(model_flags_of_no_use_are_left_out),
        cmocka_unit_test(model_refuses),
        cmocka_unit_test(only_filters_before_the_check),
        cmocka_unit_test(backends_keep_their_order),
        cmocka_unit_test(backends_are_mapped_and_announced),
        cmocka_unit_test(backends_are_limited),
        cmocka_unit_test(contradictions),
        cmocka_unit_test(useless_flags_are_announced),
        cmocka_unit_test(unbuilt_routines_parse),
        cmocka_unit_test(control_characters_stay_out),
        cmocka_unit_test(case_53_impossible_shapes),
        cmocka_unit_test(real_routines_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
