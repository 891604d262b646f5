/* Element types of 16, 32 and 8 bits as 16-byte vectors: predicated loads and stores with cache
 * hints, exact widening to float32, rounding conversions. Loads and stores carry their predicate
 * inside the instruction, so that a partly filled vector costs no branch. */
#ifndef FIB_KERNELS_COMMON_VEC_CUH
#define FIB_KERNELS_COMMON_VEC_CUH

#include <stdint.h>

#define FIB_DEV static __device__ __forceinline__
#define FIB_DEV_MEMBER __device__ __forceinline__

/* Hints, replaceable at build time to compare them: "" is the default policy. */
#ifndef FIB_LOAD_HINT
#define FIB_LOAD_HINT ""
#endif
#ifndef FIB_STORE_HINT
#define FIB_STORE_HINT ""
#endif

/* FP8 conversion needs compute capability 8.9; below it, code that would use it stops. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
#define FIB_SM89(...) __trap()
#else
#define FIB_SM89(...) asm(__VA_ARGS__)
#endif

namespace fib
{

enum elem { BF16, F16, F32 };

template <elem E> struct vec_of {
    static constexpr int count = E == F32 ? 4 : 8; /* elements in 16 bytes */
    static constexpr int bytes = E == F32 ? 4 : 2; /* of one element */
};

#define FIB_LOAD16(space_, volatile_, v_, address_, live_)                                         \
    asm volatile_("{\n\t.reg .pred p;\n\t"                                                         \
                  "setp.ne.u32 p, %5, 0;\n\t"                                                      \
                  "mov.b32 %0, 0;\n\tmov.b32 %1, 0;\n\tmov.b32 %2, 0;\n\tmov.b32 %3, 0;\n\t"       \
                  "@p ld.global" space_ ".v4.b32 {%0, %1, %2, %3}, [%4];\n\t}"                     \
                  : "=&r"((v_).x), "=&r"((v_).y), "=&r"((v_).z), "=&r"((v_).w)                     \
                  : "l"(address_), "r"((uint32_t)(live_)))

/* Data that is read once. Volatile: loads keep their order, in front of everything that waits. Not
 * .nc, which the assembler may move above a wait for the kernel that wrote the data. */
FIB_DEV uint4 load_once(const void *address, bool live)
{
    uint4 v;
    FIB_LOAD16(FIB_LOAD_HINT, volatile, v, address, live);
    return v;
}

/* Data that all rows share (weights): stays in the first-level cache, free to be moved. */
FIB_DEV uint4 load_shared_by_rows(const void *address, bool live)
{
    uint4 v;
    FIB_LOAD16(".nc", , v, address, live);
    return v;
}

FIB_DEV void store16(void *address, uint4 v, bool live)
{
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %5, 0;\n\t"
                 "@p st.global" FIB_STORE_HINT
                 ".v4.b32 [%0], {%1, %2, %3, %4};\n\t}" ::"l"(address),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"((uint32_t)live)
                 : "memory");
}

FIB_DEV void store8(void *address, uint2 v, bool live)
{
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %3, 0;\n\t"
                 "@p st.global" FIB_STORE_HINT ".v2.b32 [%0], {%1, %2};\n\t}" ::"l"(address),
                 "r"(v.x), "r"(v.y), "r"((uint32_t)live)
                 : "memory");
}

FIB_DEV float widen_f16(uint16_t bits)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits));
    return f;
}

template <elem E> FIB_DEV void widen2(uint32_t pair, float *h)
{
    if (E == BF16) {
        h[0] = __uint_as_float(pair << 16);
        h[1] = __uint_as_float(pair & 0xffff0000u);
    } else {
        h[0] = widen_f16((uint16_t)pair);
        h[1] = widen_f16((uint16_t)(pair >> 16));
    }
}

/* The first element of `pair` lies in its low half. */
template <elem E> FIB_DEV uint32_t narrow2(float low, float high)
{
    uint32_t pair;
    if (E == BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

template <elem E> FIB_DEV void widen(const uint4 &v, float *h)
{
    if (E == F32) {
        h[0] = __uint_as_float(v.x);
        h[1] = __uint_as_float(v.y);
        h[2] = __uint_as_float(v.z);
        h[3] = __uint_as_float(v.w);
    } else {
        widen2<E>(v.x, h);
        widen2<E>(v.y, h + 2);
        widen2<E>(v.z, h + 4);
        widen2<E>(v.w, h + 6);
    }
}

template <elem E> FIB_DEV uint4 narrow(const float *h)
{
    if (E == F32)
        return make_uint4(__float_as_uint(h[0]), __float_as_uint(h[1]), __float_as_uint(h[2]),
                          __float_as_uint(h[3]));
    return make_uint4(narrow2<E>(h[0], h[1]), narrow2<E>(h[2], h[3]), narrow2<E>(h[4], h[5]),
                      narrow2<E>(h[6], h[7]));
}

/* Saturating: what is too large, infinity too, becomes the largest finite code; NaN stays NaN. */
FIB_DEV uint16_t narrow2_e4m3(float low, float high)
{
    uint16_t pair = 0;
    FIB_SM89("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
}

FIB_DEV uint16_t narrow2_e5m2(float low, float high)
{
    uint16_t pair = 0;
    FIB_SM89("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
}

FIB_DEV uint32_t join(uint16_t low, uint16_t high)
{
    return (uint32_t)low | (uint32_t)high << 16;
}

/* 8 values to 8 codes; `e5m2` is the same for all threads. */
FIB_DEV uint2 narrow_fp8(const float *h, bool e5m2)
{
    if (e5m2)
        return make_uint2(join(narrow2_e5m2(h[0], h[1]), narrow2_e5m2(h[2], h[3])),
                          join(narrow2_e5m2(h[4], h[5]), narrow2_e5m2(h[6], h[7])));
    return make_uint2(join(narrow2_e4m3(h[0], h[1]), narrow2_e4m3(h[2], h[3])),
                      join(narrow2_e4m3(h[4], h[5]), narrow2_e4m3(h[6], h[7])));
}

/* Single elements, for rows that no vector fits. */
template <elem E> FIB_DEV float load1(const void *base, int64_t index)
{
    if (E == F32)
        return ((const float *)base)[index];
    const uint16_t bits = ((const uint16_t *)base)[index];
    return E == BF16 ? __uint_as_float((uint32_t)bits << 16) : widen_f16(bits);
}

template <elem E> FIB_DEV void store1(void *base, int64_t index, float value)
{
    if (E == F32)
        ((float *)base)[index] = value;
    else
        ((uint16_t *)base)[index] = (uint16_t)narrow2<E>(value, 0.0f);
}

FIB_DEV void store1_fp8(void *base, int64_t index, float value, bool e5m2)
{
    ((uint8_t *)base)[index] =
        (uint8_t)(e5m2 ? narrow2_e5m2(value, 0.0f) : narrow2_e4m3(value, 0.0f));
}

} // namespace fib

#endif
