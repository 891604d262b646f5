/* The list of families, in the order of `list`. */
#include "routines/routines.h"

const struct fib_family *const fib_families[] = {
    &fib_family_attention,    &fib_family_sparse_attention,
    &fib_family_gemm,         &fib_family_moe,
    &fib_family_moe_comm,     &fib_family_allreduce_comm,
    &fib_family_mixed_comm,   &fib_family_norm,
    &fib_family_quantization, &fib_family_sampling,
    &fib_family_topk_varlen,  &fib_family_rope,
    &fib_family_mamba,        &fib_family_gdn,
    &fib_family_kda,
};
const size_t fib_family_count = sizeof(fib_families) / sizeof(fib_families[0]);
