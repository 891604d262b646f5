/* Descriptors, layouts and the search of cuBLASLt for the products of the gemm family. */
#include "backends/cublaslt_plan.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"

/* fp8 kernels load 16 bytes at a time along k and write tiles of 16 columns. */
enum { FP8_MULTIPLE = 16 };

static bool is_fp8(enum fib_dtype dtype)
{
    return dtype == FIB_FP8_E4M3 || dtype == FIB_FP8_E5M2;
}

const char *fib_cublaslt_refusal(const struct gemm_shape *shape, char *buffer, size_t buffer_bytes)
{
    if (!is_fp8(shape->a))
        return NULL;
    if (shape->a == FIB_FP8_E5M2 && shape->b == FIB_FP8_E5M2)
        return "cuBLASLt has no product of fp8_e5m2 with fp8_e5m2: make --input_dtype or "
               "--mat2_dtype fp8_e4m3";
    const bool n_fits = shape->n % FP8_MULTIPLE == 0, k_fits = shape->k % FP8_MULTIPLE == 0;
    if (n_fits && k_fits)
        return NULL;
    char n_text[32], k_text[32];
    snprintf(n_text, sizeof(n_text), "--n %lld", (long long)shape->n);
    snprintf(k_text, sizeof(k_text), "--k %lld", (long long)shape->k);
    snprintf(buffer, buffer_bytes,
             "cuBLASLt takes fp8 operands only where --n and --k are multiples of %d: %s%s%s",
             FP8_MULTIPLE, n_fits ? "" : n_text, n_fits || k_fits ? "" : ", ",
             k_fits ? "" : k_text);
    return buffer;
}

static cudaDataType_t type_of(enum fib_dtype dtype)
{
    switch (dtype) {
    case FIB_BF16:
        return CUDA_R_16BF;
    case FIB_F16:
        return CUDA_R_16F;
    case FIB_FP8_E4M3:
        return CUDA_R_8F_E4M3;
    case FIB_FP8_E5M2:
        return CUDA_R_8F_E5M2;
    default:
        assert(dtype == FIB_F32);
        return CUDA_R_32F;
    }
}

/* Product in words, for sentences. */
static void add_product(const struct gemm_shape *s, struct fib_text *out)
{
    fib_text_addf(out, "%s x %s -> %s%s, m %lld n %lld k %lld batch %lld", fib_dtype_name(s->a),
                  fib_dtype_name(s->b), fib_dtype_name(s->out),
                  s->bias ? " with a bfloat16 bias" : "", (long long)s->m, (long long)s->n,
                  (long long)s->k, (long long)s->batch);
}

/* These say that there is no such kernel; all others that something is broken. */
static bool means_unsupported(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
           status == CUBLAS_STATUS_ARCH_MISMATCH;
}

static enum fib_status fail_search(const struct fib_cublaslt *lib, const struct gemm_shape *shape,
                                   cublasStatus_t status, struct fib_error *err)
{
    char version[40];
    struct fib_text product = {0};
    add_product(shape, &product);
    const enum fib_status st =
        fib_fail(err, means_unsupported(status) ? FIB_ERR_UNSUPPORTED : FIB_ERR_DEVICE,
                 "cuBLASLt %s has no kernel for %s (%s)",
                 fib_cublaslt_version_text(lib->get_version(), version, sizeof(version)),
                 fib_text_chars(&product), lib->status_name(status));
    fib_text_free(&product);
    return st;
}

/* One stored matrix of a batch: `inner` elements are contiguous, `outer` times. */
static cublasStatus_t make_layout(const struct fib_cublaslt *lib, enum fib_dtype dtype,
                                  int64_t inner, int64_t outer, int64_t batch,
                                  cublasLtMatrixLayout_t *layout)
{
    const int32_t batch_count = (int32_t)batch;
    const int64_t stride = inner * outer; /* in elements */
    cublasStatus_t st =
        lib->layout_create(layout, type_of(dtype), (uint64_t)inner, (uint64_t)outer, inner);
    if (st == CUBLAS_STATUS_SUCCESS && batch > 1)
        st = lib->layout_set(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch_count,
                             sizeof(batch_count));
    if (st == CUBLAS_STATUS_SUCCESS && batch > 1)
        st = lib->layout_set(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                             sizeof(stride));
    return st;
}

static cublasStatus_t make_layouts(const struct fib_cublaslt *lib, struct fib_cublaslt_plan *plan)
{
    const struct gemm_shape *s = &plan->shape;
    cublasStatus_t st = make_layout(lib, s->b, s->k, s->n, s->batch, &plan->left);
    if (st == CUBLAS_STATUS_SUCCESS)
        st = make_layout(lib, s->a, s->k, s->m, s->batch, &plan->right);
    if (st == CUBLAS_STATUS_SUCCESS)
        st = make_layout(lib, s->out, s->n, s->m, s->batch, &plan->out);
    return st;
}

static cublasStatus_t set_bias(const struct fib_cublaslt *lib, const struct fib_cublaslt_plan *plan)
{
    const uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const int32_t type = CUDA_R_16BF;
    cublasStatus_t st =
        lib->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue));
    if (st == CUBLAS_STATUS_SUCCESS)
        st = lib->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &plan->slot.bias,
                           sizeof(plan->slot.bias));
    if (st == CUBLAS_STATUS_SUCCESS)
        st = lib->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof(type));
    return st;
}

/* The scales stay on the device: a call must see what is there when it runs. Fast accumulation
 * would keep about 14 bits of a whole sum instead of those of a short stretch of it. */
static cublasStatus_t set_scales(const struct fib_cublaslt *lib,
                                 const struct fib_cublaslt_plan *plan)
{
    const int8_t fast = 0;
    cublasStatus_t st = lib->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
                                      &plan->slot.b_scale, sizeof(plan->slot.b_scale));
    if (st == CUBLAS_STATUS_SUCCESS)
        st = lib->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &plan->slot.a_scale,
                           sizeof(plan->slot.a_scale));
    if (st == CUBLAS_STATUS_SUCCESS)
        st = lib->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof(fast));
    return st;
}

static cublasStatus_t make_desc(const struct fib_cublaslt *lib, struct fib_cublaslt_plan *plan)
{
    const int32_t transposed = CUBLAS_OP_T, plain = CUBLAS_OP_N;
    cublasStatus_t st = lib->desc_create(&plan->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (st == CUBLAS_STATUS_SUCCESS)
        st =
            lib->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed));
    if (st == CUBLAS_STATUS_SUCCESS)
        st = lib->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_TRANSB, &plain, sizeof(plain));
    if (st == CUBLAS_STATUS_SUCCESS && plan->shape.bias)
        st = set_bias(lib, plan);
    if (st == CUBLAS_STATUS_SUCCESS && plan->shape.scaled)
        st = set_scales(lib, plan);
    return st;
}

enum fib_status fib_cublaslt_plan_create(const struct fib_cublaslt *lib,
                                         const struct gemm_shape *shape,
                                         const struct fib_cublaslt_slot *slot,
                                         struct fib_cublaslt_plan *plan, struct fib_error *err)
{
    *plan = (struct fib_cublaslt_plan){.shape = *shape, .slot = *slot};
    cublasStatus_t st = make_desc(lib, plan);
    if (st == CUBLAS_STATUS_SUCCESS)
        st = make_layouts(lib, plan);
    if (st == CUBLAS_STATUS_SUCCESS)
        return FIB_OK;
    fib_cublaslt_plan_free(lib, plan);
    return fail_search(lib, shape, st, err);
}

void fib_cublaslt_plan_free(const struct fib_cublaslt *lib, struct fib_cublaslt_plan *plan)
{
    if (plan->out)
        lib->layout_destroy(plan->out);
    if (plan->right)
        lib->layout_destroy(plan->right);
    if (plan->left)
        lib->layout_destroy(plan->left);
    if (plan->desc)
        lib->desc_destroy(plan->desc);
    *plan = (struct fib_cublaslt_plan){0};
}

/* Partial sums of a split k are kept in float32. The library would also round them to the output's
 * format, which loses results whose parts cancel. */
static cublasStatus_t set_preference(const struct fib_cublaslt *lib, enum fib_dtype out,
                                     size_t workspace_bytes, cublasLtMatmulPreference_t preference)
{
    const uint64_t limit = workspace_bytes;
    const uint32_t schemes =
        out == FIB_F32 ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const cublasStatus_t st = lib->preference_set(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof(limit));
    return st == CUBLAS_STATUS_SUCCESS
               ? lib->preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                     &schemes, sizeof(schemes))
               : st;
}

/* Keeps the candidates whose own state says that they run. */
static void keep_good(struct fib_cublaslt_candidates *candidates, int found)
{
    candidates->count = 0;
    for (int i = 0; i < found; i++)
        if (candidates->items[i].state == CUBLAS_STATUS_SUCCESS)
            candidates->items[candidates->count++] = candidates->items[i];
}

enum fib_status fib_cublaslt_plan_search(const struct fib_cublaslt *lib, cublasLtHandle_t handle,
                                         const struct fib_cublaslt_plan *plan,
                                         size_t workspace_bytes,
                                         struct fib_cublaslt_candidates *candidates,
                                         struct fib_error *err)
{
    cublasLtMatmulPreference_t preference = NULL;
    int found = 0;
    cublasStatus_t st = lib->preference_create(&preference);
    if (st == CUBLAS_STATUS_SUCCESS)
        st = set_preference(lib, plan->shape.out, workspace_bytes, preference);
    if (st == CUBLAS_STATUS_SUCCESS)
        st = lib->get_heuristic(handle, plan->desc, plan->left, plan->right, plan->out, plan->out,
                                preference, FIB_CUBLASLT_MAX_CANDIDATES, candidates->items, &found);
    if (preference)
        lib->preference_destroy(preference);
    keep_good(candidates, st == CUBLAS_STATUS_SUCCESS ? found : 0);
    if (candidates->count > 0)
        return FIB_OK;
    return fail_search(lib, &plan->shape,
                       st == CUBLAS_STATUS_SUCCESS ? CUBLAS_STATUS_NOT_SUPPORTED : st, err);
}

enum fib_status fib_cublaslt_plan_launch(const struct fib_cublaslt *lib, cublasLtHandle_t handle,
                                         const struct fib_cublaslt_plan *plan,
                                         const cublasLtMatmulAlgo_t *algo,
                                         const struct fib_cublaslt_workspace *workspace,
                                         struct CUstream_st *stream, struct fib_error *err)
{
    const float one = 1.0f, zero = 0.0f;
    const struct fib_cublaslt_slot *slot = &plan->slot;
    const cublasStatus_t st = lib->matmul(
        handle, plan->desc, &one, slot->b, plan->left, slot->a, plan->right, &zero, slot->out,
        plan->out, slot->out, plan->out, algo, workspace->address, workspace->bytes, stream);
    if (st == CUBLAS_STATUS_SUCCESS)
        return FIB_OK;
    return fib_fail(err, FIB_ERR_DEVICE, "cublasLtMatmul failed: %s", lib->status_name(st));
}

/* Appends " name value". */
static void add_number(char *buffer, size_t buffer_bytes, const char *name, long long value)
{
    const size_t used = strlen(buffer);
    snprintf(buffer + used, buffer_bytes - used, "%s%s %lld", used > 0 ? " " : "", name, value);
}

const char *fib_cublaslt_algo_text(const struct fib_cublaslt *lib, const cublasLtMatmulAlgo_t *algo,
                                   char *buffer, size_t buffer_bytes)
{
    static const struct {
        const char *name;
        cublasLtMatmulAlgoConfigAttributes_t attribute;
        size_t bytes;
        long long usual; /* left out when it has this value */
    } parts[] = {
        {"algo", CUBLASLT_ALGO_CONFIG_ID, 4, -1},
        {"tile", CUBLASLT_ALGO_CONFIG_TILE_ID, 4, -1},
        {"stages", CUBLASLT_ALGO_CONFIG_STAGES_ID, 4, -1},
        {"splitk", CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4, -1},
        {"cluster", CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2, 0},
        {"swizzle", CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4, 0},
        {"custom", CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4, 0},
        {"inner", CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2, 0},
    };
    buffer[0] = '\0';
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        uint16_t narrow = 0;
        int32_t wide = 0;
        size_t written = 0;
        void *const value = parts[i].bytes == sizeof(narrow) ? (void *)&narrow : (void *)&wide;
        if (lib->algo_get(algo, parts[i].attribute, value, parts[i].bytes, &written) !=
            CUBLAS_STATUS_SUCCESS)
            continue;
        const long long number = parts[i].bytes == sizeof(narrow) ? narrow : wide;
        if (number != parts[i].usual)
            add_number(buffer, buffer_bytes, parts[i].name, number);
    }
    return buffer;
}
