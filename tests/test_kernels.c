/* Walks the tables: every implementation that this machine can run, of every routine that is built,
 * over a grid of small shapes and every value of every choice, through the whole runner. A row
 * added to a table is covered without touching this file. What the mathematics should be is in the
 * family's own tests: here the oracle is the judge. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/pool.h"
#include "core/result.h"
#include "core/runner.h"
#include "core/text.h"

/* Values of required sizes: the n-th required flag takes sizes[(set + 2 n) % count]. No 1: a row of
 * one element normalises to +-1 exactly, and quantised weights then sit on rounding ties. */
static const char *const sizes[] = {"2", "3", "8", "33", "64", "130"};
enum { SIZE_COUNT = sizeof(sizes) / sizeof(sizes[0]) };

struct walk {
    struct fib_device *device;
    size_t passed;
    char failure[2048];
};

static enum fib_status emit(void *context, struct fib_json *record, struct fib_error *err)
{
    struct walk *const walk = context;
    const char *const status = fib_json_text(record, "status");
    (void)err;
    if (strcmp(status, "PASSED") == 0)
        walk->passed++;
    else if (strcmp(status, "UNSUPPORTED") != 0 && !walk->failure[0])
        snprintf(walk->failure, sizeof(walk->failure), "%s on %s: %s: %s",
                 fib_json_text(record, "title"), fib_json_text(record, "backend"), status,
                 fib_json_text(record, "reason"));
    fib_json_free(&record);
    return FIB_OK;
}

static void say(void *context, const char *line)
{
    (void)context, (void)line;
}

static void add_backends(const struct fib_routine *routine, struct fib_text *line)
{
    const struct fib_registry *const registry = test_registry();
    fib_text_add(line, " --backends");
    for (size_t b = 0; b < registry->backend_count; b++)
        for (size_t i = 0; i < registry->backends[b]->impl_count; i++)
            if (strcmp(registry->backends[b]->impls[i].routine, routine->name) == 0)
                fib_text_addf(line, " %s", registry->backends[b]->impls[i].label);
}

/* Sweeps one choice or switches one switch; the other flags keep their defaults. */
static bool vary(const struct fib_option *option, struct fib_text *line)
{
    if (option->kind == FIB_OPT_SWITCH) {
        fib_text_addf(line, " --%s", option->name);
        return true;
    }
    if (option->kind != FIB_OPT_CHOICE && option->kind != FIB_OPT_DTYPE)
        return false;
    fib_text_addf(line, " --%s ", option->name);
    for (const char *c = option->choices; *c; c++)
        fib_text_add_char(line, *c == ' ' ? ',' : *c);
    return true;
}

static void run_line(struct walk *walk, const char *line)
{
    struct fib_error err = {0};
    struct fib_plan *plan = test_plan(line);
    const struct fib_runner runner = {.registry = test_registry(),
                                      .device = walk->device,
                                      .emit = emit,
                                      .say = say,
                                      .context = walk};
    const size_t before = walk->passed;
    for (size_t i = 0; i < plan->count; i++)
        assert_int_equal(fib_runner_case(&runner, plan->items[i].kase, (int64_t)i, &err), FIB_OK);
    if (walk->failure[0])
        fail_msg("%s\nin %s", walk->failure, line);
    if (walk->passed == before)
        fail_msg("nothing ran: %s", line);
    fib_plan_free(&plan);
}

/* Lines with one set of sizes: all defaults, then each option varied alone. */
static void walk_sizes(struct walk *walk, const struct fib_routine *routine, size_t set)
{
    struct fib_arena *arena = fib_arena_create();
    const struct fib_option_set options = fib_registry_options(routine, arena);
    struct fib_text base = {0}, line = {0};
    size_t required = 0;
    fib_text_addf(&base, "--routine %s -n 1 -d 1 --random_seed %zu", routine->name, 42 + set);
    add_backends(routine, &base);
    for (size_t i = 0; i < options.count; i++)
        if (options.rows[i].scope == FIB_SCOPE_ROUTINE && options.rows[i].required)
            fib_text_addf(&base, " --%s %s", options.rows[i].name,
                          sizes[(set + 2 * required++) % SIZE_COUNT]);
    run_line(walk, fib_text_chars(&base));
    for (size_t i = 0; i < options.count; i++) {
        const struct fib_option *const option = &options.rows[i];
        if (option->scope != FIB_SCOPE_ROUTINE ||
            (option->uses && !fib_words_contain(option->uses, routine->name)))
            continue;
        fib_text_clear(&line);
        fib_text_add(&line, fib_text_chars(&base));
        if (vary(option, &line))
            run_line(walk, fib_text_chars(&line));
    }
    fib_text_free(&base);
    fib_text_free(&line);
    fib_arena_free(&arena);
}

static void every_built_row_agrees_with_its_oracle(void **state)
{
    struct fib_error err = {0};
    struct fib_pool *pool = fib_pool_create(0);
    struct walk walk = {0};
    (void)state;
    assert_int_equal(fib_device_cpu_open(pool, &walk.device, &err), FIB_OK);
    /* Rings of a few slots: this is about values, and tiny cases would take thousands. */
    walk.device->facts.ring_bytes = 4096;
    for (size_t n = 0; fib_registry_routine_at(test_registry(), n); n++) {
        const struct fib_routine *const routine = fib_registry_routine_at(test_registry(), n);
        for (size_t set = 0; !routine->unavailable && set < SIZE_COUNT; set++)
            walk_sizes(&walk, routine, set);
    }
    print_message("%zu rows PASSED\n", walk.passed);
    assert_true(walk.passed > 0);
    fib_device_close(&walk.device);
    fib_pool_free(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_built_row_agrees_with_its_oracle),
    };
    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
