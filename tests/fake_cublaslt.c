/* The entry points of cuBLASLt that the adapter uses, each noting what it was given. */
#include "tests/fake_cublaslt.h"

#include <stdlib.h>
#include <string.h>

static struct fake_cublaslt state;

struct fake_cublaslt *fake_cublaslt_state(void)
{
    return &state;
}

static void *make(size_t bytes)
{
    state.live++;
    return calloc(1, bytes);
}

static cublasStatus_t drop(void *object)
{
    state.live--;
    free(object);
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return state.version;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_INTERNAL_ERROR:
        return "CUBLAS_STATUS_INTERNAL_ERROR";
    default:
        return "CUBLAS_STATUS_OTHER";
    }
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = make(1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return drop(handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t scale_type)
{
    if (state.desc_status != CUBLAS_STATUS_SUCCESS)
        return state.desc_status;
    struct fake_desc *desc = make(sizeof(*desc));
    desc->compute = compute;
    desc->scale_type = scale_type;
    desc->fast_accumulation = -1;
    *out = (cublasLtMatmulDesc_t)(void *)desc;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return drop(desc);
}

/* The field of an attribute, and its size; NULL for attributes nobody should set. */
static void *desc_field(struct fake_desc *desc, cublasLtMatmulDescAttributes_t attribute,
                        size_t *bytes)
{
    *bytes = sizeof(int32_t);
    switch ((int)attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return &desc->transa;
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return &desc->transb;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return &desc->epilogue;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        return &desc->bias_type;
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
        *bytes = sizeof(int8_t);
        return &desc->fast_accumulation;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        *bytes = sizeof(void *);
        return &desc->bias;
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
        *bytes = sizeof(void *);
        return &desc->a_scale;
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
        *bytes = sizeof(void *);
        return &desc->b_scale;
    default:
        return NULL;
    }
}

static cublasStatus_t store(void *field, size_t field_bytes, const void *value, size_t bytes)
{
    if (!field || field_bytes != bytes)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(field, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    size_t field_bytes;
    void *const field = desc_field((struct fake_desc *)(void *)desc, attribute, &field_bytes);
    return store(field, field_bytes, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType_t type,
                                          uint64_t rows, uint64_t cols, int64_t ld)
{
    struct fake_layout *layout = make(sizeof(*layout));
    *layout = (struct fake_layout){.type = type, .rows = rows, .cols = cols, .ld = ld, .batch = 1};
    *out = (cublasLtMatrixLayout_t)(void *)layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return drop(layout);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout_in,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes)
{
    struct fake_layout *layout = (struct fake_layout *)(void *)layout_in;
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
        return store(&layout->batch, sizeof(layout->batch), value, bytes);
    if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
        return store(&layout->stride, sizeof(layout->stride), value, bytes);
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    *out = make(1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return drop(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    (void)preference;
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return store(&state.workspace_limit, sizeof(state.workspace_limit), value, bytes);
    if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        return store(&state.schemes, sizeof(state.schemes), value, bytes);
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t left,
                                              cublasLtMatrixLayout_t right,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int *found)
{
    (void)handle;
    (void)left;
    (void)right;
    (void)c;
    (void)out;
    (void)preference;
    state.desc = *(const struct fake_desc *)(const void *)desc;
    state.requested = requested;
    *found = 0;
    if (state.heuristic_status != CUBLAS_STATUS_SUCCESS)
        return state.heuristic_status;
    for (; *found < state.offered && *found < requested; (*found)++) {
        cublasLtMatmulHeuristicResult_t *result = &results[*found];
        memset(result, 0, sizeof(*result));
        result->algo.data[0] = 60 + (uint64_t)*found;
        if (state.bad_states >> *found & 1)
            result->state = CUBLAS_STATUS_NOT_SUPPORTED;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void *value, size_t bytes, size_t *written)
{
    const int32_t id = (int32_t)algo->data[0];
    const int32_t wide[] = {id, 23, 3, 2, id == 61, 0, 36};
    const uint16_t narrow[] = {0, 4}; /* inner shape, cluster */
    const size_t at = (size_t)attribute;
    *written = bytes;
    if (at >= CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID)
        return store(value, sizeof(narrow[0]), &narrow[at - CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID],
                     bytes);
    return store(value, sizeof(wide[0]), &wide[at], bytes);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *left, cublasLtMatrixLayout_t left_layout,
                              const void *right, cublasLtMatrixLayout_t right_layout,
                              const void *beta, const void *c, cublasLtMatrixLayout_t c_layout,
                              void *out, cublasLtMatrixLayout_t out_layout,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    (void)handle;
    (void)c_layout;
    (void)stream;
    state.matmul_count++;
    state.call = (struct fake_call){
        .desc = *(const struct fake_desc *)(const void *)desc,
        .left_layout = *(const struct fake_layout *)(const void *)left_layout,
        .right_layout = *(const struct fake_layout *)(const void *)right_layout,
        .out_layout = *(const struct fake_layout *)(const void *)out_layout,
        .left = left,
        .right = right,
        .c = c,
        .out = out,
        .alpha = *(const float *)alpha,
        .beta = *(const float *)beta,
        .algo_id = algo->data[0],
        .workspace = workspace,
        .workspace_bytes = workspace_bytes,
    };
    if (state.on_matmul)
        state.on_matmul(state.context, algo->data[0]);
    return state.matmul_status;
}
