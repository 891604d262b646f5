/* Words for single elements in the checker's messages. */
#include "core/check_place.h"

#include <stdio.h>
#include <string.h>

void fib_place_text(const struct fib_tensor *tensor, int64_t element, char *text, size_t size)
{
    int64_t index[FIB_MAX_RANK] = {0};
    for (int i = tensor->rank - 1; i >= 0; i--) {
        index[i] = element % tensor->shape[i];
        element /= tensor->shape[i];
    }
    size_t used = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < tensor->rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i > 0 ? ", " : "",
                                 (long long)index[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
}

/* Raw bits of an element of at most 64 bits. */
static uint64_t code_of(enum fib_dtype dtype, const void *base, int64_t element)
{
    const size_t size_bytes = fib_dtype_bytes(dtype);
    const char *const at = (const char *)base + (size_t)element * size_bytes;
    uint8_t byte = 0;
    uint16_t half = 0;
    uint32_t word = 0;
    uint64_t code = 0;
    switch (size_bytes) {
    case sizeof(byte):
        memcpy(&byte, at, sizeof(byte));
        return byte;
    case sizeof(half):
        memcpy(&half, at, sizeof(half));
        return half;
    case sizeof(word):
        memcpy(&word, at, sizeof(word));
        return word;
    default:
        memcpy(&code, at, sizeof(code));
        return code;
    }
}

void fib_place_value_text(enum fib_dtype dtype, const void *base, int64_t element, char *text,
                          size_t size)
{
    const int digits = 2 * (int)fib_dtype_bytes(dtype);
    const double value = fib_dtype_load(dtype, base, (size_t)element);
    if (digits <= 4)
        snprintf(text, size, "0x%0*llx (%.9g)", digits,
                 (unsigned long long)code_of(dtype, base, element), value);
    else
        snprintf(text, size, "%.9g", value);
}

int64_t fib_place_of_code(enum fib_dtype dtype, const void *base, int64_t element)
{
    const uint64_t code = code_of(dtype, base, element);
    const uint64_t sign = UINT64_C(1) << (8 * fib_dtype_bytes(dtype) - 1);
    const int64_t magnitude = (int64_t)(code & (sign - 1));
    return code & sign ? -magnitude : magnitude;
}
