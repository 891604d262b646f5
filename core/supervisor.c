/* The parent's side of worker processes: listens, watches the clock, replaces, books failures. */
#include "core/supervisor.h"

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/blame.h"
#include "core/frame.h"
#include "core/host.h"
#include "core/memory.h"
#include "core/process.h"
#include "core/worker.h"

enum {
    MOST_FUTILE = 5, /* workers in a row that end before they begin a case */
    POLL_MS = 100,   /* how often a silent worker is looked after */
    CLOSE_GRACE_MS = 2000,
    END_GRACE_MS = 1000 /* between the end of the socket and that of the process */
};
static const double hello_limit_s = 300.0;
/* A worker notices the limit itself between two windows; this much later it is taken for hung. */
static const double grace_least_s = 1.0, grace_share = 0.1, grace_most_s = 10.0;

struct fib_supervisor {
    struct fib_supervisor_spec spec;
    struct fib_device device; /* from afar; first facts, no memory */
    struct fib_device_ops ops;
    struct fib_process worker;
    struct fib_frame_buffer input;
    struct fib_mark *mark;
    struct fib_json *environment;
    int futile;
    double clock_ms, told_ms; /* time of all workers; clock of this one at its last word */
    int64_t utc_s;
    uint64_t heard_ns; /* host time of the last word */
};

enum outcome {
    GO_ON,       /* nothing of the below yet */
    ENDED,       /* the worker is ready for the next item */
    UNFINISHED,  /* it lost its device and some backends have no record */
    DIED,        /* it is gone */
    LATE,        /* it had to be ended */
    INTERRUPTED, /* somebody wants the run to stop */
    FAILED       /* a sink failed, or no device could be opened */
};

/* ---- the device from afar ---- */

static struct fib_supervisor *of_device(struct fib_device *device)
{
    return (struct fib_supervisor *)((char *)device - offsetof(struct fib_supervisor, device));
}

static double now_ms(struct fib_device *device)
{
    return of_device(device)->clock_ms;
}

static int64_t utc_s(struct fib_device *device)
{
    return of_device(device)->utc_s;
}

static void copy_text(char *target, size_t bytes, const struct fib_json *block, const char *path)
{
    const char *const text = fib_json_text(block, path);
    snprintf(target, bytes, "%s", text ? text : "");
}

static void take_facts(struct fib_supervisor *s)
{
    struct fib_device_facts *const facts = &s->device.facts;
    const struct fib_json *const block = s->environment;
    const char *const kind = fib_json_text(block, "device.kind");
    copy_text(facts->name, sizeof(facts->name), block, "device.name");
    copy_text(facts->uuid, sizeof(facts->uuid), block, "device.uuid");
    facts->kind = kind && strcmp(kind, "cuda") == 0 ? FIB_DEVICE_CUDA : FIB_DEVICE_CPU;
    facts->default_backend = fib_json_text(block, "device.default_backend");
    s->ops = (struct fib_device_ops){.now_ms = now_ms, .utc_s = utc_s};
    s->device.ops = &s->ops;
}

/* ---- clocks ---- */

static void take_clocks(struct fib_supervisor *s, const struct fib_json *message, bool first)
{
    const double told_ms = fib_json_f64(message, "now_ms");
    if (!first)
        s->clock_ms += told_ms - s->told_ms;
    s->told_ms = told_ms;
    s->utc_s = (int64_t)fib_json_f64(message, "utc_s");
    s->heard_ns = fib_host_now_ns();
}

/* A worker that is gone tells no time any more. */
static void guess_clocks(struct fib_supervisor *s)
{
    const double silent_ms = (double)(fib_host_now_ns() - s->heard_ns) * 1e-6;
    s->clock_ms += silent_ms;
    s->utc_s += (int64_t)(silent_ms / 1e3);
    s->heard_ns = fib_host_now_ns();
}

/* ---- frames ---- */

static void end_worker(struct fib_supervisor *s, unsigned grace_ms)
{
    fib_process_end(&s->worker, grace_ms);
    fib_frame_buffer_free(&s->input);
    guess_clocks(s);
}

/* A worker that sends nonsense is as good as dead. */
static enum outcome fail_broken(struct fib_supervisor *s)
{
    end_worker(s, 0);
    return DIED;
}

/* Copies the labels of a GROUP message; false when one is no text. */
static bool read_labels(const struct fib_json *labels, const char **names)
{
    for (size_t i = 0; i < fib_json_count(labels); i++)
        if (!(names[i] = fib_json_text(fib_json_at(labels, i), "")))
            return false;
    return true;
}

static bool answer_group(struct fib_supervisor *s, struct fib_blame *blame,
                         const struct fib_json *message)
{
    const struct fib_json *const labels = fib_json_get(message, "labels");
    const size_t count = fib_json_count(labels);
    const char **const names = fib_zalloc_array(count, sizeof(names[0]));
    char *const skip = fib_zalloc(count);
    struct fib_group group = {
        .hot = fib_json_bool(message, "hot"), .labels = names, .count = count};
    copy_text(group.key, sizeof(group.key), message, "key");
    bool good = count > 0 && read_labels(labels, names);
    if (good) {
        fib_blame_group(blame, &group);
        for (size_t i = 0; i < count; i++)
            skip[i] = fib_blame_is_done(blame, i) ? 1 : 0;
        good = fib_frame_send(s->worker.socket, FIB_FRAME_SKIP, skip, count);
    }
    free(skip);
    free(names);
    return good;
}

static enum outcome take_group(struct fib_supervisor *s, struct fib_blame *blame,
                               const struct fib_frame *frame)
{
    struct fib_json *message = fib_json_parse(frame->bytes, frame->length, NULL);
    const bool good = message && answer_group(s, blame, message);
    fib_json_free(&message);
    return good ? GO_ON : fail_broken(s);
}

static enum outcome take_record(struct fib_supervisor *s, struct fib_blame *blame,
                                const struct fib_frame *frame, struct fib_error *err)
{
    struct fib_json *record = fib_json_parse(frame->bytes, frame->length, NULL);
    if (!record || !fib_blame_note(blame, fib_json_text(record, "backend"))) {
        fib_json_free(&record);
        return fail_broken(s);
    }
    return blame->runner->emit(blame->runner->context, record, err) == FIB_OK ? GO_ON : FAILED;
}

static enum outcome take_end(struct fib_supervisor *s, const struct fib_frame *frame)
{
    struct fib_json *message = fib_json_parse(frame->bytes, frame->length, NULL);
    if (!message)
        return fail_broken(s);
    const bool lost = fib_json_bool(message, "lost");
    take_clocks(s, message, false);
    /* Its device is of no use, or its memory is scarce: the next case gets a fresh process. */
    if (fib_json_bool(message, "replace"))
        end_worker(s, lost ? 0 : CLOSE_GRACE_MS);
    fib_json_free(&message);
    return lost ? UNFINISHED : ENDED;
}

static enum outcome take_frame(struct fib_supervisor *s, struct fib_blame *blame,
                               const struct fib_frame *frame, struct fib_error *err)
{
    switch (frame->type) {
    case FIB_FRAME_SAY:
        blame->runner->say(blame->runner->context, frame->bytes);
        return GO_ON;
    case FIB_FRAME_GROUP:
        return take_group(s, blame, frame);
    case FIB_FRAME_RECORD:
        return take_record(s, blame, frame, err);
    case FIB_FRAME_END_GROUP:
        return fib_blame_end_group(blame, err) == FIB_OK ? GO_ON : FAILED;
    case FIB_FRAME_END_ITEM:
        return take_end(s, frame);
    default:
        return fail_broken(s);
    }
}

/* ---- listening ---- */

static uint64_t after_s(double seconds)
{
    return fib_host_now_ns() + (uint64_t)(seconds * 1e9);
}

/* Waits until something arrives, the worker ends, somebody interrupts or the time is over. GO_ON:
 * look into the buffer. */
static enum outcome wait_for_bytes(struct fib_supervisor *s, uint64_t deadline_ns)
{
    struct pollfd fds[2] = {{.fd = s->worker.socket, .events = POLLIN},
                            {.fd = fib_interrupt_fd(s->spec.interrupt), .events = POLLIN}};
    const uint64_t now_ns = fib_host_now_ns();
    const uint64_t left_ms = deadline_ns > now_ns ? (deadline_ns - now_ns) / 1000000 + 1 : 0;
    poll(fds, 2, left_ms < POLL_MS ? (int)left_ms : POLL_MS);
    if (fib_interrupt_seen(s->spec.interrupt))
        return INTERRUPTED;
    if (fds[0].revents != 0)
        return fib_frame_read(s->worker.socket, &s->input) ? GO_ON : DIED;
    if (fib_process_has_ended(&s->worker)) {
        /* Its socket lives on in a process that it left; its last words may have come just now. */
        poll(fds, 1, 0);
        return fds[0].revents != 0 && fib_frame_read(s->worker.socket, &s->input) ? GO_ON : DIED;
    }
    return left_ms == 0 ? LATE : GO_ON;
}

/* Takes the next frame; the outcome is GO_ON when there is one. The bytes of a dead worker were all
 * read before its end was noticed, so that its last records are not lost. */
static enum outcome next_frame(struct fib_supervisor *s, uint64_t deadline_ns,
                               struct fib_frame *frame)
{
    for (;;) {
        const enum fib_frame_state state = fib_frame_take(&s->input, frame);
        if (state == FIB_FRAME_READY)
            return GO_ON;
        if (state == FIB_FRAME_BROKEN)
            return fail_broken(s);
        const enum outcome outcome = wait_for_bytes(s, deadline_ns);
        if (outcome != GO_ON)
            return outcome;
    }
}

/* ---- life of a worker ---- */

static enum fib_status fork_worker(struct fib_supervisor *s, struct fib_error *err)
{
    const struct fib_supervisor_spec *const spec = &s->spec;
    const pid_t parent = getpid();
    /* What is still in a buffer would come out twice. */
    fflush(NULL);
    atomic_store(&s->mark->item, -1);
    const enum fib_status st = fib_process_start(&s->worker, err);
    if (st != FIB_OK || s->worker.pid > 0)
        return st;
    const struct fib_worker_spec worker = {.app = spec->app,
                                           .plan = spec->plan,
                                           .argc = spec->argc,
                                           .argv = spec->argv,
                                           .socket = s->worker.socket,
                                           .mark = s->mark,
                                           .parent = parent};
    fib_worker_run(&worker);
}

static enum outcome take_hello(struct fib_supervisor *s, const struct fib_frame *frame,
                               struct fib_error *err)
{
    struct fib_json *hello = fib_json_parse(frame->bytes, frame->length, NULL);
    const char *const error = fib_json_text(hello, "error");
    enum outcome outcome = ENDED;
    if (!hello || frame->type != FIB_FRAME_HELLO) {
        outcome = DIED;
    } else if (error) {
        fib_fail(err, (enum fib_status)fib_json_f64(hello, "status"), "%s", error);
        outcome = FAILED;
    } else {
        take_clocks(s, hello, true);
        if (!s->environment) {
            s->environment = fib_json_clone(fib_json_get(hello, "environment"));
            fib_json_set_i64(s->environment, "process_id", getpid());
            take_facts(s);
        }
    }
    fib_json_free(&hello);
    return outcome;
}

/* One try; DIED and LATE may be better the next time. */
static enum outcome try_worker(struct fib_supervisor *s, struct fib_error *err)
{
    struct fib_frame frame;
    if (fork_worker(s, err) != FIB_OK)
        return FAILED;
    enum outcome outcome = next_frame(s, after_s(hello_limit_s), &frame);
    if (outcome == GO_ON)
        outcome = take_hello(s, &frame, err);
    if (outcome != ENDED)
        end_worker(s, outcome == DIED ? END_GRACE_MS : 0);
    return outcome;
}

static enum outcome fail_futile(const struct fib_supervisor *s, struct fib_error *err)
{
    struct fib_text how = {0};
    fib_process_describe_end(&s->worker, &how);
    fib_fail(err, FIB_ERR_DEVICE, "%d worker processes in a row %s before they began a case",
             MOST_FUTILE, fib_text_chars(&how));
    fib_text_free(&how);
    return FAILED;
}

/* ENDED: there is a worker that waits for orders. */
static enum outcome need_worker(struct fib_supervisor *s, struct fib_error *err)
{
    enum outcome outcome = ENDED;
    while (s->worker.pid == 0) {
        if (s->futile >= MOST_FUTILE)
            return fail_futile(s, err);
        outcome = try_worker(s, err);
        if (outcome == ENDED)
            break;
        if (outcome == FAILED || outcome == INTERRUPTED)
            return outcome;
        s->futile++;
    }
    return outcome;
}

/* ---- one case ---- */

static double limit_s(const struct fib_case *kase)
{
    const double limit = kase->settings.timeout_s;
    const double grace = grace_least_s + grace_share * limit;
    return limit + (grace < grace_most_s ? grace : grace_most_s);
}

static enum outcome order_item(struct fib_supervisor *s, struct fib_blame *blame,
                               struct fib_error *err)
{
    struct fib_frame_run order;
    struct fib_frame frame;
    memset(&order, 0, sizeof(order)); /* the gaps too: all of it is sent */
    order.item = (uint64_t)blame->index;
    order.again = blame->states[0].begun || blame->states[1].begun;
    fib_blame_start(blame);
    enum outcome outcome = need_worker(s, err);
    if (outcome != ENDED)
        return outcome;
    uint64_t deadline_ns = after_s(limit_s(blame->kase));
    if (!fib_frame_send(s->worker.socket, FIB_FRAME_RUN, &order, sizeof(order)))
        return DIED;
    for (outcome = GO_ON; outcome == GO_ON;) {
        outcome = next_frame(s, deadline_ns, &frame);
        if (outcome == GO_ON) {
            const bool begins = frame.type == FIB_FRAME_GROUP;
            outcome = take_frame(s, blame, &frame, err);
            if (begins) /* each cache state has the limit to itself */
                deadline_ns = after_s(limit_s(blame->kase));
        }
    }
    return outcome;
}

static void describe_end(const struct fib_supervisor *s, const struct fib_blame *blame,
                         enum outcome outcome, struct fib_text *what,
                         enum fib_result_status *status)
{
    if (outcome == LATE) {
        *status = FIB_RESULT_TIMEOUT;
        fib_text_addf(what, "still running after %g s (--timeout_s)",
                      blame->kase->settings.timeout_s);
    } else if (fib_process_was_oom_killed(&s->worker)) {
        *status = FIB_RESULT_OOM;
        fib_text_add(what, "no memory was left and the system ended the worker");
    } else {
        *status = FIB_RESULT_CRASHED;
        fib_text_add(what, "worker ");
        fib_process_describe_end(&s->worker, what);
    }
}

/* The worker did not come back from the case: ends what is left of it, books the row. */
static enum fib_status book_end(struct fib_supervisor *s, struct fib_blame *blame,
                                enum outcome outcome, struct fib_error *err)
{
    struct fib_text what = {0};
    enum fib_result_status status = FIB_RESULT_CRASHED;
    const bool begun = atomic_load(&s->mark->item) == (long long)blame->index;
    end_worker(s, outcome == DIED ? END_GRACE_MS : 0);
    if (!begun && outcome == DIED) /* not this case's fault: a new worker may take it */
        return FIB_OK;
    describe_end(s, blame, outcome, &what, &status);
    const struct fib_blame_end end = {.status = status,
                                      .arm = atomic_load(&s->mark->arm),
                                      .step = atomic_load(&s->mark->step),
                                      .what = fib_text_chars(&what)};
    const enum fib_status st = fib_blame_book(blame, &end, err);
    fib_text_free(&what);
    return st;
}

/* Worker after worker, until every backend has its row. A worker that adds none is futile, and of
 * those there are not many, so this ends. */
static enum fib_status run_case(struct fib_supervisor *s, struct fib_blame *blame,
                                struct fib_error *err)
{
    enum fib_status st = FIB_OK;
    while (st == FIB_OK) {
        const size_t row_count = blame->row_count;
        const enum outcome outcome = order_item(s, blame, err);
        if (outcome == ENDED) {
            s->futile = 0;
            return FIB_OK;
        }
        if (outcome == INTERRUPTED || outcome == FAILED) {
            end_worker(s, 0);
            return outcome == FAILED ? err->status : FIB_OK;
        }
        if (outcome != UNFINISHED)
            st = book_end(s, blame, outcome, err);
        s->futile = blame->row_count > row_count ? 0 : s->futile + 1;
        if (st == FIB_OK && fib_blame_is_complete(blame))
            break;
    }
    return st == FIB_OK && blame->open ? fib_blame_end_group(blame, err) : st;
}

enum fib_status fib_supervisor_case(struct fib_supervisor *s, const struct fib_runner *runner,
                                    size_t index, struct fib_error *err)
{
    struct fib_blame blame;
    fib_blame_begin(&blame, runner, s->spec.plan->items[index].kase, (int64_t)index);
    const enum fib_status st = run_case(s, &blame, err);
    fib_blame_free(&blame);
    return st;
}

/* ---- the supervisor ---- */

enum fib_status fib_supervisor_open(const struct fib_supervisor_spec *spec,
                                    struct fib_supervisor **supervisor, struct fib_error *err)
{
    struct fib_supervisor *const s = fib_zalloc(sizeof(*s));
    s->spec = *spec;
    s->heard_ns = fib_host_now_ns();
    s->mark =
        mmap(NULL, sizeof(*s->mark), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *supervisor = s;
    if (s->mark == MAP_FAILED) {
        s->mark = NULL;
        return fib_fail(err, FIB_ERR_DEVICE, "cannot share memory with a worker process");
    }
    const enum outcome outcome = need_worker(s, err);
    if (outcome == INTERRUPTED)
        return fib_fail(err, FIB_ERR_TIMEOUT, "interrupted while the device was opened");
    return outcome == ENDED ? FIB_OK : err->status;
}

void fib_supervisor_close(struct fib_supervisor **supervisor)
{
    struct fib_supervisor *const s = *supervisor;
    if (!s)
        return;
    end_worker(s, CLOSE_GRACE_MS);
    if (s->mark)
        munmap(s->mark, sizeof(*s->mark));
    fib_json_free(&s->environment);
    free(s);
    *supervisor = NULL;
}

const struct fib_json *fib_supervisor_environment(const struct fib_supervisor *s)
{
    return s->environment;
}

struct fib_device *fib_supervisor_device(struct fib_supervisor *s)
{
    return &s->device;
}
