/* A plug-in with one fault, named by the environment: FIB_TEST_FAULT="CALLBACK:DEED". Callbacks are
 * load, supports, prepare, enqueue, teardown, describe, traffic, reference; deeds are below. A case
 * of the routine `copy` copies x to y; the backend of rmsnorm is sound but for the fault. */
#include <stdio.h>
#include <unistd.h>

#include "tests/plugins/norm.h"

#ifndef ABI
#define ABI FIB_PLUGIN_ABI
#endif

static const char *deed_of(const char *callback)
{
    const char *const fault = getenv("FIB_TEST_FAULT");
    const size_t length = strlen(callback);
    return fault && strncmp(fault, callback, length) == 0 && fault[length] == ':'
               ? fault + length + 1
               : "";
}

static int is_deed(const char *callback, const char *deed)
{
    return strcmp(deed_of(callback), deed) == 0;
}

/* What any callback may do. */
static int misbehave(const char *callback, struct fib_plugin_note *note)
{
    if (is_deed(callback, "abort"))
        abort();
    if (is_deed(callback, "exit"))
        _exit(0);
    if (is_deed(callback, "hang"))
        for (;;)
            pause();
    if (is_deed(callback, "odd"))
        return 77;
    if (!is_deed(callback, "fail"))
        return FIB_PLUGIN_OK;
    snprintf(note->text, sizeof(note->text), "the moon is full");
    return FIB_PLUGIN_FAILED;
}

__attribute__((constructor)) static void load(void)
{
    struct fib_plugin_note note;
    misbehave("load", &note);
}

/* ---- backend of rmsnorm ---- */

static const char *supports(const struct fib_plugin_case *kase)
{
    struct fib_plugin_note note;
    (void)kase;
    return misbehave("supports", &note) == FIB_PLUGIN_OK ? NULL : "needs a full moon";
}

static int prepare(void **state, const struct fib_plugin_slot *slot, struct fib_plugin_note *note)
{
    struct norm *const norm = *state ? *state : malloc(sizeof(*norm));
    *norm = norm_of(slot->kase);
    *state = norm;
    if (is_deed("prepare", "no_memory")) {
        snprintf(note->text, sizeof(note->text), "wants 1 EiB");
        return FIB_PLUGIN_NO_MEMORY;
    }
    if (is_deed("prepare", "mute"))
        return FIB_PLUGIN_FAILED;
    return misbehave("prepare", note);
}

static int enqueue(void *state, void *stream, const struct fib_plugin_slot *slot,
                   struct fib_plugin_note *note)
{
    (void)stream;
    norm_rows(state, slot->data[NORM_X], slot->data[NORM_W], slot->data[NORM_Y]);
    if (is_deed("enqueue", "input"))
        ((uint16_t *)slot->data[NORM_X])[0] ^= 1;
    if (is_deed("enqueue", "past"))
        ((uint16_t *)slot->data[NORM_Y])[norm_bytes(state) / 2] = 1;
    return misbehave("enqueue", note);
}

static void teardown(void *state)
{
    struct fib_plugin_note note;
    free(state);
    misbehave("teardown", &note);
}

/* ---- routine copy ---- */

static int describe(const struct fib_plugin_case *kase, struct fib_plugin_problem *problem,
                    struct fib_plugin_note *note)
{
    const int64_t count = fib_plugin_find_value(kase, "count")->i64;
    for (int t = 0; t < 2; t++)
        problem->tensors[t] =
            (struct fib_plugin_tensor){.name = t ? "y" : "x",
                                       .role = t ? FIB_PLUGIN_OUTPUT : FIB_PLUGIN_INPUT,
                                       .dtype = FIB_PLUGIN_F32,
                                       .rank = 1,
                                       .fill = t ? FIB_PLUGIN_FILL_NONE : FIB_PLUGIN_FILL_UNIFORM,
                                       .check = t ? FIB_PLUGIN_CHECK_FLOAT : FIB_PLUGIN_CHECK_NONE,
                                       .row_elems = 1,
                                       .shape = {count}};
    problem->tensor_count = is_deed("describe", "many") ? 1000 : 2;
    problem->row_count = count;
    problem->row_flops = 1.0;
    if (is_deed("describe", "shape"))
        problem->tensors[1].shape[0] = -3;
    if (is_deed("describe", "rows"))
        problem->tensors[1].row_elems = 7;
    return misbehave("describe", note);
}

static int traffic(const struct fib_plugin_case *kase, double *flops, double *bytes,
                   struct fib_plugin_note *note)
{
    *flops = 0.0;
    *bytes = 8.0 * (double)fib_plugin_find_value(kase, "count")->i64;
    if (is_deed("traffic", "nan"))
        *bytes = NAN;
    if (is_deed("traffic", "none"))
        *bytes = 0.0;
    if (is_deed("traffic", "huge"))
        *bytes = 1e30;
    if (is_deed("traffic", "negative"))
        *flops = -1.0;
    return misbehave("traffic", note);
}

static void reference(const struct fib_plugin_case *kase, const void *const *inputs, int64_t first,
                      int64_t last, double *const *value, double *const *terms)
{
    struct fib_plugin_note note;
    (void)kase;
    misbehave("reference", &note);
    for (int64_t i = first; i < last; i++)
        value[1][i - first] = terms[1][i - first] = ((const float *)inputs[0])[i];
}

static int copy(void *state, void *stream, const struct fib_plugin_slot *slot,
                struct fib_plugin_note *note)
{
    (void)state, (void)stream, (void)note;
    memcpy(slot->data[1], slot->data[0], (size_t)slot->kase->tensors[0].shape[0] * sizeof(float));
    return FIB_PLUGIN_OK;
}

/* Writes nothing: also a routine that nobody can check has to notice. */
static int idle(void *state, void *stream, const struct fib_plugin_slot *slot,
                struct fib_plugin_note *note)
{
    (void)state, (void)stream, (void)slot, (void)note;
    return FIB_PLUGIN_OK;
}

static const struct fib_plugin_flag flags[] = {{.name = "count",
                                                .kind = FIB_PLUGIN_FLAG_I64,
                                                .min = 1,
                                                .max = INT64_MAX,
                                                .fallback = "1000",
                                                .help = "elements"},
                                               {.name = "style",
                                                .kind = FIB_PLUGIN_FLAG_CHOICE,
                                                .choices = "plain fancy",
                                                .fallback = "plain",
                                                .help = "read by nobody"}};

#define ROUTINE(name_, reference_)                                                                 \
    {                                                                                              \
        .name = (name_), .summary = "y = x", .flags = flags, .flag_count = 2,                      \
        .describe = describe, .traffic = traffic, .reference = (reference_)                        \
    }
static const struct fib_plugin_routine routines[] = {
    ROUTINE("test_copy", reference), ROUTINE("test_trust", NULL), ROUTINE("test_idle", NULL)};

static const struct fib_plugin_backend backends[] = {
    {.routine = "rmsnorm",
     .device = FIB_PLUGIN_CPU,
     .supports = supports,
     .prepare = prepare,
     .enqueue = enqueue,
     .teardown = teardown},
    {.routine = "test_copy", .device = FIB_PLUGIN_CPU, .ran = "memcpy", .enqueue = copy},
    {.routine = "test_trust", .device = FIB_PLUGIN_CPU, .ran = "memcpy", .enqueue = copy},
    {.routine = "test_idle", .device = FIB_PLUGIN_CPU, .ran = "idle", .enqueue = idle},
};

FIB_PLUGIN_EXPORT const struct fib_plugin fib_plugin_table = {
    .abi = ABI,
    .plugin_bytes = sizeof(struct fib_plugin),
#ifdef ODD_SIZE
    .backend_bytes = sizeof(struct fib_plugin_backend) + 8,
#else
    .backend_bytes = sizeof(struct fib_plugin_backend),
#endif
    .routine_bytes = sizeof(struct fib_plugin_routine),
    .flag_bytes = sizeof(struct fib_plugin_flag),
    .case_bytes = sizeof(struct fib_plugin_case),
    .tensor_bytes = sizeof(struct fib_plugin_tensor),
    .problem_bytes = sizeof(struct fib_plugin_problem),
    .name = "faulty",
    .describe = "a test's plug-in",
    .backends = backends,
    .routines = routines,
    .backend_count = sizeof(backends) / sizeof(backends[0]),
    .routine_count = sizeof(routines) / sizeof(routines[0])};
