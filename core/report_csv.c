/* The CSV sink: the reference's columns in its order, then ours; RFC 4180. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/outfile.h"
#include "core/report.h"
#include "core/text.h"

/* clang-format off */
const char *const fib_csv_columns[] = {
    /* perf */
    "routine", "median_time", "std_time", "tflops", "tb_per_sec", "backend", "resolved_backend",
    /* attention */
    "s_qo", "s_kv", "head_dim_qk", "head_dim_vo", "head_dim_ckv", "head_dim_kpe", "causal",
    "q_dtype", "kv_dtype", "avg_actual_seq_len", "random_actual_seq_len", "is_var_seq",
    "cute_dsl_impl",
    /* gemm */
    "n", "group_size", "tile_size", "scale_major_mode", "mma_sm", "use_128x4_sf_layout",
    "use_nvfp4", "bias",
    /* moe */
    "num_tokens", "intermediate_size", "num_experts", "top_k", "n_group", "topk_group",
    "routed_scaling_factor", "local_expert_offset", "local_num_experts", "routing_method",
    "use_shuffled_weight", "weight_layout", "use_routing_bias", "use_routing_scales_on_input",
    "weight_dtype", "activation_type", "fp4_mode", "cold_l2_cache", "cutlass_variant",
    "quantized_input", "tp_size", "tp_rank", "ep_size", "ep_rank",
    /* moe_comm */
    "max_num_tokens",
    /* allreduce_comm */
    "ar_backend", "pattern", "layout_code",
    /* mixed_comm */
    "local_bs", "op_name", "mode_name", "local_tp_size", "local_dp_size", "inter_tp_size",
    "inter_dp_size",
    /* norm */
    "num_heads", "scale", "eps", "use_global_scale", "dit_mode", "ppf", "pph", "ppw",
    /* quantization */
    "alignment", "global_scale", "sf_layout", "do_shuffle", "sf_vec_size",
    /* sampling */
    "vocab_size", "top_p", "min_p", "temperature", "num_speculate_tokens", "filter_apply_order",
    "max_len", "num_rows",
    /* topk_varlen */
    "max_seq_len",
    /* rope */
    "seq_len", "head_dim", "rotary_dim", "no_rope_dim", "rope_theta", "rope_scale", "interleave",
    "kv_layout",
    /* mamba */
    "nheads", "dim", "dstate", "ngroups", "cache_steps", "state_dtype", "has_z", "dt_softplus",
    /* gdn */
    "num_q_heads", "num_k_heads", "num_v_heads", "head_size", "state_layout", "pool_mode",
    "update_state", "use_qk_l2norm",
    /* kda */
    "kda_variant", "kda_variant_policy", "sm_count", "packed", "has_initial_state",
    /* msa */
    "topk", "max_k_tiles", "total_q", "total_kv",
    /* general */
    "batch_size", "hidden_size", "input_dtype", "out_dtype", "quant_dtype", "m", "k",
    "num_qo_heads", "num_kv_heads", "page_size", "enable_pdl", "is_sf_swizzled_layout", "refcheck",
    "no_cuda_graph", "use_cupti", "allow_output_mismatch", "random_seed", "case_tag",
    "generate_repro_command", "repro_command",
    /* ours */
    "status", "reason", "flags", "device", "device_uuid", "timer", "cache", "power_mode", "init",
    "arm_order", "ring_slots", "calls_per_window", "windows", "stop_reason", "ci_low_ms",
    "ci_high_ms", "min_time", "p25_time", "p75_time", "overhead_us", "mhz", "overhead_method",
    "bound", "roof_pct", "checked_rows", "max_abs_err", "max_rel_err", "rel_l2", "case_key",
    "run", "time_utc",
    NULL};
/* clang-format on */

enum conversion {
    AS_IS,    /* text, integer, True/False */
    AS_FLOAT, /* a number that keeps its point when it is integral, as the reference writes it */
    AS_MS     /* integer picoseconds to milliseconds */
};

/* Columns that do not hold params.<column> as it is. */
static const struct cell {
    const char *column, *path;
    enum conversion conversion;
} cells[] = {
    {"routine", "routine", AS_IS},
    {"median_time", "time.median", AS_MS},
    {"std_time", "time.std", AS_MS},
    {"tflops", "rate.tflops", AS_FLOAT},
    {"tb_per_sec", "rate.tb_per_sec", AS_FLOAT},
    {"backend", "backend", AS_IS},
    {"resolved_backend", "resolved_backend", AS_IS},
    {"repro_command", "repro_command", AS_IS},
    {"routed_scaling_factor", "params.routed_scaling_factor", AS_FLOAT},
    {"scale", "params.scale", AS_FLOAT},
    {"eps", "params.eps", AS_FLOAT},
    {"global_scale", "params.global_scale", AS_FLOAT},
    {"top_p", "params.top_p", AS_FLOAT},
    {"min_p", "params.min_p", AS_FLOAT},
    {"temperature", "params.temperature", AS_FLOAT},
    {"rope_theta", "params.rope_theta", AS_FLOAT},
    {"rope_scale", "params.rope_scale", AS_FLOAT},
    {"status", "status", AS_IS},
    {"reason", "reason", AS_IS},
    {"flags", "flags", AS_IS},
    {"device", "device.name", AS_IS},
    {"device_uuid", "device.uuid", AS_IS},
    {"timer", "measure.timer", AS_IS},
    {"cache", "measure.cache", AS_IS},
    {"power_mode", "measure.power_mode", AS_IS},
    {"init", "measure.init", AS_IS},
    /* `interleave` is a flag of the rope routines, so our column has another name. */
    {"arm_order", "measure.interleave", AS_IS},
    {"ring_slots", "measure.ring_slots", AS_IS},
    {"calls_per_window", "measure.calls_per_window", AS_IS},
    {"windows", "measure.windows", AS_IS},
    {"stop_reason", "measure.stop_reason", AS_IS},
    {"ci_low_ms", "time.ci_low", AS_MS},
    {"ci_high_ms", "time.ci_high", AS_MS},
    {"min_time", "time.min", AS_MS},
    {"p25_time", "time.p25", AS_MS},
    {"p75_time", "time.p75", AS_MS},
    {"overhead_us", "measure.overhead_us", AS_FLOAT},
    {"mhz", "measure.mhz.median", AS_FLOAT},
    {"overhead_method", "measure.overhead_method", AS_IS},
    {"bound", "rate.bound", AS_IS},
    {"roof_pct", "rate.roof_pct", AS_FLOAT},
    {"checked_rows", "check.checked_rows", AS_IS},
    {"max_abs_err", "check.max_abs_err", AS_FLOAT},
    {"max_rel_err", "check.max_rel_err", AS_FLOAT},
    {"rel_l2", "check.rel_l2", AS_FLOAT},
    {"case_key", "case_key", AS_IS},
    {"run", "run", AS_IS},
    {"time_utc", "time_utc", AS_IS},
};

static const struct cell *find_cell(const char *column)
{
    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
        if (strcmp(cells[i].column, column) == 0)
            return &cells[i];
    }
    return NULL;
}

static const struct fib_json *cell_value(const struct fib_json *record, const char *column,
                                         const struct cell *cell)
{
    if (!cell)
        return fib_json_get(fib_json_get(record, "params"), column);
    return fib_json_get(record, cell->path);
}

static double number_of(const struct fib_json *value)
{
    return fib_json_f64(value, "");
}

static void add_number(struct fib_text *out, double number, enum conversion conversion)
{
    const double exact_limit = 9007199254740992.0; /* 2^53 */
    if (conversion == AS_MS)
        fib_text_add_f64(out, number / 1e9);
    else if (conversion == AS_IS && number == floor(number) && fabs(number) <= exact_limit)
        fib_text_addf(out, "%lld", (long long)number);
    else
        fib_text_add_f64(out, number);
}

/* Texts of an array joined by ';'. */
static void add_words(struct fib_text *out, const struct fib_json *array)
{
    const size_t count = fib_json_count(array);
    for (size_t i = 0; i < count; i++) {
        const char *word = fib_json_text(fib_json_at(array, i), "");
        if (i > 0)
            fib_text_add_char(out, ';');
        fib_text_add(out, word ? word : "");
    }
}

static void add_cell(struct fib_text *out, const struct fib_json *value, enum conversion conversion)
{
    struct fib_text cell = {0};
    if (fib_json_is_text(value))
        fib_text_add(&cell, fib_json_text(value, ""));
    else if (fib_json_is_bool(value))
        fib_text_add(&cell, fib_json_bool(value, "") ? "True" : "False");
    else if (fib_json_is_number(value))
        add_number(&cell, number_of(value), conversion);
    else
        add_words(&cell, value);
    fib_text_add_csv_cell(out, fib_text_chars(&cell));
    fib_text_free(&cell);
}

void fib_csv_header(const char *const *flag_columns, struct fib_text *out)
{
    for (size_t i = 0; fib_csv_columns[i]; i++) {
        if (i > 0)
            fib_text_add_char(out, ',');
        fib_text_add_csv_cell(out, fib_csv_columns[i]);
    }
    for (size_t i = 0; flag_columns && flag_columns[i]; i++) {
        fib_text_add_char(out, ',');
        fib_text_add_csv_cell(out, flag_columns[i]);
    }
}

bool fib_csv_has_column(const char *name)
{
    size_t i = 0;
    while (fib_csv_columns[i] && strcmp(fib_csv_columns[i], name) != 0)
        i++;
    return fib_csv_columns[i] != NULL;
}

void fib_csv_row(const struct fib_json *record, const char *const *flag_columns,
                 struct fib_text *out)
{
    for (size_t i = 0; fib_csv_columns[i]; i++) {
        const struct cell *cell = find_cell(fib_csv_columns[i]);
        if (i > 0)
            fib_text_add_char(out, ',');
        add_cell(out, cell_value(record, fib_csv_columns[i], cell),
                 cell ? cell->conversion : AS_IS);
    }
    const struct fib_json *params = fib_json_get(record, "params");
    for (size_t i = 0; flag_columns && flag_columns[i]; i++) {
        fib_text_add_char(out, ',');
        add_cell(out, fib_json_get(params, flag_columns[i]), AS_IS);
    }
}

struct fib_sink {
    struct fib_outfile file;
    const char *const *flag_columns; /* borrowed from the settings */
};

/* A file with other columns would become unreadable if rows were added to it. */
static enum fib_status check_header(const struct fib_outfile *file, const char *const *flag_columns,
                                    struct fib_error *err)
{
    struct fib_text header = {0};
    fib_csv_header(flag_columns, &header);
    fib_text_add_char(&header, '\n');
    char *found = fib_zalloc(header.length + 1);
    const ssize_t length = pread(file->fd, found, header.length, 0);
    enum fib_status st = FIB_OK;
    if (length != (ssize_t)header.length || memcmp(found, header.chars, header.length) != 0)
        st = fib_fail(err, FIB_ERR_IO,
                      "cannot append to %s: its columns are not those of this version", file->path);
    free(found);
    fib_text_free(&header);
    return st;
}

static enum fib_status write_line(const struct fib_outfile *file, struct fib_text *line,
                                  struct fib_error *err)
{
    fib_text_add_char(line, '\n');
    return fib_outfile_write(file, line->chars, line->length, err);
}

static enum fib_status csv_close(struct fib_sink **sink, struct fib_error *err)
{
    if (!*sink)
        return FIB_OK;
    const enum fib_status st = fib_outfile_close(&(*sink)->file, err);
    free(*sink);
    *sink = NULL;
    return st;
}

static enum fib_status csv_open(const struct fib_sink_settings *settings,
                                const struct fib_json *environment, struct fib_sink **sink,
                                struct fib_error *err)
{
    (void)environment;
    if (!settings->csv_path)
        return FIB_OK;
    struct fib_text header = {0};
    *sink = fib_zalloc(sizeof(**sink));
    (*sink)->flag_columns = settings->flag_columns;
    struct fib_outfile *file = &(*sink)->file;
    enum fib_status st =
        fib_outfile_open(file, settings->csv_path, fib_report_mode(settings), err);
    if (st != FIB_OK)
        goto out;
    if (file->was_empty) {
        fib_csv_header(settings->flag_columns, &header);
        st = write_line(file, &header, err);
    } else {
        st = check_header(file, settings->flag_columns, err);
    }
out:
    fib_text_free(&header);
    if (st != FIB_OK)
        csv_close(sink, NULL);
    return st;
}

static enum fib_status csv_row(struct fib_sink *sink, const struct fib_json *record,
                               struct fib_error *err)
{
    struct fib_text line = {0};
    fib_csv_row(record, sink->flag_columns, &line);
    const enum fib_status st = write_line(&sink->file, &line, err);
    fib_text_free(&line);
    return st;
}

const struct fib_sink_ops fib_sink_csv = {
    .name = "csv", .open = csv_open, .row = csv_row, .close = csv_close};
