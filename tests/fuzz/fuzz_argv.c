/* Fuzzing of the command line: bytes become words at NUL and newline. */
#include "tests/support.h"

#include <string.h>

#include "core/memory.h"
#include "core/text.h"

enum { MAX_WORDS = 256 };

/* A list could be any file of the machine; lists have a target of their own. */
static bool names_a_list(const char *word)
{
    static const char flag[] = "--testlist";
    const size_t length = strcspn(word, "=");
    return length >= 3 && length < sizeof(flag) && strncmp(word, flag, length) == 0;
}

static void use(const struct fib_plan *plan)
{
    for (size_t i = 0; i < plan->count && i < 4; i++) {
        struct fib_text text = {0};
        char key[17];
        fib_case_repro(plan->items[i].kase, "fib-bench", &text);
        fib_case_title(plan->items[i].kase, &text);
        fib_case_key(plan->items[i].kase, key);
        fib_text_free(&text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fib_arena *arena = fib_arena_create();
    const char *words[MAX_WORDS];
    size_t count = 0;
    bool allowed = true;
    char *bytes = fib_arena_alloc(arena, size + 1);
    if (size)
        memcpy(bytes, data, size);
    for (size_t i = 0; i < size; i++)
        if (bytes[i] == '\n')
            bytes[i] = '\0';
    for (size_t at = 0; at < size && count < MAX_WORDS; at += strlen(bytes + at) + 1) {
        words[count++] = bytes + at;
        allowed = allowed && !names_a_list(bytes + at);
    }
    struct fib_plan *plan = NULL;
    struct fib_error err = {0};
    if (allowed && fib_plan_parse(test_registry(), count, words, &plan, &err) == FIB_OK)
        use(plan);
    fib_plan_free(&plan);
    fib_arena_free(&arena);
    return 0;
}
