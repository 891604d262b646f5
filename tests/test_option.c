/* Spelling of flags, values of every kind, and the sentences for what is not allowed. */
#include "tests/toy.h"

#include <float.h>
#include <locale.h>
#include <math.h>

#include "core/suggest.h"

static int make_set(void **state)
{
    *state = fib_arena_create();
    return 0;
}

static int free_set(void **state)
{
    struct fib_arena *arena = *state;
    fib_arena_free(&arena);
    return 0;
}

static const struct fib_routine *toy(const char *name)
{
    return fib_registry_routine(toy_registry(), name);
}

static void assert_finds(void **state, const char *routine, const char *flag, const char *name)
{
    const struct fib_option_set set = fib_registry_options(toy(routine), *state);
    struct fib_error err = {0};
    bool negated = true;
    const struct fib_option *option = fib_option_find(&set, flag, routine, &negated, &err);
    if (!option)
        fail_msg("%s: %s", flag, err.text);
    assert_string_equal(option->name, name);
    assert_false(negated);
}

static void assert_finds_not(void **state, const char *routine, const char *flag,
                             const char *sentence)
{
    const struct fib_option_set set = fib_registry_options(toy(routine), *state);
    struct fib_error err = {0};
    bool negated = false;
    assert_null(fib_option_find(&set, flag, routine, &negated, &err));
    assert_int_equal(err.status, FIB_ERR_USAGE);
    assert_string_equal(err.text, sentence);
}

static void finds_exact_and_dashed(void **state)
{
    assert_finds(state, "scale", "input_dtype", "input_dtype");
    assert_finds(state, "scale", "input-dtype", "input_dtype");
    assert_finds(state, "scale", "no-cuda_graph", "no_cuda_graph");
}

static void prefix_prefers_the_reference(void **state)
{
    assert_finds(state, "scale", "no_c", "no_cuda_graph"); /* not our no_check */
    assert_finds(state, "scale", "ca", "case_tag");        /* not our cache */
    assert_finds(state, "scale", "cac", "cache");          /* only ours is left */
    assert_finds(state, "scale", "t", "testlist");         /* not timer, timeout_s, table */
    assert_finds(state, "scale", "timer", "timer");
    assert_finds(state, "scale", "routin", "routine");
}

static void ambiguous_prefix_lists_candidates(void **state)
{
    assert_finds_not(state, "scale", "time",
                     "--time is ambiguous for scale: it may be --timer, --timeout_s");
    assert_finds_not(state, "scale", "use",
                     "--use is ambiguous for scale: it may be --use_cupti, --use_cuda_events");
    assert_finds_not(state, "absent", "rout",
                     "--rout is ambiguous for absent: it may be --routine, --routing_method");
}

static void unknown_flag_suggests(void **state)
{
    assert_finds_not(state, "scale", "rws", "unknown flag --rws for scale; did you mean --rows?");
    assert_finds_not(state, "scale", "num_iter5",
                     "unknown flag --num_iter5 for scale; did you mean --num_iters?");
    assert_finds_not(state, "scale", "zzzzzzzz", "unknown flag --zzzzzzzz for scale");
    assert_finds_not(state, "scale", "", "unknown flag --'' for scale");
}

static void negation_is_told(void **state)
{
    const struct fib_option_set set = fib_registry_options(toy("scale"), *state);
    struct fib_error err = {0};
    bool negated = false;
    const struct fib_option *option = fib_option_find(&set, "no-keep", "scale", &negated, &err);
    assert_non_null(option);
    assert_string_equal(option->name, "keep");
    assert_true(negated);
}

static void overrides_apply(void **state)
{
    const struct fib_option_set plain = fib_registry_options(toy("scale"), *state);
    const struct fib_option_set deep = fib_registry_options(toy("deep"), *state);
    const int depth = fib_option_index(&deep, "depth");
    const int dtype = fib_option_index(&deep, "input_dtype");
    assert_true(deep.rows[depth].required);
    assert_false(plain.rows[depth].required);
    assert_string_equal(deep.rows[dtype].fallback, "float16");
    assert_string_equal(deep.rows[dtype].choices, "float16 float32");
    assert_string_equal(plain.rows[dtype].fallback, "bfloat16");
    assert_int_equal(fib_option_index(&deep, "nothing"), -1);
}

/* ---- values ---- */

static struct fib_value parse(void **state, const char *flag, const char *text)
{
    const struct fib_option_set set = fib_registry_options(toy("scale"), *state);
    struct fib_value value = {0};
    struct fib_error err = {0};
    if (fib_option_parse(&set.rows[fib_option_index(&set, flag)], text, *state, &value, &err) !=
        FIB_OK)
        fail_msg("%s %s: %s", flag, text, err.text);
    assert_true(value.set);
    return value;
}

static void refuse(void **state, const char *flag, const char *text, const char *sentence)
{
    const struct fib_option_set set = fib_registry_options(toy("scale"), *state);
    struct fib_value value = {0};
    struct fib_error err = {0};
    assert_int_equal(
        fib_option_parse(&set.rows[fib_option_index(&set, flag)], text, *state, &value, &err),
        FIB_ERR_USAGE);
    assert_string_equal(err.text, sentence);
    assert_false(value.set);
}

static void integers(void **state)
{
    assert_int_equal(parse(state, "rows", "1048576").i64, 1048576);
    assert_string_equal(parse(state, "rows", "007").text, "7");
    assert_int_equal(parse(state, "depth", "-9223372036854775808").i64, INT64_MIN);
    assert_int_equal(parse(state, "random_seed", "9223372036854775807").i64, INT64_MAX);
    refuse(state, "rows", "0", "--rows 0: must be 1 .. 1048576");
    refuse(state, "rows", "-1", "--rows -1: must be 1 .. 1048576");
    refuse(state, "rows", "1048577", "--rows 1048577: must be 1 .. 1048576");
    refuse(state, "rows", "1.5", "--rows 1.5: must be an integer, 1 .. 1048576");
    refuse(state, "rows", "99999999999999999999",
           "--rows 99999999999999999999: must be 1 .. 1048576");
    refuse(state, "rows", "1e3", "--rows 1e3: must be an integer written in digits, 1 .. 1048576");
    refuse(state, "rows", "x", "--rows x: must be an integer, 1 .. 1048576");
    refuse(state, "rows", "", "--rows '': must be an integer, 1 .. 1048576");
    refuse(state, "rows", " 1", "--rows ' 1': must be an integer, 1 .. 1048576");
    refuse(state, "depth", "1.5", "--depth 1.5: must be an integer");
    refuse(state, "depth", "9223372036854775808",
           "--depth 9223372036854775808: must be an integer that fits 64 bits");
    refuse(state, "random_seed", "-1", "--random_seed -1: must be >= 0");
}

static void numbers(void **state)
{
    assert_float_equal(parse(state, "alpha", "0.1").f64, 0.1, 0.0);
    assert_string_equal(parse(state, "alpha", "1e-6").text, "1e-06");
    assert_string_equal(parse(state, "alpha", "2").text, "2.0");
    refuse(state, "alpha", "-0.5", "--alpha -0.5: must be 0.0 .. 2.0");
    refuse(state, "alpha", "2,5", "--alpha 2,5: must be a number, 0.0 .. 2.0");
    refuse(state, "alpha", "", "--alpha '': must be a number, 0.0 .. 2.0");
    refuse(state, "alpha", "nan", "--alpha nan: must be a finite number, 0.0 .. 2.0");
    refuse(state, "alpha", "inf", "--alpha inf: must be a finite number, 0.0 .. 2.0");
}

static void choices(void **state)
{
    assert_string_equal(parse(state, "mode", "tWISTED").text, "Twisted");
    assert_string_equal(parse(state, "cache", "hot").text, "hot");
    assert_int_equal(parse(state, "input_dtype", "float16").i64, FIB_F16);
    refuse(state, "cache", "Hot", "--cache Hot: must be cold | hot | both; did you mean hot?");
    refuse(state, "cache", "lukewarm", "--cache lukewarm: must be cold | hot | both");
    refuse(state, "input_dtype", "float61",
           "--input_dtype float61: must be bfloat16 | float16; did you mean float16?");
    refuse(state, "mode", "", "--mode '': must be Plain | Twisted");
}

static void lists(void **state)
{
    assert_string_equal(parse(state, "names", "a,b  c,,d").text, "a b c d");
    assert_string_equal(parse(state, "parts", "3 -04,5").text, "3 -4 5");
    refuse(state, "names", " , ", "--names needs at least one word");
    refuse(state, "parts", "", "--parts needs at least one integer");
    refuse(state, "parts", "1 x", "--parts x: must be an integer, -4 .. 100");
    refuse(state, "parts", "1 101", "--parts 101: must be -4 .. 100");
}

static void long_values_are_cut(void **state)
{
    char text[2001];
    memset(text, 'a', 2000);
    text[2000] = '\0';
    const struct fib_option_set set = fib_registry_options(toy("scale"), *state);
    struct fib_value value = {0};
    struct fib_error err = {0};
    fib_option_parse(&set.rows[fib_option_index(&set, "rows")], text, *state, &value, &err);
    assert_contains(err.text, "aaa...: must be an integer, 1 .. 1048576");
    assert_true(strlen(err.text) < 150);
    assert_string_equal(fib_shown("caf\xc3\xa9", *state), "caf\xc3\xa9");
    memset(text, 'b', 59);
    memcpy(text + 59, "\xc3\xa9zz", 5);
    assert_int_equal(strlen(fib_shown(text, *state)), 59 + 3); /* no half character */
}

static void allowed_texts(void **state)
{
    static const struct {
        const char *flag, *text;
    } rows[] = {
        {"rows", "1 .. 1048576"}, {"depth", "any integer"},
        {"alpha", "0.0 .. 2.0"},  {"input_dtype", "bfloat16 | float16"},
        {"note", "any text"},     {"names", "one or more words"},
        {"flip", "no value"},     {"verbose", "no value, may be repeated"},
        {"random_seed", ">= 0"},  {"parts", "-4 .. 100"},
    };
    const struct fib_option_set set = fib_registry_options(toy("scale"), *state);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(
            fib_option_allowed(&set.rows[fib_option_index(&set, rows[i].flag)], *state),
            rows[i].text);
    const struct fib_option any = {.name = "x", .kind = FIB_OPT_F64};
    const struct fib_option most = {.name = "x", .kind = FIB_OPT_I64, .min = INT64_MIN, .max = 9};
    assert_string_equal(fib_option_allowed(&any, *state), "any finite number");
    assert_string_equal(fib_option_allowed(&most, *state), "<= 9");
}

static void unset_values_bind(void **state)
{
    const struct fib_option_set set = fib_registry_options(toy("scale"), *state);
    const struct fib_value unset = {0};
    struct toy_params params;
    memset(&params, 0x5a, sizeof(params));
    for (size_t i = 0; i < set.count; i++)
        if (set.rows[i].scope == FIB_SCOPE_ROUTINE)
            fib_option_bind(&set.rows[i], &unset, &params);
    assert_true(params.rows == FIB_UNSET_I64);
    assert_true(isnan(params.alpha));
    assert_null(params.mode);
    assert_null(params.parts);
    assert_null(params.note);
    assert_int_equal(params.out_dtype, FIB_DTYPE_COUNT);
    assert_false(params.flip);
}

static void shared_rows_are_sound(void **state)
{
    const struct fib_option_set set = fib_registry_options(NULL, *state);
    bool own_seen = false;
    for (size_t i = 0; i < set.count; i++) {
        const struct fib_option *option = &set.rows[i];
        assert_int_equal(fib_option_index(&set, option->name), i); /* no name twice */
        assert_true(option->bound);
        assert_non_null(option->help);
        assert_true(option->scope != FIB_SCOPE_ROUTINE);
        assert_true(option->own || !own_seen); /* the reference's come first */
        own_seen = option->own;
    }
    assert_string_equal(set.rows[0].name, "routine");
}

/* Every row of every real routine: its default parses, names are unique, choices parse. */
static void real_rows_are_sound(void **state)
{
    const struct fib_routine *routine;
    for (size_t n = 0; (routine = fib_registry_routine_at(test_registry(), n)); n++) {
        const struct fib_option_set set = fib_registry_options(routine, *state);
        for (size_t i = 0; i < set.count; i++) {
            const struct fib_option *option = &set.rows[i];
            struct fib_value value = {0};
            struct fib_error err = {0};
            if (fib_option_index(&set, option->name) != (int)i)
                fail_msg("%s: --%s stands twice", routine->name, option->name);
            if (option->fallback &&
                fib_option_parse(option, option->fallback, *state, &value, &err) != FIB_OK)
                fail_msg("%s: default: %s", routine->name, err.text);
            const struct fib_option_override *override = routine->overrides;
            for (; override && override->name; override++)
                if (fib_option_index(&set, override->name) < 0)
                    fail_msg("%s overrides unknown --%s", routine->name, override->name);
        }
    }
}

static void registry_lookups(void **state)
{
    (void)state;
    struct fib_error err = {0};
    assert_string_equal(fib_registry_routine_at(toy_registry(), 3)->name, "absent");
    assert_null(fib_registry_routine_at(toy_registry(), 4));
    assert_null(fib_registry_need_routine(toy_registry(), "blnd", &err));
    assert_string_equal(err.text, "unknown routine blnd; did you mean blend?");
    err = (struct fib_error){0};
    assert_null(fib_registry_need_routine(toy_registry(), "zzz", &err));
    assert_string_equal(err.text, "unknown routine zzz; `fib-bench list` shows all");
    assert_string_equal(fib_registry_label(toy_registry(), "prims_ts")->alias_of, "prims-ts");
    assert_non_null(fib_registry_label(toy_registry(), "plugin:mine"));
    assert_null(fib_registry_label(toy_registry(), "plugin:"));
    assert_null(fib_registry_label(toy_registry(), "fa9"));
}

static void registry_backends(void **state)
{
    (void)state;
    static const struct fib_impl impls[] = {
        {.routine = "scale", .label = "cpu", .device_kind = FIB_DEVICE_CPU},
        {.routine = "scale", .label = "cuda", .device_kind = FIB_DEVICE_CUDA},
    };
    static const struct fib_backend cpu_toy = FIB_BACKEND("cpu_toy", impls);
    static const struct fib_backend blas_toy = {.id = "blas_toy", .absent = "no headers"};
    static const struct fib_backend *const backends[] = {&cpu_toy, &blas_toy};
    const struct fib_registry registry = {.backends = backends, .backend_count = 2};
    assert_ptr_equal(fib_registry_impl(&registry, "scale", "cpu", FIB_DEVICE_CPU), &impls[0]);
    assert_null(fib_registry_impl(&registry, "scale", "cpu", FIB_DEVICE_CUDA));
    assert_null(fib_registry_impl(&registry, "blend", "cpu", FIB_DEVICE_CPU));
    assert_ptr_equal(fib_registry_absent(&registry, "blas", "toy"), &blas_toy);
    assert_ptr_equal(fib_registry_absent(&registry, "blas-native", "toy"), &blas_toy);
    assert_ptr_equal(fib_registry_absent(&registry, "blas", NULL), &blas_toy);
    assert_null(fib_registry_absent(&registry, "blas", "other"));
    assert_null(fib_registry_absent(&registry, "blaster", "toy"));
    assert_null(fib_registry_absent(&registry, "cpu", "toy")); /* present, not absent */
}

/* Numbers are read and written with a point whatever the locale says. */
static void case_58_numbers_with_locale(void **state)
{
    const char *found = setlocale(LC_ALL, "de_DE.UTF-8");
    if (!found)
        found = setlocale(LC_ALL, "de_DE.utf8");
    if (!found) {
        print_message("locale de_DE.UTF-8 is not installed\n");
        skip();
    }
    const struct fib_value value = parse(state, "alpha", "0.0034567");
    assert_float_equal(value.f64, 0.0034567, 0.0);
    assert_string_equal(value.text, "0.0034567");
    refuse(state, "alpha", "0,5", "--alpha 0,5: must be a number, 0.0 .. 2.0");
    setlocale(LC_ALL, "C");
}

#define WITH_ARENA(test_) cmocka_unit_test_setup_teardown(test_, make_set, free_set)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ARENA(finds_exact_and_dashed),
        WITH_ARENA(prefix_prefers_the_reference),
        WITH_ARENA(ambiguous_prefix_lists_candidates),
        WITH_ARENA(unknown_flag_suggests),
        WITH_ARENA(negation_is_told),
        WITH_ARENA(overrides_apply),
        WITH_ARENA(integers),
        WITH_ARENA(numbers),
        WITH_ARENA(choices),
        WITH_ARENA(lists),
        WITH_ARENA(long_values_are_cut),
        WITH_ARENA(allowed_texts),
        WITH_ARENA(unset_values_bind),
        WITH_ARENA(shared_rows_are_sound),
        WITH_ARENA(real_rows_are_sound),
        WITH_ARENA(registry_lookups),
        WITH_ARENA(registry_backends),
        WITH_ARENA(case_58_numbers_with_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
