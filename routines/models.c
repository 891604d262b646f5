/* Published model shapes for --model. Every number is from the config.json that the publisher
 * ships with the weights (repository named in `source`); projections are derived from it:
 * qkv = (query heads + 2 KV heads) x head width, gate and up side by side. */
#include "routines/routines.h"

#define SHAPES(name_, source_, family_, words_)                                                    \
    {                                                                                              \
        .name = (name_), .family = (family_), .words = (words_), .source = (source_)               \
    }
/* What depends on the hidden size alone. */
#define WIDTH(name_, source_, hidden)                                                              \
    SHAPES(name_, source_, "norm", "--hidden_size " hidden),                                       \
        SHAPES(name_, source_, "quantization", "--k " hidden),                                     \
        SHAPES(name_, source_, "allreduce_comm", "--hidden_size " hidden)
#define ATTENTION(name_, source_, q_heads, kv_heads, width)                                        \
    SHAPES(name_, source_, "attention",                                                            \
           "--num_qo_heads " q_heads " --num_kv_heads " kv_heads " --head_dim_qk " width           \
           " --head_dim_vo " width)
#define ROPE(name_, source_, q_heads, kv_heads, width, rotary, theta)                              \
    SHAPES(name_, source_, "rope",                                                                 \
           "--num_qo_heads " q_heads " --num_kv_heads " kv_heads " --head_dim " width              \
           " --rotary_dim " rotary " --rope_theta " theta)
/* Multi-head latent attention: widths of prefill, and the compressed ones of decode. */
#define LATENT(name_, source_, heads)                                                              \
    SHAPES(name_, source_, "attention",                                                            \
           "--num_qo_heads " heads " --num_kv_heads " heads " --head_dim_qk 192 --head_dim_vo 128" \
           " --head_dim_ckv 512 --head_dim_kpe 64"),                                               \
        SHAPES(name_, source_, "rope",                                                             \
               "--num_qo_heads " heads " --num_kv_heads 1 --head_dim 576 --rotary_dim 64"          \
               " --no_rope_dim 512")
#define VOCABULARY(name_, source_, entries)                                                        \
    SHAPES(name_, source_, "sampling", "--vocab_size " entries)
#define MOE(name_, source_, hidden, inner, experts, top_k, routing)                                \
    SHAPES(name_, source_, "moe",                                                                  \
           "--hidden_size " hidden " --intermediate_size " inner " --num_experts " experts         \
           " --top_k " top_k " " routing),                                                         \
        SHAPES(name_, source_, "moe_comm",                                                         \
               "--hidden_size " hidden " --num_experts " experts " --top_k " top_k)
/* One case a projection; --m is the caller's. */
#define GEMM(name_, source_, n, k) SHAPES(name_, source_, "gemm", "--n " n " --k " k " --zip n,k")

#define RENORMALIZE "--routing_method renormalize"
#define DEEPSEEK(groups, chosen, factor)                                                           \
    "--routing_method deepseek_v3 --n_group " groups " --topk_group " chosen                       \
    " --routed_scaling_factor " factor " --use_routing_bias"

#define LLAMA_8B "llama-3.1-8b", "meta-llama/Llama-3.1-8B config.json"
#define LLAMA_70B "llama-3.1-70b", "meta-llama/Llama-3.1-70B config.json"
#define LLAMA_405B "llama-3.1-405b", "meta-llama/Llama-3.1-405B config.json"
#define QWEN_8B "qwen3-8b", "Qwen/Qwen3-8B config.json"
#define QWEN_32B "qwen3-32b", "Qwen/Qwen3-32B config.json"
#define QWEN_235B "qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B config.json"
#define DEEPSEEK_V3 "deepseek-v3", "deepseek-ai/DeepSeek-V3 config.json"
#define DEEPSEEK_R1 "deepseek-r1", "deepseek-ai/DeepSeek-R1 config.json"
#define GPT_OSS "gpt-oss-120b", "openai/gpt-oss-120b config.json"
#define MISTRAL "mistral-7b", "mistralai/Mistral-7B-v0.3 config.json"
#define MIXTRAL "mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1 config.json"
#define GEMMA_2 "gemma-2-27b", "google/gemma-2-27b config.json"
#define GEMMA_3 "gemma-3-27b", "google/gemma-3-27b-it config.json"
#define PHI_4 "phi-4", "microsoft/phi-4 config.json"
#define KIMI_K2 "kimi-k2", "moonshotai/Kimi-K2-Instruct config.json"
#define GLM_4_5 "glm-4.5", "zai-org/GLM-4.5 config.json"

/* The model macros above expand to two arguments, so they pass through one more level. */
#define ROW(macro, ...) macro(__VA_ARGS__)

/* q_a with kv_a, q_b, kv_b, output, gate and up and down of the dense layers. */
#define DEEPSEEK_N "2112,24576,32768,7168,36864,7168"
#define DEEPSEEK_K "7168,1536,512,16384,7168,18432"

const struct fib_model fib_models[] = {
    ROW(WIDTH, LLAMA_8B, "4096"),
    ROW(ATTENTION, LLAMA_8B, "32", "8", "128"),
    ROW(ROPE, LLAMA_8B, "32", "8", "128", "128", "500000"),
    ROW(VOCABULARY, LLAMA_8B, "128256"),
    ROW(GEMM, LLAMA_8B, "6144,4096,28672,4096", "4096,4096,4096,14336"),

    ROW(WIDTH, LLAMA_70B, "8192"),
    ROW(ATTENTION, LLAMA_70B, "64", "8", "128"),
    ROW(ROPE, LLAMA_70B, "64", "8", "128", "128", "500000"),
    ROW(VOCABULARY, LLAMA_70B, "128256"),
    ROW(GEMM, LLAMA_70B, "10240,8192,57344,8192", "8192,8192,8192,28672"),

    ROW(WIDTH, LLAMA_405B, "16384"),
    ROW(ATTENTION, LLAMA_405B, "128", "8", "128"),
    ROW(ROPE, LLAMA_405B, "128", "8", "128", "128", "500000"),
    ROW(VOCABULARY, LLAMA_405B, "128256"),
    ROW(GEMM, LLAMA_405B, "18432,16384,106496,16384", "16384,16384,16384,53248"),

    ROW(WIDTH, QWEN_8B, "4096"),
    ROW(ATTENTION, QWEN_8B, "32", "8", "128"),
    ROW(ROPE, QWEN_8B, "32", "8", "128", "128", "1000000"),
    ROW(VOCABULARY, QWEN_8B, "151936"),
    ROW(GEMM, QWEN_8B, "6144,4096,24576,4096", "4096,4096,4096,12288"),

    ROW(WIDTH, QWEN_32B, "5120"),
    ROW(ATTENTION, QWEN_32B, "64", "8", "128"),
    ROW(ROPE, QWEN_32B, "64", "8", "128", "128", "1000000"),
    ROW(VOCABULARY, QWEN_32B, "151936"),
    ROW(GEMM, QWEN_32B, "10240,5120,51200,5120", "5120,8192,5120,25600"),

    ROW(WIDTH, QWEN_235B, "4096"),
    ROW(ATTENTION, QWEN_235B, "64", "4", "128"),
    ROW(ROPE, QWEN_235B, "64", "4", "128", "128", "1000000"),
    ROW(VOCABULARY, QWEN_235B, "151936"),
    ROW(MOE, QWEN_235B, "4096", "1536", "128", "8", RENORMALIZE),
    ROW(GEMM, QWEN_235B, "9216,4096", "4096,8192"),

    ROW(WIDTH, DEEPSEEK_V3, "7168"),
    ROW(LATENT, DEEPSEEK_V3, "128"),
    ROW(VOCABULARY, DEEPSEEK_V3, "129280"),
    ROW(MOE, DEEPSEEK_V3, "7168", "2048", "256", "8", DEEPSEEK("8", "4", "2.5")),
    ROW(GEMM, DEEPSEEK_V3, DEEPSEEK_N, DEEPSEEK_K),

    ROW(WIDTH, DEEPSEEK_R1, "7168"),
    ROW(LATENT, DEEPSEEK_R1, "128"),
    ROW(VOCABULARY, DEEPSEEK_R1, "129280"),
    ROW(MOE, DEEPSEEK_R1, "7168", "2048", "256", "8", DEEPSEEK("8", "4", "2.5")),
    ROW(GEMM, DEEPSEEK_R1, DEEPSEEK_N, DEEPSEEK_K),

    ROW(WIDTH, GPT_OSS, "2880"),
    ROW(ATTENTION, GPT_OSS, "64", "8", "64"),
    ROW(ROPE, GPT_OSS, "64", "8", "64", "64", "150000"),
    ROW(VOCABULARY, GPT_OSS, "201088"),
    ROW(MOE, GPT_OSS, "2880", "2880", "128", "4", RENORMALIZE),
    ROW(GEMM, GPT_OSS, "5120,2880", "2880,4096"),

    ROW(WIDTH, MISTRAL, "4096"),
    ROW(ATTENTION, MISTRAL, "32", "8", "128"),
    ROW(ROPE, MISTRAL, "32", "8", "128", "128", "1000000"),
    ROW(VOCABULARY, MISTRAL, "32768"),
    ROW(GEMM, MISTRAL, "6144,4096,28672,4096", "4096,4096,4096,14336"),

    ROW(WIDTH, MIXTRAL, "4096"),
    ROW(ATTENTION, MIXTRAL, "32", "8", "128"),
    ROW(ROPE, MIXTRAL, "32", "8", "128", "128", "1000000"),
    ROW(VOCABULARY, MIXTRAL, "32000"),
    ROW(MOE, MIXTRAL, "4096", "14336", "8", "2", RENORMALIZE),
    ROW(GEMM, MIXTRAL, "6144,4096", "4096,4096"),

    ROW(WIDTH, GEMMA_2, "4608"),
    ROW(ATTENTION, GEMMA_2, "32", "16", "128"),
    ROW(ROPE, GEMMA_2, "32", "16", "128", "128", "10000"),
    ROW(VOCABULARY, GEMMA_2, "256000"),
    ROW(GEMM, GEMMA_2, "8192,4608,73728,4608", "4608,4096,4608,36864"),

    /* No sampling row: the embedding is padded beyond the tokenizer, and sources differ. */
    ROW(WIDTH, GEMMA_3, "5376"),
    ROW(ATTENTION, GEMMA_3, "32", "16", "128"),
    ROW(ROPE, GEMMA_3, "32", "16", "128", "128", "1000000"),
    ROW(GEMM, GEMMA_3, "8192,5376,43008,5376", "5376,4096,5376,21504"),

    ROW(WIDTH, PHI_4, "5120"),
    ROW(ATTENTION, PHI_4, "40", "10", "128"),
    ROW(ROPE, PHI_4, "40", "10", "128", "128", "250000"),
    ROW(VOCABULARY, PHI_4, "100352"),
    ROW(GEMM, PHI_4, "7680,5120,35840,5120", "5120,5120,5120,17920"),

    ROW(WIDTH, KIMI_K2, "7168"),
    ROW(LATENT, KIMI_K2, "64"),
    ROW(VOCABULARY, KIMI_K2, "163840"),
    ROW(MOE, KIMI_K2, "7168", "2048", "384", "8", DEEPSEEK("1", "1", "2.827")),
    ROW(GEMM, KIMI_K2, "2112,12288,16384,7168,36864,7168", "7168,1536,512,8192,7168,18432"),

    ROW(WIDTH, GLM_4_5, "5120"),
    ROW(ATTENTION, GLM_4_5, "96", "8", "128"),
    ROW(ROPE, GLM_4_5, "96", "8", "128", "64", "1000000"),
    ROW(VOCABULARY, GLM_4_5, "151552"),
    ROW(MOE, GLM_4_5, "5120", "1536", "160", "8", DEEPSEEK("1", "1", "2.5")),
    ROW(GEMM, GLM_4_5, "14336,5120", "5120,12288"),
};
const size_t fib_model_count = sizeof(fib_models) / sizeof(fib_models[0]);
