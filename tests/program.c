#include "tests/program.h"

#include <string.h>

#include "backends/backends.h"
#include "core/memory.h"
#include "routines/routines.h"

struct fib_registry program_registry(void)
{
    return (struct fib_registry){
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
}

enum fib_status program_parse(const struct fib_registry *registry, const char *line,
                              struct fib_plan **plan, struct fib_error *err)
{
    struct fib_arena *arena = fib_arena_create();
    const char *const *words = NULL;
    size_t count = 0;
    enum fib_status st = fib_split_words(line, strlen(line), arena, &words, &count, err);
    if (st == FIB_OK)
        st = fib_plan_parse(registry, count, words, plan, err);
    fib_arena_free(&arena);
    return st;
}
