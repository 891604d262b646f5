/* Plug-ins: tables that are refused, problems that are none, rows made from an offer. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/assign.h"
#include "core/memory.h"
#include "core/plugin.h"
#include "core/plugin_call.h"
#include "core/plugin_case.h"
#include "core/plugin_load.h"
#include "core/plugin_probe.h"

/* ---- tables ---- */

static int enqueue(void *state, void *stream, const struct fib_plugin_slot *slot,
                   struct fib_plugin_note *note)
{
    (void)state, (void)stream, (void)slot, (void)note;
    return FIB_PLUGIN_OK;
}

static int describe(const struct fib_plugin_case *kase, struct fib_plugin_problem *problem,
                    struct fib_plugin_note *note)
{
    (void)kase, (void)problem, (void)note;
    return FIB_PLUGIN_OK;
}

static int traffic(const struct fib_plugin_case *kase, double *flops, double *bytes,
                   struct fib_plugin_note *note)
{
    (void)kase, (void)flops, (void)bytes, (void)note;
    return FIB_PLUGIN_OK;
}

/* A table whose parts may be changed. */
struct parts {
    struct fib_plugin table;
    struct fib_plugin_backend backend;
    struct fib_plugin_routine routine;
    struct fib_plugin_flag flag;
};

static void make_parts(struct parts *parts)
{
    *parts = (struct parts){
        .table = {FIB_PLUGIN_VERSION, .name = "mine", .backend_count = 1, .routine_count = 1},
        .backend = {.routine = "copy", .enqueue = enqueue},
        .routine = {.name = "copy",
                    .summary = "y = x",
                    .flag_count = 1,
                    .describe = describe,
                    .traffic = traffic},
        .flag = {.name = "rows", .kind = FIB_PLUGIN_FLAG_I64}};
    parts->table.backends = &parts->backend;
    parts->table.routines = &parts->routine;
    parts->routine.flags = &parts->flag;
}

static void assert_refused(struct parts *parts, const char *sentence)
{
    struct fib_error err = {0};
    assert_int_equal(fib_plugin_check(&parts->table, &err), FIB_ERR_UNSUPPORTED);
    assert_contains(err.text, sentence);
    make_parts(parts);
    assert_int_equal(fib_plugin_check(&parts->table, &err), FIB_OK);
}

static void tables_of_other_versions(void **unused)
{
    struct parts parts;
    (void)unused;
    make_parts(&parts);
    parts.table.abi = 0;
    assert_refused(&parts, "has plug-in ABI 0, this program takes ABI 1");
    parts.table.abi = 2;
    parts.table.plugin_bytes = 8; /* the number comes first */
    assert_refused(&parts, "has plug-in ABI 2, this program takes ABI 1");
    parts.table.plugin_bytes -= 8;
    assert_refused(&parts, "its struct fib_plugin has ");
    parts.table.flag_bytes++;
    assert_refused(&parts, "its struct fib_plugin_flag has ");
    parts.table.problem_bytes = 0;
    assert_refused(&parts, "its struct fib_plugin_problem has 0 bytes, that of ABI 1 has ");
}

static void tables_with_gaps(void **unused)
{
    struct parts parts;
    (void)unused;
    make_parts(&parts);
    parts.table.name = NULL;
    assert_refused(&parts, "needs a name");
    parts.table.name = "Mine!";
    assert_refused(&parts, "needs a name");
    parts.table.name = "this-name-is-much-longer-than-anybody-would-like-to-type";
    assert_refused(&parts, "at most 48");
    parts.table.backends = NULL;
    assert_refused(&parts, "1 backends and 1 routines; at most 256 of each, in arrays");
    parts.table.backend_count = parts.table.routine_count = 0;
    assert_refused(&parts, "brings neither");
    parts.backend.enqueue = NULL;
    assert_refused(&parts, "backends[0] (copy) has no enqueue");
    parts.backend.device = 9;
    assert_refused(&parts, "device 9");
    parts.backend.routine = NULL;
    assert_refused(&parts, "backends[0] names no routine");
    parts.routine.traffic = NULL;
    assert_refused(&parts, "routine copy has no traffic");
    parts.routine.flags = NULL;
    assert_refused(&parts, "routine copy: 1 flags");
    parts.flag.name = "two words";
    assert_refused(&parts, "flags[0] needs a name");
    parts.flag.kind = 6;
    assert_refused(&parts, "flag rows has kind 6; there are 0 .. 5");
    parts.flag.kind = FIB_PLUGIN_FLAG_CHOICE;
    assert_refused(&parts, "flag rows has no choices");
    parts.flag.min = 3;
    assert_refused(&parts, "flag rows has no sound bounds");
    parts.flag.max_f64 = NAN;
    assert_refused(&parts, "flag rows has no sound bounds");
}

/* ---- problems ---- */

static void make_problem(struct fib_plugin_problem *problem)
{
    *problem = (struct fib_plugin_problem){.tensors = {{.name = "x",
                                                        .dtype = FIB_PLUGIN_BF16,
                                                        .rank = 2,
                                                        .fill = FIB_PLUGIN_FILL_NORMAL,
                                                        .row_elems = 8,
                                                        .shape = {4, 8}},
                                                       {.name = "y",
                                                        .role = FIB_PLUGIN_OUTPUT,
                                                        .dtype = FIB_PLUGIN_F32,
                                                        .rank = 1,
                                                        .check = FIB_PLUGIN_CHECK_FLOAT,
                                                        .row_elems = 1,
                                                        .shape = {4}}},
                                           .tensor_count = 2,
                                           .row_count = 4,
                                           .row_flops = 16.0};
}

static void assert_no_problem(struct fib_plugin_problem *described, double flops, double bytes,
                              const char *sentence)
{
    struct fib_error err = {0};
    struct fib_problem problem = {0};
    assert_int_equal(fib_plugin_problem_take(described, flops, bytes, true, &problem, &err),
                     FIB_ERR_DEVICE);
    assert_contains(err.text, sentence);
    make_problem(described);
}

static void problems_taken_over(void **unused)
{
    struct fib_plugin_problem described;
    struct fib_problem problem = {0};
    struct fib_error err = {0};
    (void)unused;
    make_problem(&described);
    assert_int_equal(fib_plugin_problem_take(&described, 7.0, 80.0, true, &problem, &err), FIB_OK);
    assert_true(problem.tensor_count == 2 && problem.row_count == 4);
    assert_true(problem.cost.flops == 7.0 && problem.cost.traffic_bytes == 80.0);
    assert_true(problem.tensors[0].fill.by_init && problem.tensors[1].check == FIB_CHECK_FLOAT);
    problem = (struct fib_problem){0};
    described.row_count = -1; /* nobody looks at it */
    assert_int_equal(fib_plugin_problem_take(&described, 7.0, 80.0, false, &problem, &err), FIB_OK);
    assert_true(problem.row_count == 0 && problem.tensors[1].check == FIB_CHECK_NONE);
}

static void problems_refused(void **unused)
{
    struct fib_plugin_problem p;
    (void)unused;
    make_problem(&p);
    p.tensor_count = 0;
    assert_no_problem(&p, 0, 80, "describe: 0 tensors; allowed: 1 .. 16");
    p.row_count = 0;
    assert_no_problem(&p, 0, 80, "describe: 0 rows of 16 flops");
    p.row_flops = NAN;
    assert_no_problem(&p, 0, 80, "rows of nan flops");
    p.tensors[1].name = "x";
    assert_no_problem(&p, 0, 80, "two tensors are called x");
    p.tensors[1].name = NULL;
    assert_no_problem(&p, 0, 80, "tensor 1 has no name");
    p.tensors[0].rank = 6;
    assert_no_problem(&p, 0, 80, "tensor x has rank 6; allowed: 0 .. 5");
    p.tensors[0].dtype = 9;
    assert_no_problem(&p, 0, 80, "tensor x has dtype 9; allowed: 0 .. 8");
    p.tensors[0].role = -1;
    assert_no_problem(&p, 0, 80, "tensor x has role -1");
    p.tensors[0].fill = FIB_PLUGIN_FILL_NONE;
    assert_no_problem(&p, 0, 80, "tensor x: an input needs a fill");
    p.tensors[1].fill = FIB_PLUGIN_FILL_INTS;
    assert_no_problem(&p, 0, 80, "tensor y: an output has no fill");
    p.tensors[0].check = FIB_PLUGIN_CHECK_FLOAT;
    assert_no_problem(&p, 0, 80, "tensor x: only what is written is checked");
    p.tensors[0].scale = INFINITY;
    assert_no_problem(&p, 0, 80, "tensor x: scale and offset must be finite");
    p.tensors[0].shape[1] = 0;
    assert_no_problem(&p, 0, 80, "dimension 1 of tensor x is 0; must be >= 1");
    p.tensors[0].shape[0] = p.tensors[0].shape[1] = INT64_MAX;
    assert_no_problem(&p, 0, 80, "tensor x would take 1.7e+38 bytes");
    p.tensors[1].row_elems = 2;
    assert_no_problem(&p, 0, 80, "tensor y has 4 elements, which are not 4 rows of 2");
    p.tensors[1].check = FIB_PLUGIN_CHECK_NONE;
    assert_no_problem(&p, 0, 80, "no output is checked");
    p.tensors[1].role = FIB_PLUGIN_INPUT;
    p.tensors[1].fill = FIB_PLUGIN_FILL_INTS;
    p.tensors[1].check = FIB_PLUGIN_CHECK_NONE;
    assert_no_problem(&p, 0, 80, "no tensor is an output");
    assert_no_problem(&p, 0, 81, "traffic: 81 bytes; must be 1 .. 80, the bytes of the tensors");
    assert_no_problem(&p, 0, -1, "traffic: -1 bytes");
    assert_no_problem(&p, INFINITY, 80, "traffic: inf flops; must be 0 .. 1e21");
}

/* ---- rows ---- */

#define BACKEND "{\"routine\":\"rmsnorm\",\"device\":0,\"min_cc\":0,\"ran\":\"rows\"}"
#define FLAG(more) "{\"name\":\"rows\",\"kind\":0,\"min\":\"1\",\"max\":\"9\"" more "}"
#define OFFER(name, backends, routines)                                                            \
    "{\"name\":\"" name "\",\"backends\":[" backends "],\"routines\":[" routines "]}"
#define ROUTINE(name, flags)                                                                       \
    "{\"name\":\"" name "\",\"summary\":\"s\",\"has_reference\":false,\"flags\":[" flags "]}"

static enum fib_status add(struct fib_plugins *plugins, const char *text, struct fib_error *err)
{
    struct fib_json *offer = fib_json_parse(text, strlen(text), NULL);
    assert_non_null(offer);
    const enum fib_status st = fib_plugins_add(plugins, "/there/mine.so", offer, err);
    fib_json_free(&offer);
    return st;
}

static void rows_beside_the_own_ones(void **unused)
{
    struct fib_error err = {0};
    struct fib_plugins *plugins = fib_plugins_open(test_registry(), NULL, 0);
    const struct fib_registry *const registry = fib_plugins_registry(plugins);
    (void)unused;
    assert_int_equal(add(plugins, OFFER("mine", BACKEND, ROUTINE("own", FLAG(""))), &err), FIB_OK);
    assert_int_equal(add(plugins, OFFER("other", BACKEND, ""), &err), FIB_OK);
    assert_int_equal(registry->backend_count, test_registry()->backend_count + 2);
    assert_int_equal(registry->family_count, test_registry()->family_count + 1);
    assert_string_equal(fib_registry_label(registry, "plugin:mine")->meaning, "/there/mine.so");
    const struct fib_impl *const impl =
        fib_registry_impl(registry, "rmsnorm", "plugin:mine", FIB_DEVICE_CPU);
    assert_true(impl && impl->prepare && impl->run && impl->release && impl->resolved);
    const struct fib_routine *const routine = fib_registry_routine(registry, "own");
    assert_true(routine && routine->outline && !routine->check && !routine->reference);
    assert_string_equal(routine->family, "plugin:mine");
    assert_true(routine->options[0].max == 9 && !routine->options[1].name);
    fib_plugins_free(&plugins);
    assert_null(plugins);
}

static void rows_that_cannot_be(void **unused)
{
    static const struct {
        const char *offer, *sentence;
    } rows[] = {
        {OFFER("mine", BACKEND, ""), "plugin:mine is there already, from /there/mine.so"},
        {OFFER("b", "", ROUTINE("rmsnorm", "")),
         "routine rmsnorm is there already, in family norm"},
        {OFFER("b", "", ROUTINE("own", "") "," ROUTINE("own", "")), "has two routines own"},
        {OFFER("b", BACKEND "," BACKEND, ""), "has two backends for rmsnorm on one kind of device"},
        {OFFER("b", "{\"routine\":\"rmsnom\",\"device\":0,\"min_cc\":0}", ""),
         "brings a backend for an unknown routine rmsnom; did you mean rmsnorm?"},
        {OFFER("b", "", ROUTINE("own", FLAG("") "," FLAG(""))), "routine own has two flags rows"},
        {OFFER("b", "", ROUTINE("own", FLAG(",\"fallback\":\"10\""))),
         "routine own: default of a flag: --rows 10: must be 1 .. 9"},
        {OFFER("b", "", ROUTINE("own", "{\"name\":\"cache\",\"kind\":4}")),
         "routine own: flag cache is one that every routine has"},
        {OFFER("b", "", ROUTINE("own", "{\"name\":\"t\",\"kind\":3,\"choices\":\"float32 f8\"}")),
         "routine own: flag t: there is no dtype 'f8'"},
    };
    struct fib_error err = {0};
    struct fib_plugins *plugins = fib_plugins_open(test_registry(), NULL, 0);
    (void)unused;
    assert_int_equal(add(plugins, OFFER("mine", BACKEND, ""), &err), FIB_OK);
    const size_t count = fib_plugins_registry(plugins)->backend_count;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        err = (struct fib_error){0};
        assert_int_not_equal(add(plugins, rows[i].offer, &err), FIB_OK);
        assert_contains(err.text, rows[i].sentence);
        assert_int_equal(fib_plugins_registry(plugins)->backend_count, count);
    }
    fib_plugins_free(&plugins);
}

/* A file that was replaced after the run had begun has other entries in the places of the old. */
static void tables_that_have_changed(void **unused)
{
    struct parts parts;
    struct fib_plugin_file file = {.path = "/there/mine.so", .label = "plugin:mine"};
    struct fib_plugin_ref ref = {.file = &file, .routine = "other"};
    const struct fib_routine routine = {.name = "other", .context = &ref};
    const struct fib_option_set options = {0};
    const struct fib_case kase = {.routine = &routine, .options = &options};
    struct fib_problem problem = {0};
    (void)unused;
    make_parts(&parts);
    file.table = &parts.table;
    for (ref.index = 0; ref.index < 2; ref.index++) {
        struct fib_error err = {0};
        assert_int_equal(fib_plugin_outline(&kase, &problem, &err), FIB_ERR_DEVICE);
        assert_string_equal(err.text, "--plugin /there/mine.so: the file has changed since the run "
                                      "began: no other at its place");
    }
}

/* ---- files ---- */

static const char *test_file(const char *name, char *path, size_t path_bytes)
{
    const char *const folder = getenv("FIB_TEST_PLUGINS");
    snprintf(path, path_bytes, "%s/%s", folder ? folder : "tests/plugins", name);
    return path;
}

static void files_side_by_side(void **unused)
{
    char good[512], old[512];
    const char *const paths[] = {"/nowhere/a.so", test_file("other_abi.so", old, sizeof(old)),
                                 test_file("faulty.so", good, sizeof(good))};
    struct fib_plugins *plugins = fib_plugins_open(test_registry(), paths, 3);
    const struct fib_registry *const registry = fib_plugins_registry(plugins);
    (void)unused;
    assert_int_equal(fib_plugins_failure_count(plugins), 2);
    assert_string_equal(fib_plugins_failure(plugins, 0),
                        "--plugin /nowhere/a.so: cannot be opened: No such file or directory");
    assert_contains(fib_plugins_failure(plugins, 1), "has plug-in ABI 7, this program takes ABI 1");
    assert_string_equal(registry->plugin_failure, fib_plugins_failure(plugins, 0));
    const struct fib_routine *const routine = fib_registry_routine(registry, "test_copy");
    assert_true(routine && routine->reference && routine->options[0].max == INT64_MAX);
    assert_null(fib_registry_routine(registry, "test_trust")->reference);
    fib_plugins_free(&plugins);
}

static void loading_that_does_not_end(void **unused)
{
    char path[512];
    struct fib_error err = {0};
    (void)unused;
    setenv("FIB_TEST_FAULT", "load:hang", 1);
    assert_null(fib_plugin_probe(test_file("faulty.so", path, sizeof(path)), 0.3, &err));
    assert_string_equal(err.text, "still loading after 0.3 s");
    unsetenv("FIB_TEST_FAULT");
}

/* ---- words ---- */

static void flags_taken_out(void **unused)
{
    static const char *const words[] = {
        "--plugin", "a.so",     "b.so",   "--routine",  "r",    "--plugin",     "--quick", "-n",
        "5",        "--plug=c", "--rows", "--plugin=d", "list", "--plugin=e=f", "x"};
    const char *rest[15], *values[15];
    size_t rest_count = 0, value_count = 0;
    struct fib_arena *arena = fib_arena_create();
    const struct fib_option_set set = fib_registry_options(NULL, arena);
    (void)unused;
    assert_false(fib_assign_extract(&set, "plugin", 15, words, rest, &rest_count, values,
                                    &value_count, arena));
    static const char *const left[] = {"--routine", "r",      "--quick", "-n",
                                       "5",         "--rows", "list",    "x"};
    static const char *const taken[] = {"a.so", "b.so", "c", "d", "e=f"};
    assert_int_equal(rest_count, 8);
    for (size_t i = 0; i < rest_count; i++)
        assert_string_equal(rest[i], left[i]);
    assert_int_equal(value_count, 5);
    for (size_t i = 0; i < value_count; i++)
        assert_string_equal(values[i], taken[i]);
    fib_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_of_other_versions),  cmocka_unit_test(tables_with_gaps),
        cmocka_unit_test(problems_taken_over),       cmocka_unit_test(problems_refused),
        cmocka_unit_test(rows_beside_the_own_ones),  cmocka_unit_test(rows_that_cannot_be),
        cmocka_unit_test(tables_that_have_changed),  cmocka_unit_test(files_side_by_side),
        cmocka_unit_test(loading_that_does_not_end), cmocka_unit_test(flags_taken_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
