/* How one element of a tensor is drawn, rounded to its format and summed up: the arithmetic that
 * the host's loops and a device's kernels share, so that both give the same bits.
 *
 * Integer operations, and float operations that are rounded correctly everywhere: both sides must
 * be compiled without contraction. */
#ifndef FIB_CORE_ELEMENT_H
#define FIB_CORE_ELEMENT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/clones.h"

/* 2^64 / golden ratio, odd: consecutive multiples of it are spread over all 64 bits. */
static const uint64_t fib_weyl_step = UINT64_C(0x9e3779b97f4a7c15);

/* Finaliser of splitmix64: a bijection in which every input bit moves about half the output. */
FIB_INLINE uint64_t fib_mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* A step of one of the lanes of a checksum. */
FIB_INLINE uint64_t fib_checksum_step(uint64_t lane, uint64_t word)
{
    /* The rotation carries high bits down: a product alone never does. */
    const uint64_t x = (lane ^ word) * UINT64_C(0xff51afd7ed558ccd);
    return x << 29 | x >> 35;
}

/* ---- draws ---- */

/* -ln(y) for a normal y in (0, 1]: exponent by integer operations, the mantissa in
 * [sqrt(1/2), sqrt(2)) by a polynomial (relative error about 2e-7). */
FIB_INLINE float fib_minus_log(float y)
{
    int32_t bits;
    memcpy(&bits, &y, sizeof(bits));
    const int32_t exponent = (bits - 0x3f3504f3) >> 23;
    const int32_t mantissa = bits - exponent * (1 << 23);
    float m;
    memcpy(&m, &mantissa, sizeof(m));
    const float f = m - 1.0f;
    float p = -0.0989535074f;
    p = fmaf(p, f, 0.161262479f);
    p = fmaf(p, f, -0.172782061f);
    p = fmaf(p, f, 0.199133479f);
    p = fmaf(p, f, -0.249689070f);
    p = fmaf(p, f, 0.333346060f);
    p = fmaf(p, f, -0.500003751f);
    p = fmaf(p, f, 1.0f);
    return -fmaf((float)exponent, 0.693147181f, p * f);
}

/* Quantile of the standard normal for probability (1 + x) / 2, where x is an odd multiple of 2^-24
 * in (-1, 1). With w = -ln(1 - x^2) the quotient of the quantile and x is a smooth function of w
 * below 5 and of sqrt(w) above; both were fitted by interpolation at Chebyshev nodes (relative
 * errors 6e-7 and 4e-7). Both are evaluated for every element, because a select vectorises and a
 * branch does not. */
FIB_INLINE float fib_normal_quantile(float x)
{
    const float w = fib_minus_log(fmaf(-x, x, 1.0f));
    const float c = w - 2.5f;
    float centre = 5.03715779e-07f;
    centre = fmaf(centre, c, -4.48778810e-06f);
    centre = fmaf(centre, c, -6.41128474e-06f);
    centre = fmaf(centre, c, 3.07195459e-04f);
    centre = fmaf(centre, c, -1.77240301e-03f);
    centre = fmaf(centre, c, -5.90574539e-03f);
    centre = fmaf(centre, c, 0.348802182f);
    centre = fmaf(centre, c, 2.12331310f);
    const float t = sqrtf(w < 0.0f ? 0.0f : w) - 3.0f;
    float tail = 1.53051365e-03f;
    tail = fmaf(tail, t, -5.08513818e-03f);
    tail = fmaf(tail, t, 8.28658655e-03f);
    tail = fmaf(tail, t, -1.07920060e-02f);
    tail = fmaf(tail, t, 1.33225915e-02f);
    tail = fmaf(tail, t, 1.41657922f);
    tail = fmaf(tail, t, 4.00643502f);
    return x * (w < 5.0f ? centre : tail);
}

/* Each draw takes the top bits of its element's word. */
FIB_INLINE float fib_draw_normal(uint64_t word)
{
    const int32_t top24 = (int32_t)(word >> 40);
    return fib_normal_quantile((float)(2 * top24 + 1 - (1 << 24)) * 0x1p-24f);
}

FIB_INLINE float fib_draw_uniform(uint64_t word)
{
    return (float)(int32_t)(word >> 40) * 0x1p-24f;
}

FIB_INLINE float fib_draw_int(uint64_t word)
{
    return (float)((int32_t)(((word >> 32) * 9) >> 32) - 4);
}

/* ---- float32 to the narrow formats ---- */

FIB_INLINE float fib_bits_to_f32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

FIB_INLINE uint32_t fib_f32_to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

FIB_INLINE uint32_t fib_select_u32(bool condition, uint32_t yes, uint32_t no)
{
    return condition ? yes : no;
}

/* Code of a float32: `limit` and everything above it becomes over_code. A result below the smallest
 * normal is rounded by adding a power of two whose last place is the format's smallest number. */
FIB_INLINE uint32_t fib_narrow(float value, int mantissa_bits, int bias, uint32_t limit,
                               uint32_t over_code, uint32_t nan_code, uint32_t sign_shift)
{
    const uint32_t bits = fib_f32_to_bits(value);
    const uint32_t magnitude = bits & 0x7fffffffu;
    const uint32_t sign = (bits & 0x80000000u) >> sign_shift;
    const int down = 23 - mantissa_bits;
    const uint32_t magic = (uint32_t)(127 - bias + 1 + down) << 23;
    const uint32_t tiny =
        fib_f32_to_bits(fib_bits_to_f32(magnitude) + fib_bits_to_f32(magic)) - magic;
    const uint32_t odd = (magnitude >> down) & 1;
    const uint32_t rebias = (uint32_t)(127 - bias) << 23;
    const uint32_t normal = (magnitude - rebias + (UINT32_C(1) << (down - 1)) - 1 + odd) >> down;
    const uint32_t first_normal = (uint32_t)(127 - bias + 1) << 23;
    uint32_t code = fib_select_u32(magnitude < first_normal, tiny, normal);
    code = fib_select_u32(magnitude >= limit, over_code, code) | sign;
    return fib_select_u32(magnitude > 0x7f800000u, nan_code, code);
}

FIB_INLINE uint16_t fib_narrow_bf16(float value)
{
    const uint32_t bits = fib_f32_to_bits(value);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return (uint16_t)fib_select_u32((bits & 0x7fffffffu) > 0x7f800000u, 0x7fc0, rounded);
}

FIB_INLINE uint16_t fib_narrow_f16(float value)
{
    /* 65520 is half-way between the largest number and what would follow it: it rounds up. */
    return (uint16_t)fib_narrow(value, 10, 15, 0x477ff000u, 0x7c00, 0x7e00, 16);
}

FIB_INLINE uint8_t fib_narrow_e4m3(float value)
{
    return (uint8_t)fib_narrow(value, 3, 7, 0x43e00000u, 0x7e, 0x7f, 24);
}

FIB_INLINE uint8_t fib_narrow_e5m2(float value)
{
    return (uint8_t)fib_narrow(value, 2, 15, 0x47600000u, 0x7b, 0x7f, 24);
}

#endif
