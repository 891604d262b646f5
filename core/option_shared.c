/* Rows of the flags that every routine shares and of the flags of a run. The reference's flags come
 * first, in its order; ours follow. */
#include <stddef.h>
#include <stdint.h>

#include "core/option.h"

#define ROW(field_, kind_, ...)                                                                    \
    {                                                                                              \
        .name = #field_, .kind = (kind_), .bound = true,                                           \
        .offset = offsetof(struct fib_settings, field_), __VA_ARGS__                               \
    }
#define SHARED(field_, kind_, ...) ROW(field_, kind_, .scope = FIB_SCOPE_SHARED, __VA_ARGS__)
#define RUN(field_, kind_, ...) ROW(field_, kind_, .scope = FIB_SCOPE_RUN, __VA_ARGS__)
#define OWN(field_, kind_, ...) SHARED(field_, kind_, .own = true, __VA_ARGS__)
#define OWN_RUN(field_, kind_, ...) RUN(field_, kind_, .own = true, __VA_ARGS__)

const struct fib_option fib_shared_options[] = {
    SHARED(routine, FIB_OPT_TEXT, .short_name = "R", .value_name = "NAME",
           .help = "routine to measure"),
    SHARED(num_iters, FIB_OPT_I64, .short_name = "n", .min = 1, .max = 1000000,
           .help = "measure exactly N windows (default: as many as the budget needs)"),
    SHARED(dry_run_iters, FIB_OPT_I64, .short_name = "d", .min = 0, .max = 1000000,
           .help = "make exactly N warm-up calls (default: until the clock is steady)"),
    SHARED(no_cuda_graph, FIB_OPT_SWITCH, .help = "launch calls one by one, without a graph"),
    SHARED(use_cupti, FIB_OPT_SWITCH, .help = "on a CUDA device the same as --timer cupti"),
    SHARED(use_cuda_events, FIB_OPT_SWITCH, .help = "on a CUDA device the same as --timer events"),
    SHARED(refcheck, FIB_OPT_SWITCH, .help = "accepted and recorded; results are always checked"),
    SHARED(allow_output_mismatch, FIB_OPT_SWITCH,
           .help = "keep times of wrong results, and do not raise the exit status"),
    SHARED(random_seed, FIB_OPT_I64, .min = 0, .max = INT64_MAX, .fallback = "42",
           .help = "seed of all inputs"),
    SHARED(verbose, FIB_OPT_COUNT, .short_name = "v", .fallback = "0",
           .help = "say more; twice: shapes and dtypes too"),
    RUN(output_path, FIB_OPT_TEXT, .value_name = "PATH",
        .help = "write a CSV file, with a journal beside it"),
    RUN(testlist, FIB_OPT_TEXT, .value_name = "PATH", .help = "run every line of a file of flags"),
    SHARED(autotune_cache, FIB_OPT_TEXT, .value_name = "PATH",
           .help = "file that keeps tuned choices"),
    SHARED(case_tag, FIB_OPT_TEXT, .value_name = "TEXT", .help = "note copied to the outputs"),
    SHARED(generate_repro_command, FIB_OPT_SWITCH,
           .help = "print and store the command that repeats a case"),
    SHARED(repro_command, FIB_OPT_TEXT, .value_name = "TEXT",
           .help = "accepted for old command lines"),
    SHARED(enable_pdl, FIB_OPT_SWITCH, .help = "programmatic dependent launch where it exists"),
    SHARED(backends, FIB_OPT_WORDS, .value_name = "NAME...",
           .help = "backends to compare, in this order"),

    OWN(also, FIB_OPT_WORDS, .value_name = "NAME...",
        .help = "backends to add to every case, or none"),
    OWN(model, FIB_OPT_TEXT, .value_name = "NAME",
        .help = "take shapes from a published model (list --models)"),
    OWN(zip, FIB_OPT_WORDS, .value_name = "FLAG,FLAG",
        .help = "walk swept flags together instead of crossing them"),
    OWN(cache, FIB_OPT_CHOICE, .choices = "cold hot both", .fallback = "cold",
        .help = "state of the cache before a call"),
    OWN(power_mode, FIB_OPT_CHOICE, .choices = "burst sustained", .fallback = "burst",
        .help = "short windows with pauses, or long back-to-back ones"),
    OWN(timer, FIB_OPT_CHOICE, .choices = "graph isolated cupti events wall",
        .help = "how a window is timed (default: the device's)"),
    OWN(quick, FIB_OPT_SWITCH, .help = "few samples, for a first look"),
    OWN(precise, FIB_OPT_SWITCH, .help = "many samples, for a narrow interval"),
    OWN(budget_ms, FIB_OPT_F64, .min_f64 = 1, .max_f64 = 600000,
        .help = "measuring time for each backend"),
    OWN(max_case_s, FIB_OPT_F64, .min_f64 = 0.001, .max_f64 = 1e6,
        .help = "skip cases estimated to take longer"),
    OWN(timeout_s, FIB_OPT_F64, .min_f64 = 0.1, .max_f64 = 1e6, .fallback = "300.0",
        .help = "wall limit of a case"),
    OWN(init, FIB_OPT_CHOICE, .choices = "normal uniform zeros ints", .fallback = "normal",
        .help = "content of inputs where the routine leaves it open"),
    OWN(no_check, FIB_OPT_SWITCH, .help = "do not check results; rows become UNCHECKED"),
    OWN(variant, FIB_OPT_TEXT, .value_name = "NAME",
        .help = "run this kernel of a backend that has several (an unknown name lists them)"),

    OWN_RUN(json_path, FIB_OPT_TEXT, .value_name = "PATH", .help = "write a JSON file"),
    OWN_RUN(only, FIB_OPT_TEXT, .value_name = "EXPR",
            .help = "keep cases for which it holds: \"batch_size >= 8 and cache == cold\""),
    OWN_RUN(plan, FIB_OPT_SWITCH, .help = "list cases, memory and time; run nothing"),
    OWN_RUN(samples, FIB_OPT_SWITCH, .help = "keep every sample in JSON outputs"),
    OWN_RUN(force, FIB_OPT_SWITCH, .help = "replace existing outputs"),
    OWN_RUN(append, FIB_OPT_SWITCH, .help = "add to existing outputs"),
    OWN_RUN(resume, FIB_OPT_SWITCH,
            .help = "go on where an earlier run into the same outputs stopped"),
    OWN_RUN(devices, FIB_OPT_I64_LIST, .min = 0, .max = 1023, .fallback = "0",
            .help = "number of the device to use (one, so far)"),
    OWN_RUN(no_isolation, FIB_OPT_SWITCH,
            .help = "run cases in this process: for debuggers and sanitizers"),
    OWN_RUN(lib_path, FIB_OPT_TEXT, .value_name = "DIR",
            .help = "folder to look for CUDA and other libraries first"),
    OWN_RUN(plugin, FIB_OPT_WORDS, .value_name = "PATH...", .needed = true,
            .help = "load backends and routines from shared libraries"),
    OWN_RUN(quiet, FIB_OPT_SWITCH, .help = "no progress on stderr"),
    OWN_RUN(table, FIB_OPT_SWITCH, .help = "print tables although stdout is no terminal"),
    {.name = NULL},
};
