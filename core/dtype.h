/* Number formats: names, sizes, exact conversion to and from float64 and float32.
 *
 * Rounding is to nearest, ties to even. FP8 conversions saturate finite values (e4m3 448, e5m2
 * 57344), keep NaN, and send +-inf to the largest finite value (saturating conversion as on the
 * device). bf16 and f16 overflow to infinity. Table of formats: docs/metrics.md, "Check". */
#ifndef FIB_CORE_DTYPE_H
#define FIB_CORE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* enum tag, flag spelling, bits per element */
#define FIB_DTYPE_LIST(X)                                                                          \
    X(BF16, "bfloat16", 16)                                                                        \
    X(F16, "float16", 16)                                                                          \
    X(F32, "float32", 32)                                                                          \
    X(F64, "float64", 64)                                                                          \
    X(FP8_E4M3, "fp8_e4m3", 8)                                                                     \
    X(FP8_E5M2, "fp8_e5m2", 8)                                                                     \
    X(U8, "uint8", 8)                                                                              \
    X(I32, "int32", 32)                                                                            \
    X(I64, "int64", 64)

enum fib_dtype {
#define FIB_DTYPE_ENUM(tag, name, bits) FIB_##tag,
    FIB_DTYPE_LIST(FIB_DTYPE_ENUM)
#undef FIB_DTYPE_ENUM
    FIB_DTYPE_COUNT
};

/* A set of dtypes as bits, e.g. FIB_DT(BF16) | FIB_DT(F16). */
#define FIB_DT(tag) (1u << FIB_##tag)

const char *fib_dtype_name(enum fib_dtype dtype);
/* False when the name is unknown. */
bool fib_dtype_parse(const char *name, enum fib_dtype *dtype);
size_t fib_dtype_bytes(enum fib_dtype dtype);
bool fib_dtype_is_float(enum fib_dtype dtype);

/* Largest relative error of one correctly rounded conversion of a normal number: 2^-8 bf16,
 * 2^-11 f16, 2^-24 f32, 2^-53 f64, 2^-4 e4m3, 2^-3 e5m2; 0 for integers. */
double fib_dtype_unit_roundoff(enum fib_dtype dtype);
/* Half the smallest positive subnormal: largest absolute rounding error near zero. 0 for integers;
 * 2^-1074 for float64, which has no half of it. */
double fib_dtype_half_tiny(enum fib_dtype dtype);
/* Largest finite value; for integers the largest representable one. */
double fib_dtype_max(enum fib_dtype dtype);

/* Element `index` of a packed array as float64, exact for every format (an int64 beyond 2^53 is
 * rounded). */
double fib_dtype_load(enum fib_dtype dtype, const void *base, size_t index);
/* Rounds `value` directly from float64 (no double rounding) and stores it. Integers: round to
 * nearest even, saturating, NaN becomes 0. */
void fib_dtype_store(enum fib_dtype dtype, void *base, size_t index, double value);
/* The value that storing and loading gives back. */
double fib_dtype_round(enum fib_dtype dtype, double value);

/* Bulk conversion, vectorised; src and dst do not overlap. to_f32 is exact for 16- and 8-bit
 * formats; from_f32 rounds once. */
void fib_dtype_to_f32(enum fib_dtype dtype, const void *src, float *dst, size_t count);
void fib_dtype_from_f32(enum fib_dtype dtype, const float *src, void *dst, size_t count);
void fib_dtype_to_f64(enum fib_dtype dtype, const void *src, double *dst, size_t count);

#endif
