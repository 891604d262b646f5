/* Fuzzing of test lists: any bytes as the content of a list. */
#include "tests/support.h"

#include <stdlib.h>

#include "core/testlist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fib_plan *plan = NULL;
    struct fib_error err = {0};
    const enum fib_status st =
        fib_testlist_plan(test_registry(), "list.txt", (const char *)data, size, &plan, &err);
    if ((st == FIB_OK) != (plan != NULL) || (st != FIB_OK && !err.text[0]))
        abort();
    for (size_t i = 0; plan && i < plan->count; i++)
        if (!plan->items[i].kase == !plan->items[i].error)
            abort(); /* an item is a case or a sentence, never both or neither */
    fib_plan_free(&plan);
    return 0;
}
