#include "tests/support.h"

#include <string.h>

#include "core/memory.h"
#include "tests/program.h"

const struct fib_registry *test_registry(void)
{
    static struct fib_registry registry;
    static struct fib_arena *arena; /* lives as long as the test program */
    if (!arena) {
        arena = fib_arena_create();
        registry = program_registry();
        fib_registry_add_labels(&registry, arena);
    }
    return &registry;
}

struct fib_plan *test_plan(const char *line)
{
    struct fib_plan *plan = NULL;
    struct fib_error err = {0};
    if (program_parse(test_registry(), line, &plan, &err) != FIB_OK)
        fail_msg("%s: %s", line, err.text);
    return plan;
}

enum fib_status test_plan_fails(const char *line, struct fib_error *err)
{
    struct fib_plan *plan = NULL;
    *err = (struct fib_error){0};
    const enum fib_status st = program_parse(test_registry(), line, &plan, err);
    if (st == FIB_OK) {
        fib_plan_free(&plan);
        fail_msg("parsed although it should not: %s", line);
    }
    return st;
}

void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" not found in:\n%s", part, text);
}
