/* The tables of all families: every row makes sense, lines written for the reference parse, typos
 * and impossible shapes are refused with a sentence. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/text.h"

/* One line or more of each family, as people write them for the reference. */
static const char *const lines[] = {
    "--routine BatchDecodeWithPagedKVCacheWrapper --backends fa2 fa2_tc cudnn trtllm-gen-native "
    "--page_size 16 --batch_size 4 --s_kv 512 --num_qo_heads 32 --num_kv_heads 8 --head_dim_qk 128 "
    "--head_dim_vo 128 --random_actual_seq_len -vv --refcheck --q_dtype bfloat16",
    "--routine BatchDecodeWithPagedKVCacheWrapper --batch_size 2 --s_qo 4 --s_kv 4096 --page_size "
    "32 "
    "--num_qo_heads 32 --num_kv_heads 4 --head_dim_qk 128 --spec_dec_mask full",
    "--routine BatchPrefillWithPagedKVCacheWrapper --backends fa3 prims_ts --page_size 16 "
    "--batch_size 1 --s_qo 256 --s_kv 256 --num_qo_heads 64 --num_kv_heads 8 --head_dim_qk 128 "
    "--causal --q_dtype fp8_e4m3 --kv_dtype nvfp4 --allow_output_mismatch",
    "--routine BatchPrefillWithRaggedKVCacheWrapper --batch_size 2 --s_qo 128 --s_kv 128 "
    "--num_qo_heads 16 --num_kv_heads 16 --head_dim_qk 192 --head_dim_vo 128 --causal",
    "--routine BatchMLAPagedAttentionWrapper --backends fa2 fa3 --page_size 32 --batch_size 8 "
    "--s_kv 1024 --num_qo_heads 128 --num_kv_heads 128 --head_dim_ckv 512 --head_dim_kpe 64 "
    "--mla_is_var_seq auto --mla_cute_dsl_impl modular --autotune",
    "--routine MSAProxyScore --no-causal --q_dtype nvfp4 --max_k_tiles 32",
    "--routine MSASparseAttention --kv_layout paged --s_qo 128 --s_kv 8192 --backends cudsl",
    "--routine trtllm_fp4_block_scale_moe --num_tokens 64 --hidden_size 1024 --intermediate_size "
    "512 "
    "--num_experts 256 --top_k 8 --n_group 8 --topk_group 4 --routed_scaling_factor 2.5 "
    "--use_routing_bias --routing_method deepseek_v3 --activation-type SWIGLU --fp4_mode "
    "mxfp4_bf16",
    "--routine trtllm_fp8_per_tensor_scale_moe --num_tokens 8 --hidden_size 128 "
    "--intermediate_size 128 --num_experts 16 --top_k 1 --routing_method llama4 "
    "--use_routing_scales_on_input",
    "--routine cutlass_fused_moe --num_tokens 8 --hidden_size 128 --intermediate_size 128 "
    "--num_experts 8 --top_k 2 --cutlass_variant nvfp4 --quantized_input --tp_size 2 --ep_size 4",
    "--routine cute_dsl_fp4_block_scale_moe --num_tokens 8 --hidden_size 256 "
    "--intermediate_size 256 --num_experts 32 --top_k 4 --local_expert_offset 0 "
    "--local_num_experts 8 --use_functional_api",
    "--routine b12x_fused_moe --num_tokens 1 --hidden_size 1024 --intermediate_size 2688 "
    "--num_experts 64 --top_k 6 --activation_type relu2 --b12x_quant_mode w4a16",
    "--routine unified_nvfp4_moe --num_tokens 16 --hidden_size 512 --intermediate_size 512 "
    "--num_experts 16 --top_k 2",
    "--routine bgmv_moe --num_tokens 16 --hidden_size 1024 --num_experts 8 --top_k 2 --rank 16 "
    "--num_loras 4 --num_slices 2",
    "--routine moe_a2a_dispatch_combine --num_tokens 128 --hidden_size 1024 --num_experts 64 "
    "--top_k 8 --quant_dtype nvfp4 --real_math --intermediate_size 512 --per_phase_timing",
    "--routine allreduce_fusion --pattern ar_residual_rmsnorm --ar_backend mnnvl --validate",
    "--routine mixed_comm --local_bs_list 1 16 256 --hidden_size 4096 --dtype bfloat16 "
    "--local_tp_size 2 --local_dp_size 1",
    "--routine rmsnorm --batch_size 8 --hidden_size 1024 --refcheck -vv --case_tag \"a, b\"",
    "--routine bmm_fp8 --batch_size 4 --m 4 --n 256 --k 512 --backends cudnn cublas cutlass",
    "--routine mxfp8_quantize --m 64 --k 256 --no_sf_swizzled_layout --alignment 64",
    "--routine nvfp4_quantize --m 256 --k 256 --global_scale 0.5 --do_shuffle",
    "--routine nvfp4_batched_quantize --batch_size 2 --m 64 --k 256",
    "--routine top_k_top_p_sampling_from_logits --batch_size 4 --vocab_size 1000 --top_k 20 "
    "--top_p 0.95 --filter_apply_order joint --input_dtype bfloat16",
    "--routine top_k_page_table_transform --batch_size 4 --num_rows 4 --max_len 512 --top_k 64",
    "--routine top_k_varlen --batch_size 4 --max_seq_len 8192 --backends radix gvr radix_cutlass",
    "--routine apply_llama31_rope --batch_size 2 --seq_len 64 --num_qo_heads 8 --num_kv_heads 2 "
    "--head_dim 128 --rope_theta 500000.0 --rope_scale 8 --interleave",
    "--routine mla_rope_quantize_fp8 --batch_size 2 --seq_len 64 --num_qo_heads 16 "
    "--num_kv_heads 16 --head_dim 192 --no_rope_dim 64",
    "--routine rope_quantize_fp8_append_paged_kv_cache --batch_size 2 --seq_len 64 "
    "--num_qo_heads 8 --num_kv_heads 2 --head_dim 128 --page_size 16 --kv_layout HND",
    "--routine selective_state_update --batch_size 4 --nheads 64 --dim 128 --dstate 128 --ngroups "
    "8 "
    "--has_z --dt_softplus --cache_steps 2 --backends flashinfer triton",
    "--routine gated_delta_rule_decode --batch_size 4 --state_layout nontranspose --backends fla",
    "--routine gated_delta_rule_mtp --batch_size 4 --state_dtype bfloat16 --pool_mode split",
    "--routine chunk_gated_delta_rule --batch_size 2 --s_qo 256",
    "--routine recurrent_kda_prefill --batch_size 1 --s_qo 64 --packed --lower_bound -4.5",
};

/* A line that must be refused, and a part of the sentence. */
struct refusal {
    const char *line, *sentence;
};

#define DECODE "--routine BatchDecodeWithPagedKVCacheWrapper --batch_size 1 --head_dim_qk 64 "
#define HEADS "--num_qo_heads 8 --num_kv_heads 2 "
#define RAGGED "--routine BatchPrefillWithRaggedKVCacheWrapper --batch_size 1 --head_dim_qk 64 "
#define MOE_SHAPE "--num_tokens 4 --hidden_size 256 --intermediate_size 256 --num_experts 8 "
#define TRT "--routine trtllm_fp8_per_tensor_scale_moe " MOE_SHAPE
#define CUTLASS "--routine cutlass_fused_moe " MOE_SHAPE "--top_k 2 "
#define A2A "--routine moe_a2a_dispatch_combine --num_tokens 8 --hidden_size 64 --num_experts 8 "
#define MIXED "--routine mixed_comm --local_bs_list 1 --hidden_size 64 --dtype float16 "
#define ROPE "--batch_size 1 --seq_len 8 --num_qo_heads 8 --num_kv_heads 2 --head_dim 64 "
#define SSU "--routine selective_state_update --batch_size 1 --dim 64 --dstate 64 "
#define GDN_DECODE "--routine gated_delta_rule_decode --batch_size 1 "
#define GDN_MTP "--routine gated_delta_rule_mtp --batch_size 1 "
#define GDN_PREFILL "--routine chunk_gated_delta_rule --batch_size 1 "
#define KDA "--routine recurrent_kda_prefill --batch_size 1 --s_qo 8 "

static const struct refusal refusals[] = {
    {DECODE HEADS "--s_kv 64", "--page_size"},
    {DECODE HEADS "--s_kv 64 --page_size 0", "--page_size 0: must be 1 .. 65536"},
    {DECODE HEADS "--s_kv 64 --page_size -1", "--page_size -1: must be 1 .. 65536"},
    {DECODE "--s_kv 64 --page_size 16 --num_qo_heads 8 --num_kv_heads 0",
     "--num_kv_heads 0: must be 1 .. 65536"},
    {DECODE "--s_kv 64 --page_size 16 --num_qo_heads 7 --num_kv_heads 2",
     "--num_qo_heads 7: must be a multiple of --num_kv_heads (2)"},
    {DECODE HEADS "--s_kv 2 --s_qo 4 --page_size 16", "--s_qo 4: must be at most --s_kv (2)"},
    {DECODE HEADS "--s_kv 64 --page_size 16 --head_dim_qk 0", "--head_dim_qk 0: must be 1 .."},
    {DECODE HEADS "--s_kv 64 --page_size 16 --backends fa9", "fa9"},
    {DECODE HEADS "--s_kv 64 --page_size 16 --num_iter5 3", "--num_iter5"},
    {DECODE HEADS "--s_kv 64 --page_size 16 --q_dtype float32", "--q_dtype float32"},
    {RAGGED HEADS "--s_qo 7 --s_kv 3", "--s_qo 7: must be at most --s_kv (3)"},
    {RAGGED HEADS "--s_kv 3 --kv_dtype nvfp4", "--kv_dtype nvfp4"},
    {"--routine BatchMLAPagedAttentionWrapper --batch_size 1 --s_kv 64 --num_qo_heads 128 "
     "--page_size 16",
     "--head_dim_ckv"},
    {"--routine MSAPipeline --topk 8", "--topk 8: must be 16"},
    {"--routine MSAPipeline --kv_layout paged", "--kv_layout paged: must be flat for MSAPipeline"},
    {"--routine MSASparseAttention --head_dim 64", "--head_dim 64: must be 128"},
    {"--routine MSASparseAttention --kv_dtype float16",
     "--kv_dtype float16: a 16-bit cache must be as --q_dtype (bfloat16)"},
    {"--routine MSASparseAttention --kv_dtype nvfp4 --kv_layout packed",
     "--kv_layout packed: must be flat with --kv_dtype nvfp4"},
    {"--routine MSASparseDecode --num_qo_heads 64 --num_kv_heads 2",
     "--num_qo_heads 64: must be at most 16 times --num_kv_heads"},
    {TRT "--top_k 2", "--routing_method deepseek_v3: needs --n_group and --topk_group"},
    {TRT "--top_k 2 --n_group 3 --topk_group 1",
     "--num_experts 8: must be a multiple of --n_group (3)"},
    {TRT "--top_k 2 --n_group 2 --topk_group 4", "--topk_group 4: must be at most --n_group (2)"},
    {TRT "--top_k 2 --routing_method llama4", "--top_k 2: must be 1"},
    {TRT "--top_k 9 --routing_method topk", "--top_k 9: must be at most --num_experts (8)"},
    {TRT "--top_k 2 --routing_method topk --local_expert_offset 8",
     "--local_expert_offset 8: must be below --num_experts (8)"},
    {TRT "--top_k 2 --routing_method topk --local_expert_offset 4 --local_num_experts 5",
     "--local_num_experts 5: with --local_expert_offset 4 must end at --num_experts (8)"},
    {"--routine trtllm_fp8_block_scale_moe --num_tokens 4 --hidden_size 200 --intermediate_size "
     "256 "
     "--num_experts 8 --top_k 2 --routing_method topk",
     "--hidden_size 200: must be a multiple of 128"},
    {"--routine trtllm_fp4_block_scale_moe --num_tokens 4 --hidden_size 256 --intermediate_size "
     "272 "
     "--num_experts 8 --top_k 2 --routing_method topk --fp4_mode mxfp4_bf16",
     "--intermediate_size 272: must be a multiple of 32 (blocks of mxfp4)"},
    {"--routine cute_dsl_fp4_block_scale_moe --top_k 2 " MOE_SHAPE "--activation_type Geglu",
     "--activation"},
    {"--routine b12x_fused_moe --top_k 2 " MOE_SHAPE "--local_num_experts 4",
     "--local_num_experts 4: must be --num_experts (8)"},
    {CUTLASS "--tp_size 2 --tp_rank 2", "--tp_rank 2: must be below --tp_size (2)"},
    {CUTLASS "--ep_rank 1", "--ep_rank 1: must be below --ep_size (1)"},
    {CUTLASS "--ep_size 3", "--num_experts 8: must be a multiple of --ep_size (3)"},
    {"--routine rmsnorm --batch_size 1 --hidden_size 64 --page_size 16", "--page_size"},
    {A2A "--top_k 9", "--top_k 9: must be at most --num_experts (8)"},
    {A2A "--top_k 2 --max_num_tokens 4", "--num_tokens 8: must be at most --max_num_tokens (4)"},
    {A2A "--top_k 2 --real_math --quant_dtype nvfp4", "--real_math: needs --intermediate_size"},
    {A2A "--top_k 2 --real_math --intermediate_size 64",
     "--real_math: needs --quant_dtype nvfp4 or fp8_block_scale"},
    {MIXED "--local_tp_size 1 --local_dp_size 1", "their product must be 2 or more"},
    {MIXED "--local_tp_size 2 --local_dp_size 1 --node_id 1",
     "--node_id 1: must be below the number of nodes (1"},
    {"--routine mixed_comm --local_bs_list 4 x --hidden_size 64 --dtype float16 "
     "--local_tp_size 2 --local_dp_size 1",
     "--local_bs_list"},
    {"--routine mxfp8_quantize --m 4 --k 96 --alignment 48",
     "--alignment 48: must be a multiple of 32"},
    {"--routine mxfp8_quantize --m 4 --k 96 --alignment 64",
     "--k 96: must be a multiple of --alignment (64)"},
    {"--routine mxfp4_quantize --m 4 --k 40", "--k 40: must be a multiple of 32"},
    {"--routine nvfp4_quantize --m 4 --k 64 --sf_vec_size 32", "--sf_vec_size 32: must be 16"},
    {"--routine nvfp4_quantize --m 128 --k 64 --do_shuffle --sf_layout 8x4",
     "--sf_layout 8x4: must be 128x4 with --do_shuffle"},
    {"--routine nvfp4_quantize --m 100 --k 64 --do_shuffle", "--m 100: must be a multiple of 128"},
    {"--routine nvfp4_batched_quantize --m 4 --k 64", "--batch_size"},
    {"--routine nvfp4_batched_quantize --batch_size 2 --m 4 --k 40", "--k 40: must be a multiple"},
    {"--routine softmax --batch_size 2", "--vocab_size"},
    {"--routine top_k --batch_size 2 --vocab_size 40",
     "--top_k 50: must be at most --vocab_size (40)"},
    {"--routine top_k_page_table_transform --batch_size 2 --num_rows 3",
     "--num_rows 3: must be at most --batch_size (2)"},
    {"--routine top_p_renorm_probs --batch_size 2 --vocab_size 40 --top_p 1.5", "--top_p 1.5"},
    {"--routine apply_rope --rotary_dim 128 " ROPE,
     "--rotary_dim 128: must be at most --head_dim (64)"},
    {"--routine apply_rope --rotary_dim 33 " ROPE, "--rotary_dim 33: must be a multiple of 2"},
    {"--routine apply_llama31_rope --high_freq_factor 1 " ROPE,
     "--high_freq_factor 1.0: must be above --low_freq_factor (1.0)"},
    {"--routine mla_rope_quantize_fp8 --no_rope_dim 64 " ROPE,
     "--no_rope_dim 64: must be below --head_dim (64)"},
    {"--routine mla_rope_quantize_fp8 --no_rope_dim 31 " ROPE,
     "--no_rope_dim 31: must leave an even part of --head_dim (64)"},
    {SSU "--nheads 12", "--nheads 12: must be a multiple of --ngroups (8)"},
    {SSU "--nheads 8 --varlen", "--varlen: needs --cache_steps 1 or more"},
    {GDN_DECODE "--seq_len 2", "--seq_len 2: must be 1"},
    {GDN_DECODE "--state_dtype bfloat16 --head_size 64", "--head_size 64: must be 128"},
    {GDN_DECODE "--state_dtype bfloat16 --state_layout nontranspose",
     "--state_layout nontranspose: must be pretranspose with --state_dtype bfloat16"},
    {GDN_DECODE "--pool_mode split --state_layout nontranspose",
     "--pool_mode split: must be single with --state_layout nontranspose"},
    {GDN_DECODE "--num_v_heads 24", "--num_v_heads 24: must be a multiple of --num_q_heads (16)"},
    {GDN_MTP "--seq_len 1", "--seq_len 1: must be 2 or more"},
    {GDN_MTP "--state_layout nontranspose", "--state_layout nontranspose: must be pretranspose"},
    {GDN_MTP "--pool_mode split", "--pool_mode split: must be single"},
    {GDN_MTP "--state_dtype bfloat16 --cache_intermediate_states",
     "--cache_intermediate_states: needs --state_dtype float32"},
    {GDN_PREFILL "--seq_len 4", "--seq_len 4: must be 1"},
    {GDN_PREFILL "--num_q_heads 24", "--num_v_heads 32: must be a multiple of --num_q_heads (24)"},
    {KDA "--lower_bound 0", "--lower_bound 0.0: must be below 0"},
    {KDA "--lower_bound -6", "--lower_bound -6"},
    {KDA "--head_size 64", "--head_size 64: must be 128"},
};

static void test_lines_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct fib_plan *plan = test_plan(lines[i]);
        assert_int_equal(plan->count, 1);
        assert_non_null(plan->items[0].kase);
        fib_plan_free(&plan);
    }
}

static void test_every_family_has_a_line(void **state)
{
    (void)state;
    const struct fib_registry *registry = test_registry();
    for (size_t f = 0; f < registry->family_count; f++) {
        bool found = false;
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
            struct fib_plan *plan = test_plan(lines[i]);
            found = found ||
                    strcmp(plan->items[0].kase->routine->family, registry->families[f]->name) == 0;
            fib_plan_free(&plan);
        }
        if (!found)
            fail_msg("no line for family %s", registry->families[f]->name);
    }
}

static void test_impossible_lines_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        struct fib_error err;
        assert_int_equal(test_plan_fails(refusals[i].line, &err), FIB_ERR_USAGE);
        assert_contains(err.text, refusals[i].sentence);
    }
}

static void test_case_is_folded_and_negation_understood(void **state)
{
    (void)state;
    struct fib_plan *plan =
        test_plan("--routine b12x_fused_moe --top_k 2 " MOE_SHAPE "--activation-type GEGLUTANH");
    assert_string_equal(fib_case_value(plan->items[0].kase, "activation_type")->text, "GegluTanh");
    fib_plan_free(&plan);
    plan = test_plan("--routine MSAProxyScore");
    assert_string_equal(fib_case_value(plan->items[0].kase, "causal")->text, "True");
    fib_plan_free(&plan);
    plan = test_plan("--routine MSAProxyScore --no-causal");
    assert_string_equal(fib_case_value(plan->items[0].kase, "causal")->text, "False");
    fib_plan_free(&plan);
    plan = test_plan("--routine gated_delta_rule_mtp --batch_size 1");
    assert_int_equal(fib_case_value(plan->items[0].kase, "seq_len")->i64, 2);
    fib_plan_free(&plan);
    plan = test_plan("--routine gated_delta_rule_decode --batch_size 1");
    assert_false(fib_case_value(plan->items[0].kase, "seq_len")->set);
    fib_plan_free(&plan);
}

static char *shared_list_path(void)
{
    struct fib_text path = {0};
    const char *root = getenv("FIB_SOURCE_ROOT"), *shared = getenv("FIB_SHARED");
    if (shared)
        fib_text_add(&path, shared);
    else
        fib_text_addf(&path, "%s/../shared", root ? root : ".");
    fib_text_add(&path, "/testlists/flashinfer_0.6.18_sample.txt");
    char *copy = fib_strdup(fib_text_chars(&path));
    fib_text_free(&path);
    return copy;
}

static bool is_readable(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file)
        fclose(file);
    return file != NULL;
}

static void test_shared_list_parses(void **state)
{
    (void)state;
    char *path = shared_list_path();
    if (!is_readable(path)) {
        print_message("[  SKIP   ] no %s\n", path);
        free(path);
        skip();
    }
    const char *const words[] = {"--testlist", path};
    struct fib_plan *plan = NULL;
    struct fib_error err = {0};
    if (fib_plan_parse(test_registry(), 2, words, &plan, &err) != FIB_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < plan->count; i++)
        if (plan->items[i].error)
            fail_msg("%s", plan->items[i].error);
    assert_int_equal(plan->bad_line_count, 0);
    assert_true(plan->count >= 139);
    fib_plan_free(&plan);
    free(path);
}

/* A letter too many in the first family flag of a line must not go unnoticed. */
static void test_typos_are_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct fib_text line = {0};
        const char *flag = strstr(lines[i] + strlen("--routine"), " --");
        fib_text_add_n(&line, lines[i], (size_t)(flag - lines[i]));
        fib_text_addf(&line, " --zq%s", flag + 3);
        struct fib_error err;
        assert_int_equal(test_plan_fails(fib_text_chars(&line), &err), FIB_ERR_USAGE);
        assert_contains(err.text, "--zq");
        fib_text_free(&line);
    }
}

static void check_row(const struct fib_routine *routine, const struct fib_option *row,
                      struct fib_arena *arena)
{
    struct fib_error err = {0};
    struct fib_value value = {0};
    assert_true(row->help && *row->help);
    assert_true(strchr(row->name, '-') == NULL);
    if (row->fallback && fib_option_parse(row, row->fallback, arena, &value, &err) != FIB_OK)
        fail_msg("%s: the default of --%s: %s", routine->name, row->name, err.text);
    /* fib_case_key() compares it with values as text. */
    if (row->own && value.text && strcmp(value.text, row->fallback) != 0)
        fail_msg("%s: the default of --%s is spelled %s, not %s", routine->name, row->name,
                 value.text, row->fallback);
    if (row->required && row->fallback)
        fail_msg("%s: --%s is required and has a default", routine->name, row->name);
    size_t length = 0;
    for (const char *word = row->uses; (word = fib_words_next(word, &length)); word += length) {
        const char *user = fib_arena_strndup(arena, word, length);
        const struct fib_routine *found = fib_registry_routine(test_registry(), user);
        if (!found || strcmp(found->family, routine->family) != 0)
            fail_msg("--%s of %s is used by %s", row->name, routine->family, user);
    }
}

static void test_rows_make_sense(void **state)
{
    (void)state;
    const struct fib_routine *routine;
    for (size_t n = 0; (routine = fib_registry_routine_at(test_registry(), n)); n++) {
        struct fib_arena *arena = fib_arena_create();
        const struct fib_option_set set = fib_registry_options(routine, arena);
        for (size_t i = 0; i < set.count; i++) {
            check_row(routine, &set.rows[i], arena);
            if (fib_option_index(&set, set.rows[i].name) != (int)i)
                fail_msg("%s has --%s twice", routine->name, set.rows[i].name);
        }
        const struct fib_option_override *o = routine->overrides;
        for (; o && o->name; o++)
            if (fib_option_index(&set, o->name) < 0)
                fail_msg("%s overrides --%s, which it does not have", routine->name, o->name);
        assert_true(routine->unavailable || routine->describe);
        fib_arena_free(&arena);
    }
}

static void test_default_backends_are_labels(void **state)
{
    (void)state;
    const struct fib_routine *routine;
    for (size_t n = 0; (routine = fib_registry_routine_at(test_registry(), n)); n++) {
        size_t length = 0, count = 0;
        struct fib_arena *arena = fib_arena_create();
        const char *word = routine->default_backends;
        for (; (word = fib_words_next(word, &length)); word += length, count++)
            assert_non_null(
                fib_registry_label(test_registry(), fib_arena_strndup(arena, word, length)));
        assert_true(count > 0);
        fib_arena_free(&arena);
    }
}

static void test_labels(void **state)
{
    (void)state;
    static const char *const known[] = {
        "cpu",         "openblas",   "cuda",          "fa2",          "fa2_tc",
        "fa3",         "auto",       "cudnn",         "cudnn-native", "cutlass",
        "trtllm",      "trtllm-gen", "trtllm-native", "cute-dsl",     "trtllm-fmha-v2",
        "tgv",         "cublas",     "cublaslt",      "b12x",         "trtllm_low_latency",
        "tinygemm",    "cutile",     "radix",         "gvr",          "radix_cutlass",
        "flashinfer",  "triton",     "fla",           "cutekda",      "flashinfer-decomp",
        "flash-kda",   "cudsl",      "prims-ts",      "nccl",         "flashinfer-fused",
        "plugin:mine", "prims_ts",   "mnnvl",         "mpi",          "trtllm-gen-native",
    };
    const struct fib_registry *registry = test_registry();
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!fib_registry_label(registry, known[i]))
            fail_msg("no label %s", known[i]);
    assert_null(fib_registry_label(registry, "fa9"));
    assert_true(fib_registry_label(registry, "trtllm-gen-native")->alias_warns);
    assert_false(fib_registry_label(registry, "prims_ts")->alias_warns);
    for (size_t i = 0; i < registry->label_count; i++) {
        const struct fib_label *label = &registry->labels[i];
        assert_true(label->meaning && *label->meaning);
        assert_ptr_equal(fib_registry_label(registry, label->name), label);
        if (label->alias_of)
            assert_null(fib_registry_label(registry, label->alias_of)->alias_of);
    }
}

/* An adapter brings its labels along, also when its library is absent; the table's rows win. */
static void test_adapters_bring_their_labels(void **state)
{
    (void)state;
    static const struct fib_impl impls[] = {{.routine = "rmsnorm", .label = "zz-fast"},
                                            {.routine = "gemma_rmsnorm", .label = "zz-fast"},
                                            {.routine = "rmsnorm", .label = "cpu"}};
    static const struct fib_backend present = {
        .id = "zz_norm", .impls = impls, .impl_count = 3, .meaning = "the ZZ library"};
    static const struct fib_backend absent = {.id = "yy_norm", .absent = "built without YY"};
    static const struct fib_backend *const backends[] = {&present, &absent};
    static const struct fib_label table[] = {{.name = "cpu", .meaning = "as the table says"}};
    struct fib_registry registry = *test_registry();
    registry.backends = backends;
    registry.backend_count = 2;
    registry.labels = table;
    registry.label_count = 1;
    struct fib_arena *arena = fib_arena_create();
    fib_registry_add_labels(&registry, arena);
    assert_int_equal(registry.label_count, 3);
    assert_string_equal(fib_registry_label(&registry, "cpu")->meaning, "as the table says");
    assert_string_equal(fib_registry_label(&registry, "zz-fast")->meaning, "the ZZ library");
    assert_string_equal(fib_registry_label(&registry, "yy")->meaning, "built without YY");
    fib_arena_free(&arena);
}

/* Each value of a model's words is legal for each routine of the family that has the flag. */
static void check_model_words(const struct fib_model *model, const struct fib_routine *routine)
{
    struct fib_arena *arena = fib_arena_create();
    const struct fib_option_set set = fib_registry_options(routine, arena);
    const char *const *words = NULL;
    size_t count = 0;
    struct fib_error err = {0};
    assert_int_equal(
        fib_split_words(model->words, strlen(model->words), arena, &words, &count, &err), FIB_OK);
    for (size_t i = 0; i < count; i++) {
        const int row = fib_option_index(&set, words[i] + 2);
        if (row < 0)
            fail_msg("%s: %s is no flag of %s", model->name, words[i], routine->name);
        if (set.rows[row].kind == FIB_OPT_SWITCH)
            continue;
        for (char *part = strtok(fib_arena_strdup(arena, words[++i]), ","); part;
             part = strtok(NULL, ",")) {
            struct fib_value value = {0};
            if (fib_option_parse(&set.rows[row], part, arena, &value, &err) != FIB_OK)
                fail_msg("%s: %s", model->name, err.text);
        }
    }
    fib_arena_free(&arena);
}

static void test_model_words_parse(void **state)
{
    (void)state;
    const struct fib_registry *registry = test_registry();
    for (size_t i = 0; i < registry->model_count; i++) {
        const struct fib_model *model = &registry->models[i];
        const struct fib_routine *routine;
        size_t users = 0;
        for (size_t n = 0; (routine = fib_registry_routine_at(registry, n)); n++) {
            if (strcmp(routine->family, model->family) != 0)
                continue;
            check_model_words(model, routine);
            users++;
        }
        assert_true(users > 0);
        assert_contains(model->source, "config.json");
        for (size_t j = 0; j < i; j++)
            assert_false(strcmp(registry->models[j].name, model->name) == 0 &&
                         strcmp(registry->models[j].family, model->family) == 0);
    }
}

static int64_t model_value(const char *line, const char *flag)
{
    struct fib_plan *plan = test_plan(line);
    const int64_t value = fib_case_value(plan->items[0].kase, flag)->i64;
    fib_plan_free(&plan);
    return value;
}

static void test_models_fill_flags(void **state)
{
    (void)state;
    assert_int_equal(
        model_value("--routine rmsnorm --batch_size 1 --model llama-3.1-70b", "hidden_size"), 8192);
    assert_int_equal(model_value("--routine softmax --batch_size 1 --model qwen3-8b", "vocab_size"),
                     151936);
    assert_int_equal(model_value("--routine BatchMLAPagedAttentionWrapper --batch_size 1 --s_kv 64 "
                                 "--page_size 16 --model deepseek-v3",
                                 "head_dim_ckv"),
                     512);
    assert_int_equal(model_value("--routine cutlass_fused_moe --num_tokens 1 --model mixtral-8x7b",
                                 "intermediate_size"),
                     14336);
    struct fib_plan *plan = test_plan("--routine mm_bf16 --m 16 --model llama-3.1-8b");
    assert_int_equal(plan->count, 4);
    assert_int_equal(fib_case_value(plan->items[3].kase, "k")->i64, 14336);
    fib_plan_free(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adapters_bring_their_labels),
        cmocka_unit_test(test_lines_parse),
        cmocka_unit_test(test_every_family_has_a_line),
        cmocka_unit_test(test_impossible_lines_are_refused),
        cmocka_unit_test(test_case_is_folded_and_negation_understood),
        cmocka_unit_test(test_shared_list_parses),
        cmocka_unit_test(test_typos_are_errors),
        cmocka_unit_test(test_rows_make_sense),
        cmocka_unit_test(test_default_backends_are_labels),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_model_words_parse),
        cmocka_unit_test(test_models_fill_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
