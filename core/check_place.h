/* Places and values of single elements in words, and places of codes on the number line. */
#ifndef FIB_CORE_CHECK_PLACE_H
#define FIB_CORE_CHECK_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "core/problem.h"

/* "[17, 4095]": the element's indices by the tensor's shape. */
void fib_place_text(const struct fib_tensor *tensor, int64_t element, char *text, size_t size);

/* "0x5e (1.5)" for formats of 8 and 16 bits, "1.5" otherwise. */
void fib_place_value_text(enum fib_dtype dtype, const void *base, int64_t element, char *text,
                          size_t size);

/* Code of a float format as a position: neighbours are one apart, both zeros are 0. */
int64_t fib_place_of_code(enum fib_dtype dtype, const void *base, int64_t element);

#endif
