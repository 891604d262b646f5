/* Plug-ins of fib-bench: a shared library that adds backends to its routines, or routines of its
 * own. It exports one constant, fib_plugin_table; `--plugin PATH` names the file and
 * `--backends plugin:NAME` runs it. This header stands alone, for C99 and C++11 and later.
 * docs/plugins.md explains each callback and what is checked.
 *
 * The program reads the table in a short-lived process and runs the code in worker processes, so a
 * callback that crashes costs its own row. It refuses a table of another ABI number.
 *
 * Everything the program hands over is its own and lasts as long as the comment says; every text,
 * array and function in the table belongs to the plug-in and lasts as long as the library. */
#ifndef FIB_PLUGIN_H
#define FIB_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FIB_PLUGIN_ABI 1u

enum { FIB_PLUGIN_MAX_TENSORS = 16, FIB_PLUGIN_MAX_RANK = 5, FIB_PLUGIN_NOTE_CHARS = 512 };

/* What a callback returns. */
enum fib_plugin_status {
    FIB_PLUGIN_OK = 0,
    FIB_PLUGIN_UNSUPPORTED = 1, /* the row becomes UNSUPPORTED */
    FIB_PLUGIN_NO_MEMORY = 2,   /* OOM */
    FIB_PLUGIN_FAILED = 3       /* ERROR */
};

enum fib_plugin_device { FIB_PLUGIN_CPU = 0, FIB_PLUGIN_CUDA = 1 };

enum fib_plugin_dtype {
    FIB_PLUGIN_BF16 = 0,
    FIB_PLUGIN_F16 = 1,
    FIB_PLUGIN_F32 = 2,
    FIB_PLUGIN_F64 = 3,
    FIB_PLUGIN_FP8_E4M3 = 4,
    FIB_PLUGIN_FP8_E5M2 = 5,
    FIB_PLUGIN_U8 = 6,
    FIB_PLUGIN_I32 = 7,
    FIB_PLUGIN_I64 = 8
};

/* A callback that does not return FIB_PLUGIN_OK says why in one clause, with an end. */
struct fib_plugin_note {
    char text[FIB_PLUGIN_NOTE_CHARS];
};

/* ---- tensors ---- */

enum fib_plugin_role {
    FIB_PLUGIN_INPUT = 0,  /* must be unchanged after every call */
    FIB_PLUGIN_OUTPUT = 1, /* written in full: holds poison before the checked calls */
    FIB_PLUGIN_INOUT = 2,  /* updated in place: restored before each use */
    FIB_PLUGIN_SCALAR = 3  /* an input of a few elements */
};

enum fib_plugin_fill {
    FIB_PLUGIN_FILL_NONE = 0,    /* outputs */
    FIB_PLUGIN_FILL_NORMAL = 1,  /* standard normal; the user's --init may replace it */
    FIB_PLUGIN_FILL_UNIFORM = 2, /* [0, 1) */
    FIB_PLUGIN_FILL_INTS = 3,    /* -4 .. 4 */
    FIB_PLUGIN_FILL_CONSTANT = 4 /* 1 */
};

enum fib_plugin_check {
    FIB_PLUGIN_CHECK_NONE = 0,
    FIB_PLUGIN_CHECK_FLOAT = 1, /* |out - ref| <= u_out |ref| + 4 u_acc terms */
    FIB_PLUGIN_CHECK_CODES = 2  /* quantised: 99.9 % of the codes equal, the rest one off */
};

/* Row-major and contiguous. Row r of an output that is checked is its elements
 * [r * row_elems, (r + 1) * row_elems). */
struct fib_plugin_tensor {
    const char *name; /* seeds its content too */
    int32_t role, dtype, rank;
    int32_t fill;        /* enum fib_plugin_fill */
    float scale, offset; /* element = offset + scale * draw, rounded; scale 0 means 1 */
    int32_t check;       /* outputs and in-place tensors */
    int32_t reserved;    /* 0 */
    int64_t row_elems;   /* of checked tensors; of an input of which row r of the outputs needs only
                            row r; else 0 */
    int64_t shape[FIB_PLUGIN_MAX_RANK];
};

/* ---- the case ---- */

/* A flag of the routine with its value. */
struct fib_plugin_value {
    const char *name;
    const char *text; /* as it would be typed; NULL when unset */
    int64_t i64;      /* integers; 1 or 0 of a switch */
    double f64;       /* numbers, integers too */
};

struct fib_plugin_case {
    const char *routine;
    int32_t device;             /* enum fib_plugin_device */
    int32_t compute_capability; /* 90 for 9.0; 0 on a CPU */
    const struct fib_plugin_value *values;
    uint32_t value_count;
    uint32_t tensor_count; /* 0 in `describe` */
    const struct fib_plugin_tensor *tensors;
};

/* One slot of the ring that timed calls walk over. */
struct fib_plugin_slot {
    const struct fib_plugin_case *kase; /* the same in every slot */
    void *const *data;                  /* device address of each tensor, by its index */
    uint32_t index;
    uint32_t reserved;
};

/* ---- backends ---- */

/* An implementation of a routine, of the program's or of a plug-in's, on one kind of device. */
struct fib_plugin_backend {
    const char *routine;
    int32_t device;  /* enum fib_plugin_device */
    int32_t min_cc;  /* least compute capability, 90 for 9.0; 0: any */
    const char *ran; /* what runs, for the column resolved_backend; NULL: the label */
    /* NULL when it can take the case, else the reason in one clause that a person can act on. May
     * be NULL: takes all. Whatever a flag or dtype asks for and the backend cannot do is to be
     * refused here. */
    const char *(*supports)(const struct fib_plugin_case *kase);
    /* Once for each slot, slot 0 first; not timed. *state is NULL for slot 0, and afterwards what
     * the callback left there. The slot, its case and addresses last until teardown begins;
     * what the tensors hold will change. May be NULL. */
    int (*prepare)(void **state, const struct fib_plugin_slot *slot, struct fib_plugin_note *note);
    /* One call; this alone is timed. On CUDA it launches into `stream` (a cudaStream_t) and into no
     * other, does not wait, and can be captured into a graph; on a CPU `stream` is NULL and the
     * work is done on return. Allocates nothing. */
    int (*enqueue)(void *state, void *stream, const struct fib_plugin_slot *slot,
                   struct fib_plugin_note *note);
    /* Once, also when prepare failed after it had set *state; not called with NULL. May be NULL. */
    void (*teardown)(void *state);
};

/* ---- routines ---- */

enum fib_plugin_flag_kind {
    FIB_PLUGIN_FLAG_I64 = 0,
    FIB_PLUGIN_FLAG_F64 = 1,
    FIB_PLUGIN_FLAG_CHOICE = 2,
    FIB_PLUGIN_FLAG_DTYPE = 3, /* choices are dtypes: "bfloat16 float32" */
    FIB_PLUGIN_FLAG_TEXT = 4,
    FIB_PLUGIN_FLAG_SWITCH = 5
};

struct fib_plugin_flag {
    const char *name; /* "rows" is typed --rows */
    int32_t kind;
    int32_t required;
    int64_t min, max;        /* integers; both 0: any */
    double min_f64, max_f64; /* numbers; both 0: any finite one */
    const char *fallback;    /* default as typed; NULL: unset; switches are off */
    const char *choices;     /* words with a blank between; CHOICE and DTYPE */
    const char *help;        /* half a line, no full stop */
};

struct fib_plugin_problem {
    struct fib_plugin_tensor tensors[FIB_PLUGIN_MAX_TENSORS];
    int32_t tensor_count;
    int32_t reserved;
    int64_t row_count; /* rows of the reference; the same for all checked tensors */
    double row_flops;  /* float64 operations of one of them */
};

struct fib_plugin_routine {
    const char *name;    /* lower-case letters, digits, '_' */
    const char *summary; /* the mathematics in half a line */
    const char *layout;  /* tensors and formula, prose; may be NULL */
    const char *cost;    /* formulas of flops and bytes, prose; may be NULL */
    const struct fib_plugin_flag *flags;
    uint32_t flag_count;
    uint32_t reserved;
    /* Fills the problem, which is all 0 before; or refuses a combination of flags. */
    int (*describe)(const struct fib_plugin_case *kase, struct fib_plugin_problem *problem,
                    struct fib_plugin_note *note);
    /* Work of one call, counted physically: what the mathematics needs, and the bytes that must
     * move through memory at least once. */
    int (*traffic)(const struct fib_plugin_case *kase, double *flops, double *bytes,
                   struct fib_plugin_note *note);
    /* Rows [first, last) in float64, from complete inputs on the host (by tensor index; in-place
     * tensors as before the call). For each checked tensor t it fills (last - first) * row_elems
     * numbers of value[t], exact before the last rounding, and of terms[t], the sum of the
     * magnitudes that were added up. Runs on several threads at once. NULL: nobody knows what is
     * right, and rows are UNCHECKED. */
    void (*reference)(const struct fib_plugin_case *kase, const void *const *inputs, int64_t first,
                      int64_t last, double *const *value, double *const *terms);
};

/* ---- the table ---- */

struct fib_plugin {
    uint32_t abi; /* FIB_PLUGIN_VERSION fills this line and the next */
    uint32_t plugin_bytes, backend_bytes, routine_bytes, flag_bytes, case_bytes, tensor_bytes,
        problem_bytes;
    const char *name;     /* the label is plugin:NAME; lower-case letters, digits, '-', '_', '.' */
    const char *describe; /* half a line on what it is */
    const struct fib_plugin_backend *backends;
    const struct fib_plugin_routine *routines;
    uint32_t backend_count, routine_count;
};

#define FIB_PLUGIN_VERSION                                                                         \
    FIB_PLUGIN_ABI, (uint32_t)sizeof(struct fib_plugin),                                           \
        (uint32_t)sizeof(struct fib_plugin_backend), (uint32_t)sizeof(struct fib_plugin_routine),  \
        (uint32_t)sizeof(struct fib_plugin_flag), (uint32_t)sizeof(struct fib_plugin_case),        \
        (uint32_t)sizeof(struct fib_plugin_tensor), (uint32_t)sizeof(struct fib_plugin_problem)

#if defined(_WIN32)
#define FIB_PLUGIN_EXPORT __declspec(dllexport)
#else
#define FIB_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

extern FIB_PLUGIN_EXPORT const struct fib_plugin fib_plugin_table;

/* ---- helpers ---- */

/* Value of a flag; NULL when the routine has none of that name. */
static inline const struct fib_plugin_value *
fib_plugin_find_value(const struct fib_plugin_case *kase, const char *name)
{
    for (uint32_t i = 0; i < kase->value_count; i++)
        if (strcmp(kase->values[i].name, name) == 0)
            return &kase->values[i];
    return NULL;
}

/* Index of a tensor by its name, or -1. */
static inline int fib_plugin_find_tensor(const struct fib_plugin_case *kase, const char *name)
{
    for (uint32_t i = 0; i < kase->tensor_count; i++)
        if (strcmp(kase->tensors[i].name, name) == 0)
            return (int)i;
    return -1;
}

#ifdef __cplusplus
}
#endif

#endif
