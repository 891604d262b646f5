/* Sizes and look-ups over the tensors of a problem. */
#include "core/problem.h"

#include <assert.h>
#include <string.h>

int64_t fib_tensor_elems(const struct fib_tensor *tensor)
{
    int64_t elems = 1;
    for (int i = 0; i < tensor->rank; i++)
        elems *= tensor->shape[i];
    return elems;
}

size_t fib_tensor_bytes(const struct fib_tensor *tensor)
{
    return (size_t)fib_tensor_elems(tensor) * fib_dtype_bytes(tensor->dtype);
}

bool fib_tensor_is_written(const struct fib_tensor *tensor)
{
    return tensor->role == FIB_OUTPUT || tensor->role == FIB_INOUT;
}

struct fib_tensor *fib_problem_add(struct fib_problem *problem, const struct fib_tensor *tensor)
{
    assert(problem->tensor_count < FIB_MAX_TENSORS);
    assert(tensor->name && tensor->rank >= 0 && tensor->rank <= FIB_MAX_RANK);
    struct fib_tensor *const added = &problem->tensors[problem->tensor_count++];
    *added = *tensor;
    return added;
}

int fib_problem_find(const struct fib_problem *problem, const char *name)
{
    for (int i = 0; i < problem->tensor_count; i++)
        if (strcmp(problem->tensors[i].name, name) == 0)
            return i;
    return -1;
}
