#include "tests/support.h"

#include <string.h>

#include "backends/backends.h"
#include "core/memory.h"
#include "routines/routines.h"

const struct fib_registry *test_registry(void)
{
    static struct fib_registry registry;
    registry = (struct fib_registry){
        .families = fib_families,
        .family_count = fib_family_count,
        .backends = fib_backends,
        .backend_count = fib_backend_count,
        .labels = fib_labels,
        .label_count = fib_label_count,
        .models = fib_models,
        .model_count = fib_model_count,
        .program = "fib-bench",
        .version = "0.0.0",
        .build_id = "test",
    };
    return &registry;
}

static enum fib_status parse_line(const char *line, struct fib_plan **plan, struct fib_error *err)
{
    struct fib_arena *arena = fib_arena_create();
    const char *const *words = NULL;
    size_t count = 0;
    enum fib_status st = fib_split_words(line, strlen(line), arena, &words, &count, err);
    if (st == FIB_OK)
        st = fib_plan_parse(test_registry(), count, words, plan, err);
    fib_arena_free(&arena);
    return st;
}

struct fib_plan *test_plan(const char *line)
{
    struct fib_plan *plan = NULL;
    struct fib_error err = {0};
    if (parse_line(line, &plan, &err) != FIB_OK)
        fail_msg("%s: %s", line, err.text);
    return plan;
}

enum fib_status test_plan_fails(const char *line, struct fib_error *err)
{
    struct fib_plan *plan = NULL;
    *err = (struct fib_error){0};
    const enum fib_status st = parse_line(line, &plan, err);
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
