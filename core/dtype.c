/* Number formats: one table of facts, one exact encoder from float64, and bulk loops for float32.
 *
 * The bulk loops are branch-free integer code, so that the compiler turns them into vectors; the
 * scalar encoder is written apart from them, which lets the tests hold one against the other. */
#include "core/dtype.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/clones.h"
#include "core/element.h"

struct dtype_row {
    const char *name;
    size_t size_bytes;
};

static const struct dtype_row dtype_rows[FIB_DTYPE_COUNT] = {
#define DTYPE_ROW(tag, text, bits) [FIB_##tag] = {.name = (text), .size_bytes = (bits) / 8},
    FIB_DTYPE_LIST(DTYPE_ROW)
#undef DTYPE_ROW
};

/* Numbers of a format. half_tiny of float64 has no float64: its smallest number stands for it. */
struct dtype_limits {
    bool is_float;
    double unit_roundoff, half_tiny, max;
};

static const struct dtype_limits dtype_limits[FIB_DTYPE_COUNT] = {
    [FIB_BF16] = {true, 0x1p-8, 0x1p-134, 0x1.fep127},
    [FIB_F16] = {true, 0x1p-11, 0x1p-25, 65504.0},
    [FIB_F32] = {true, 0x1p-24, 0x1p-150, 0x1.fffffep127},
    [FIB_F64] = {true, 0x1p-53, 0x1p-1074, 0x1.fffffffffffffp1023},
    [FIB_FP8_E4M3] = {true, 0x1p-4, 0x1p-10, 448.0},
    [FIB_FP8_E5M2] = {true, 0x1p-3, 0x1p-17, 57344.0},
    [FIB_U8] = {false, 0.0, 0.0, 255.0},
    [FIB_I32] = {false, 0.0, 0.0, 2147483647.0},
    [FIB_I64] = {false, 0.0, 0.0, 9223372036854775807.0},
};

/* Layout of a binary format narrower than float32. */
struct layout {
    int mantissa_bits, bias;
    uint32_t sign_bit;
    uint32_t over_code; /* magnitude code of what is too large */
    uint32_t max_code;  /* largest finite magnitude code */
    uint32_t nan_code;
};

static const struct layout layout_bf16 = {7, 127, 0x8000, 0x7f80, 0x7f7f, 0x7fc0};
static const struct layout layout_f16 = {10, 15, 0x8000, 0x7c00, 0x7bff, 0x7e00};
static const struct layout layout_e4m3 = {3, 7, 0x80, 0x7e, 0x7e, 0x7f};
static const struct layout layout_e5m2 = {2, 15, 0x80, 0x7b, 0x7b, 0x7f};

const char *fib_dtype_name(enum fib_dtype dtype)
{
    assert((unsigned)dtype < FIB_DTYPE_COUNT);
    return dtype_rows[dtype].name;
}

bool fib_dtype_parse(const char *name, enum fib_dtype *dtype)
{
    for (int i = 0; i < FIB_DTYPE_COUNT; i++) {
        if (strcmp(name, dtype_rows[i].name) == 0) {
            *dtype = (enum fib_dtype)i;
            return true;
        }
    }
    return false;
}

size_t fib_dtype_bytes(enum fib_dtype dtype)
{
    assert((unsigned)dtype < FIB_DTYPE_COUNT);
    return dtype_rows[dtype].size_bytes;
}

bool fib_dtype_is_float(enum fib_dtype dtype)
{
    assert((unsigned)dtype < FIB_DTYPE_COUNT);
    return dtype_limits[dtype].is_float;
}

double fib_dtype_unit_roundoff(enum fib_dtype dtype)
{
    assert((unsigned)dtype < FIB_DTYPE_COUNT);
    return dtype_limits[dtype].unit_roundoff;
}

double fib_dtype_half_tiny(enum fib_dtype dtype)
{
    assert((unsigned)dtype < FIB_DTYPE_COUNT);
    return dtype_limits[dtype].half_tiny;
}

double fib_dtype_max(enum fib_dtype dtype)
{
    assert((unsigned)dtype < FIB_DTYPE_COUNT);
    return dtype_limits[dtype].max;
}

/* ---- scalar: exact, for the oracle and the checker ---- */

/* Code of `value` in a narrow format: the magnitude is cut at the format's last place, which lies
 * `shift` bits up in the 53-bit significand, and rounded to nearest even on the integer. */
static uint32_t encode(const struct layout *layout, double value)
{
    const uint32_t sign = signbit(value) ? layout->sign_bit : 0;
    if (isnan(value))
        return layout->nan_code;
    if (isinf(value))
        return sign | layout->over_code;
    if (value == 0.0)
        return sign;
    int exponent = 0; /* |value| = fraction * 2^exponent, fraction in [0.5, 1) */
    const double fraction = frexp(fabs(value), &exponent);
    const uint64_t significand = (uint64_t)ldexp(fraction, 53);
    const int field = exponent - 1 + layout->bias;
    const int shift = 52 - layout->mantissa_bits + (field < 1 ? 1 - field : 0);
    if (shift > 54)
        return sign; /* below a quarter of the smallest subnormal */
    const uint64_t half = UINT64_C(1) << (shift - 1);
    const uint64_t odd = (significand >> shift) & 1;
    const uint64_t kept = (significand + half - 1 + odd) >> shift;
    /* A carry out of the mantissa runs into the exponent field, as it should. For normal numbers
     * `kept` holds the hidden bit, which is exponent field 1. */
    const int64_t code =
        (int64_t)kept + ((int64_t)(field < 1 ? 0 : field - 1) << layout->mantissa_bits);
    return sign | (code > layout->max_code ? layout->over_code : (uint32_t)code);
}

static double round_to_integer(double value, double low, double high)
{
    if (isnan(value))
        return 0.0;
    const double rounded = rint(value);
    return rounded < low ? low : rounded > high ? high : rounded;
}

static int64_t round_to_i64(double value)
{
    if (value >= 0x1p63)
        return INT64_MAX;
    return (int64_t)round_to_integer(value, -0x1p63, 0x1p63);
}

static void put16(void *base, size_t index, uint32_t code)
{
    const uint16_t narrow = (uint16_t)code;
    memcpy((char *)base + index * sizeof(narrow), &narrow, sizeof(narrow));
}

void fib_dtype_store(enum fib_dtype dtype, void *base, size_t index, double value)
{
    char *const at = (char *)base + index * fib_dtype_bytes(dtype);
    switch (dtype) {
    case FIB_BF16:
        put16(base, index, encode(&layout_bf16, value));
        break;
    case FIB_F16:
        put16(base, index, encode(&layout_f16, value));
        break;
    case FIB_F32:
        memcpy(at, &(const float){(float)value}, sizeof(float));
        break;
    case FIB_F64:
        memcpy(at, &value, sizeof(value));
        break;
    case FIB_FP8_E4M3:
        *(uint8_t *)at = (uint8_t)encode(&layout_e4m3, value);
        break;
    case FIB_FP8_E5M2:
        *(uint8_t *)at = (uint8_t)encode(&layout_e5m2, value);
        break;
    case FIB_U8:
        *(uint8_t *)at = (uint8_t)round_to_integer(value, 0.0, 255.0);
        break;
    case FIB_I32:
        memcpy(at, &(const int32_t){(int32_t)round_to_integer(value, INT32_MIN, INT32_MAX)},
               sizeof(int32_t));
        break;
    case FIB_I64:
        memcpy(at, &(const int64_t){round_to_i64(value)}, sizeof(int64_t));
        break;
    case FIB_DTYPE_COUNT:
        assert(!"no such dtype");
    }
}

double fib_dtype_load(enum fib_dtype dtype, const void *base, size_t index)
{
    double value = 0.0;
    fib_dtype_to_f64(dtype, (const char *)base + index * fib_dtype_bytes(dtype), &value, 1);
    return value;
}

double fib_dtype_round(enum fib_dtype dtype, double value)
{
    uint64_t room = 0;
    fib_dtype_store(dtype, &room, 0, value);
    return fib_dtype_load(dtype, &room, 0);
}

/* ---- bulk: float32 to and from the narrow formats ---- */

/* float32 of a code with its sign already moved away. A subnormal gets the exponent of the smallest
 * normal and loses it again by one exact subtraction, so no subnormal float32 ever occurs. */
FIB_INLINE float widen(uint32_t magnitude, uint32_t sign, int mantissa_bits, int bias,
                       uint32_t first_special)
{
    const int up = 23 - mantissa_bits;
    const uint32_t rebias = (uint32_t)(127 - bias) << 23;
    const uint32_t one = UINT32_C(1) << 23;
    const uint32_t shifted = magnitude << up;
    const uint32_t tiny =
        fib_f32_to_bits(fib_bits_to_f32(shifted + rebias + one) - fib_bits_to_f32(rebias + one));
    uint32_t bits = fib_select_u32(shifted < one, tiny, shifted + rebias);
    /* Infinity keeps a zero mantissa, NaN keeps a non-zero one. */
    bits = fib_select_u32(magnitude >= first_special, shifted | 0x7f800000u, bits);
    return fib_bits_to_f32(bits | sign);
}

FIB_INLINE float widen_bf16(uint16_t code)
{
    return fib_bits_to_f32((uint32_t)code << 16);
}

FIB_INLINE float widen_f16(uint16_t code)
{
    return widen(code & 0x7fffu, (code & 0x8000u) << 16, 10, 15, 0x7c00);
}

FIB_INLINE float widen_e4m3(uint8_t code)
{
    return widen(code & 0x7fu, (code & 0x80u) << 24, 3, 7, 0x7f);
}

FIB_INLINE float widen_e5m2(uint8_t code)
{
    return widen(code & 0x7fu, (code & 0x80u) << 24, 2, 15, 0x7c);
}

/* NOLINTBEGIN(bugprone-macro-parentheses): a type cannot stand in parentheses */
#define BULK_LOOP(format, code_type)                                                               \
    FIB_CLONES static void format##_to_f32(const code_type *restrict src, float *restrict dst,     \
                                           size_t count)                                           \
    {                                                                                              \
        for (size_t i = 0; i < count; i++)                                                         \
            dst[i] = widen_##format(src[i]);                                                       \
    }                                                                                              \
    FIB_CLONES static void format##_from_f32(const float *restrict src, code_type *restrict dst,   \
                                             size_t count)                                         \
    {                                                                                              \
        for (size_t i = 0; i < count; i++)                                                         \
            dst[i] = fib_narrow_##format(src[i]);                                                  \
    }

BULK_LOOP(bf16, uint16_t)
BULK_LOOP(f16, uint16_t)
BULK_LOOP(e4m3, uint8_t)
BULK_LOOP(e5m2, uint8_t)
#undef BULK_LOOP
/* NOLINTEND(bugprone-macro-parentheses) */

/* Integer and float64 elements: seldom many, so one at a time. */
static void others_to_f32(enum fib_dtype dtype, const void *src, float *dst, size_t count)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = (float)fib_dtype_load(dtype, src, i);
}

void fib_dtype_to_f32(enum fib_dtype dtype, const void *src, float *dst, size_t count)
{
    switch (dtype) {
    case FIB_BF16:
        bf16_to_f32(src, dst, count);
        break;
    case FIB_F16:
        f16_to_f32(src, dst, count);
        break;
    case FIB_FP8_E4M3:
        e4m3_to_f32(src, dst, count);
        break;
    case FIB_FP8_E5M2:
        e5m2_to_f32(src, dst, count);
        break;
    case FIB_F32:
        memcpy(dst, src, count * sizeof(*dst));
        break;
    default:
        others_to_f32(dtype, src, dst, count);
    }
}

void fib_dtype_from_f32(enum fib_dtype dtype, const float *src, void *dst, size_t count)
{
    switch (dtype) {
    case FIB_BF16:
        bf16_from_f32(src, dst, count);
        break;
    case FIB_F16:
        f16_from_f32(src, dst, count);
        break;
    case FIB_FP8_E4M3:
        e4m3_from_f32(src, dst, count);
        break;
    case FIB_FP8_E5M2:
        e5m2_from_f32(src, dst, count);
        break;
    case FIB_F32:
        memcpy(dst, src, count * sizeof(*src));
        break;
    default:
        for (size_t i = 0; i < count; i++)
            fib_dtype_store(dtype, dst, i, (double)src[i]);
    }
}

/* ---- bulk: float64 ---- */

static void through_f32(enum fib_dtype dtype, const void *src, double *dst, size_t count)
{
    enum { BLOCK = 256 };
    float block[BLOCK];
    const size_t size_bytes = fib_dtype_bytes(dtype);
    for (size_t done = 0; done < count; done += BLOCK) {
        const size_t n = count - done < BLOCK ? count - done : BLOCK;
        fib_dtype_to_f32(dtype, (const char *)src + done * size_bytes, block, n);
        for (size_t i = 0; i < n; i++)
            dst[done + i] = (double)block[i];
    }
}

static void ints_to_f64(enum fib_dtype dtype, const void *src, double *dst, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int32_t narrow_int = 0;
        int64_t wide_int = 0;
        if (dtype == FIB_U8) {
            dst[i] = (double)((const uint8_t *)src)[i];
        } else if (dtype == FIB_I32) {
            memcpy(&narrow_int, (const char *)src + i * sizeof(narrow_int), sizeof(narrow_int));
            dst[i] = (double)narrow_int;
        } else {
            memcpy(&wide_int, (const char *)src + i * sizeof(wide_int), sizeof(wide_int));
            dst[i] = (double)wide_int;
        }
    }
}

void fib_dtype_to_f64(enum fib_dtype dtype, const void *src, double *dst, size_t count)
{
    if (dtype == FIB_F64)
        memcpy(dst, src, count * sizeof(*dst));
    else if (fib_dtype_is_float(dtype))
        through_f32(dtype, src, dst, count);
    else
        ints_to_f64(dtype, src, dst, count);
}
