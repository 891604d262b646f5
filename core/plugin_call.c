/* Calls into plug-ins, in the process that runs cases. */
#include "core/plugin_call.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/plugin_case.h"
#include "core/plugin_load.h"

/* Owned by slot 0. */
struct shared {
    const struct fib_plugin_ref *ref;
    const struct fib_plugin_backend *backend;
    const struct fib_plugin_case *kase;
    const struct fib_device *device;
    void *state; /* the plug-in's */
    struct fib_arena *arena;
};

struct fib_prepared {
    struct shared *shared;
    struct fib_plugin_slot slot;
    void *data[FIB_MAX_TENSORS];
};

static enum fib_status need_table(struct fib_plugin_file *file, struct fib_error *err)
{
    struct fib_error why = {0};
    if (file->table || fib_plugin_load(file->path, &file->table, &why) == FIB_OK)
        return FIB_OK;
    return fib_fail(err, FIB_ERR_DEVICE, "--plugin %s: %s", file->path, why.text);
}

static enum fib_status fail_changed(const struct fib_plugin_ref *ref, struct fib_error *err)
{
    return fib_fail(err, FIB_ERR_DEVICE,
                    "--plugin %s: the file has changed since the run began: no %s at its place",
                    ref->file->path, ref->routine);
}

/* What a callback returned, as a status; its note may hold anything. */
static enum fib_status take_status(int returned, const char *callback, struct fib_plugin_note *note,
                                   struct fib_error *err)
{
    static const enum fib_status statuses[] = {FIB_OK, FIB_ERR_UNSUPPORTED, FIB_ERR_OOM,
                                               FIB_ERR_DEVICE};
    if (returned == FIB_PLUGIN_OK)
        return FIB_OK;
    note->text[sizeof(note->text) - 1] = '\0';
    if (returned < FIB_PLUGIN_OK || returned > FIB_PLUGIN_FAILED)
        return fib_fail(err, FIB_ERR_DEVICE, "%s returned %d; the ABI has 0 .. %d", callback,
                        returned, FIB_PLUGIN_FAILED);
    return fib_fail(err, statuses[returned], "%s: %s", callback,
                    note->text[0] ? note->text : "failed without saying why");
}

/* ---- backends ---- */

static enum fib_status find_backend(struct shared *shared, struct fib_error *err)
{
    const struct fib_plugin_ref *const ref = shared->ref;
    const enum fib_status st = need_table(ref->file, err);
    if (st != FIB_OK)
        return st;
    const struct fib_plugin *const table = ref->file->table;
    if (ref->index >= table->backend_count ||
        strcmp(table->backends[ref->index].routine, ref->routine) != 0)
        return fail_changed(ref, err);
    shared->backend = &table->backends[ref->index];
    return FIB_OK;
}

static enum fib_status ask_support(const struct shared *shared, struct fib_error *err)
{
    const char *const reason =
        shared->backend->supports ? shared->backend->supports(shared->kase) : NULL;
    return reason ? fib_fail(err, FIB_ERR_UNSUPPORTED, "%.500s",
                             *reason ? reason : "supports gives no reason")
                  : FIB_OK;
}

static enum fib_status open_shared(const struct fib_prepare_args *args, struct fib_prepared *p,
                                   struct fib_error *err)
{
    if (args->first) {
        p->shared = args->first->shared;
        return FIB_OK;
    }
    p->shared = fib_zalloc(sizeof(*p->shared));
    p->shared->ref = args->impl->context;
    p->shared->device = args->device;
    p->shared->arena = fib_arena_create();
    p->shared->kase =
        fib_plugin_case_make(args->kase, args->problem, args->device, p->shared->arena);
    const enum fib_status st = find_backend(p->shared, err);
    return st == FIB_OK ? ask_support(p->shared, err) : st;
}

void fib_plugin_release(struct fib_prepared **prepared)
{
    struct fib_prepared *const p = *prepared;
    if (p && p->slot.index == 0) {
        struct shared *const shared = p->shared;
        if (shared->state && shared->backend->teardown)
            shared->backend->teardown(shared->state);
        fib_arena_free(&shared->arena);
        free(shared);
    }
    free(p);
    *prepared = NULL;
}

enum fib_status fib_plugin_prepare(const struct fib_prepare_args *args,
                                   struct fib_prepared **prepared, struct fib_error *err)
{
    struct fib_plugin_note note = {{0}};
    struct fib_prepared *p = fib_zalloc(sizeof(*p));
    memcpy(p->data, args->data, sizeof(p->data));
    p->slot.index = args->slot;
    enum fib_status st = open_shared(args, p, err);
    p->slot.kase = p->shared->kase;
    p->slot.data = p->data;
    if (st == FIB_OK && p->shared->backend->prepare)
        st = take_status(p->shared->backend->prepare(&p->shared->state, &p->slot, &note), "prepare",
                         &note, err);
    if (st != FIB_OK)
        fib_plugin_release(&p);
    *prepared = p;
    return st;
}

enum fib_status fib_plugin_run(struct fib_prepared *prepared, struct fib_stream *stream,
                               struct fib_error *err)
{
    const struct shared *const shared = prepared->shared;
    const struct fib_device_ops *const ops = shared->device->ops;
    struct fib_plugin_note note;
    void *const native = stream && ops->native_stream ? ops->native_stream(stream) : NULL;
    note.text[0] = '\0';
    const int returned = shared->backend->enqueue(shared->state, native, &prepared->slot, &note);
    return returned == FIB_PLUGIN_OK ? FIB_OK : take_status(returned, "enqueue", &note, err);
}

const char *fib_plugin_resolved(const struct fib_prepared *prepared, char *buffer,
                                size_t buffer_bytes)
{
    (void)buffer, (void)buffer_bytes;
    return prepared->shared->ref->resolved;
}

/* ---- routines ---- */

static const struct fib_plugin_routine *find_routine(const struct fib_case *kase,
                                                     struct fib_error *err)
{
    const struct fib_plugin_ref *const ref = kase->routine->context;
    if (need_table(ref->file, err) != FIB_OK)
        return NULL;
    const struct fib_plugin *const table = ref->file->table;
    if (ref->index < table->routine_count &&
        strcmp(table->routines[ref->index].name, ref->routine) == 0)
        return &table->routines[ref->index];
    fail_changed(ref, err);
    return NULL;
}

static enum fib_status describe(const struct fib_plugin_routine *routine,
                                const struct fib_case *kase, struct fib_arena *arena,
                                struct fib_plugin_problem *described, struct fib_error *err)
{
    struct fib_plugin_note note = {{0}};
    return take_status(
        routine->describe(fib_plugin_case_make(kase, NULL, NULL, arena), described, &note),
        "describe", &note, err);
}

static enum fib_status measure_work(const struct fib_plugin_routine *routine,
                                    const struct fib_case *kase, struct fib_arena *arena,
                                    double *flops, double *bytes, struct fib_error *err)
{
    struct fib_plugin_note note = {{0}};
    return take_status(
        routine->traffic(fib_plugin_case_make(kase, NULL, NULL, arena), flops, bytes, &note),
        "traffic", &note, err);
}

enum fib_status fib_plugin_outline(const struct fib_case *kase, struct fib_problem *problem,
                                   struct fib_error *err)
{
    const struct fib_plugin_routine *const routine = find_routine(kase, err);
    double flops = 0.0, bytes = 0.0;
    if (!routine)
        return err->status;
    struct fib_plugin_problem *const described = fib_zalloc(sizeof(*described));
    struct fib_arena *arena = fib_arena_create();
    enum fib_status st = describe(routine, kase, arena, described, err);
    if (st == FIB_OK)
        st = measure_work(routine, kase, arena, &flops, &bytes, err);
    if (st == FIB_OK)
        st = fib_plugin_problem_take(described, flops, bytes, routine->reference != NULL, problem,
                                     err);
    fib_arena_free(&arena);
    free(described);
    return st;
}

void fib_plugin_reference(const struct fib_case *kase, const struct fib_problem *problem,
                          const struct fib_oracle_inputs *inputs, int64_t first, int64_t last,
                          const struct fib_oracle_rows *rows)
{
    struct fib_error err = {0};
    const struct fib_plugin_routine *const routine = find_routine(kase, &err);
    struct fib_arena *arena = fib_arena_create();
    if (routine) /* outline has found it before */
        routine->reference(fib_plugin_case_make(kase, problem, NULL, arena), inputs->data, first,
                           last, rows->value, rows->terms);
    fib_arena_free(&arena);
}
