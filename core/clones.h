/* Hot loops compiled for several instruction sets, the best one picked when the program loads.
 *
 * Put FIB_CLONES in front of a function whose loop the compiler vectorises. Every clone gives the
 * same bits: nothing here may contract or reassociate floating point, and explicit fma() is exact
 * with or without the instruction. The macro is empty where clones do not work: other compilers and
 * architectures, C libraries without ifunc, and sanitizer builds, whose instrumentation must not
 * run inside an ifunc resolver. Define FIB_NO_CLONES to turn it off by hand. */
#ifndef FIB_CORE_CLONES_H
#define FIB_CORE_CLONES_H

#include <limits.h> /* any libc header, for __GLIBC__ */

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) &&       \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(FIB_NO_CLONES)
#define FIB_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FIB_CLONES
#endif

/* Helpers that a cloned function calls must be inlined into it, or they stay baseline code. Those
 * in a header may also serve a device's kernels. */
#ifdef __CUDACC__
#define FIB_INLINE static __host__ __device__ __forceinline__
#else
#define FIB_INLINE static inline __attribute__((always_inline))
#endif

#endif
