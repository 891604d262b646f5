/* The walk of one case: candidates, memory, prepare, check, time, check again, records. */
#include "core/runner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/estimate.h"
#include "core/memory.h"
#include "core/narrate.h"
#include "core/pool.h"
#include "core/replay.h"
#include "core/session.h"
#include "core/text.h"

/* Seconds of all threads that the oracle's first pass over a case may take. */
static double oracle_seconds(const struct fib_session *s)
{
    return s->kase->settings.quick ? 0.1 : 1.0;
}

static bool is_interrupted(const struct fib_runner *runner)
{
    return runner->interrupted && runner->interrupted(runner->context);
}

static double budget_ms(const struct fib_settings *settings)
{
    if (!isnan(settings->budget_ms))
        return settings->budget_ms;
    return settings->quick ? 30.0 : settings->precise ? 2000.0 : 200.0;
}

static double case_limit_s(const struct fib_settings *settings,
                           const struct fib_device_facts *facts)
{
    if (!isnan(settings->max_case_s))
        return settings->max_case_s;
    return facts->kind == FIB_DEVICE_CPU ? 60.0 : INFINITY;
}

/* --init replaces the kind of tensors whose content the routine leaves open. */
static void apply_init(struct fib_problem *problem, const char *init)
{
    for (int t = 0; t < problem->tensor_count; t++) {
        struct fib_fill *const fill = &problem->tensors[t].fill;
        const float scale = fill->scale != 0.0f ? fill->scale : 1.0f;
        if (!fill->by_init)
            continue;
        if (strcmp(init, "uniform") == 0)
            *fill = (struct fib_fill){.kind = FIB_FILL_UNIFORM,
                                      .scale = 2.0f * scale,
                                      .offset = fill->offset - scale,
                                      .by_init = 1};
        else if (strcmp(init, "ints") == 0)
            fill->kind = FIB_FILL_INTS;
        else if (strcmp(init, "zeros") == 0)
            *fill = (struct fib_fill){
                .kind = FIB_FILL_CONSTANT, .scale = 1.0f, .offset = -1.0f, .by_init = 1};
    }
}

/* Nothing for a routine that is not built. */
static enum fib_status describe(const struct fib_case *kase, struct fib_problem *problem,
                                struct fib_error *err)
{
    const struct fib_routine *const routine = kase->routine;
    enum fib_status st = FIB_OK;
    *problem = (struct fib_problem){.accumulate_roundoff = 0x1p-24};
    if (routine->unavailable)
        return FIB_OK;
    if (routine->outline)
        st = routine->outline(kase, problem, err);
    else
        routine->describe(kase, problem);
    if (st != FIB_OK)
        *problem = (struct fib_problem){0};
    apply_init(problem, kase->settings.init);
    return st;
}

/* Its code is the program's own, so that it may run in any process. */
static bool is_describable(const struct fib_case *kase)
{
    return !kase->routine->unavailable && !kase->routine->outline;
}

/* Tells who is at work from here on: of what ends the process next, this backend is the cause. */
static void enter(struct fib_session *s, const struct fib_run_arm *arm, enum fib_step step)
{
    const double now_ms = s->runner->device->ops->now_ms(s->runner->device);
    s->spent_ms[s->step] += now_ms - s->step_begin_ms;
    s->step = step;
    s->step_begin_ms = now_ms;
    s->entered = arm;
    if (s->runner->enter)
        s->runner->enter(s->runner->context, arm ? (int)(arm - s->arms) : -1, step);
}

static void enter_window(void *context)
{
    const struct fib_run_arm *const arm = context;
    enter(arm->session, arm, FIB_STEP_TIME);
}

/* Nothing more can run in this process. */
static bool is_lost(const struct fib_session *s)
{
    return s->runner->device->lost;
}

/* Marks every arm that could still run. */
static void fail_all(struct fib_session *s, enum fib_result_status status, const char *reason)
{
    for (size_t i = 0; i < s->candidates.count; i++)
        fib_run_arm_fail(&s->arms[i], status, reason);
}

/* An error that is no backend's own. */
static void fail_all_error(struct fib_session *s, const struct fib_error *err)
{
    fail_all(s, is_lost(s) ? FIB_RESULT_CRASHED : FIB_RESULT_ERROR, err->text);
}

static size_t count_sound(const struct fib_session *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->candidates.count; i++)
        count += fib_run_arm_is_sound(&s->arms[i]);
    return count;
}

static void open_candidates(struct fib_session *s)
{
    fib_candidates_pick(s->runner->registry, s->kase,
                        s->kase->routine->unavailable ? NULL : &s->problem, s->runner->device,
                        &s->candidates);
    s->arms = fib_zalloc_array(s->candidates.count, sizeof(s->arms[0]));
    for (size_t i = 0; i < s->candidates.count; i++) {
        const struct fib_candidate *const candidate = &s->candidates.items[i];
        s->arms[i] = (struct fib_run_arm){.session = s, .candidate = candidate};
        if (!candidate->impl)
            fib_run_arm_fail(&s->arms[i], candidate->status, candidate->reason);
    }
}

/* Leaves out the backends that have their row from an earlier run or an earlier worker; returns how
 * many are left. */
static size_t leave_out(struct fib_session *s)
{
    const size_t count = s->candidates.count;
    if (!s->runner->begin_group)
        return count;
    const char **const labels = fib_zalloc_array(count, sizeof(labels[0]));
    bool *const skip = fib_zalloc_array(count, sizeof(skip[0]));
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        labels[i] = s->candidates.items[i].label;
    struct fib_group group = {.hot = s->hot, .labels = labels, .count = count};
    fib_case_key(s->kase, group.key);
    s->runner->begin_group(s->runner->context, &group, skip);
    for (size_t i = 0; i < count; i++) {
        left += !skip[i];
        s->arms[i].skipped = skip[i];
        if (skip[i])
            fib_run_arm_fail(&s->arms[i], FIB_RESULT_UNSUPPORTED, "has its row already");
    }
    free(labels);
    free(skip);
    return left;
}

static int64_t oracle_rows(const struct fib_session *s)
{
    if (s->kase->settings.no_check)
        return 0;
    const unsigned threads = fib_pool_thread_count(s->runner->device->pool);
    return fib_check_row_limit(&s->problem,
                               fib_judge_flops_budget(&s->problem, oracle_seconds(s), threads));
}

static double estimate_s(const struct fib_session *s)
{
    const struct fib_estimate_parts parts = fib_estimate_case(
        &s->problem, &s->runner->device->facts, s->slot_count, s->candidates.runnable_count,
        budget_ms(&s->kase->settings), oracle_rows(s));
    return fib_estimate_total_s(&parts);
}

/* Bytes that calls walk over before they come back to the same slot, as a share of the cache: below
 * this a "cold" call may find some of its data in the cache, and the row says so. */
static const double cold_share = 1.5;

/* Slots that fit: a ring that is too big for what is free now shrinks, down to two. */
static void choose_slots(struct fib_session *s)
{
    struct fib_device *const device = s->runner->device;
    const uint32_t least = s->hot ? 1 : 2;
    s->slot_count = fib_tensors_ring_slots(&s->problem, &device->facts, s->hot, &s->slots_capped);
    const uint64_t free_bytes = device->ops->free_bytes(device);
    while (s->slot_count > least &&
           fib_tensors_bytes(&s->problem, s->slot_count) > free_bytes / 2) {
        s->slot_count = s->slot_count / 2 > least ? s->slot_count / 2 : least;
        s->slots_capped = true;
    }
    const double walk_bytes = fib_tensors_footprint(&s->problem) * s->slot_count;
    if (!s->hot && walk_bytes < cold_share * (double)device->facts.cache_bytes)
        s->slots_capped = true;
}

static bool refuse_slow(struct fib_session *s)
{
    const double limit = case_limit_s(&s->kase->settings, &s->runner->device->facts);
    const double estimate = estimate_s(s);
    if (estimate <= limit)
        return false;
    struct fib_error err = {0};
    fib_fail(&err, FIB_ERR_USAGE,
             "estimated %.0f s, more than the %.0f s a case may take; --max_case_s %.0f allows it",
             estimate, limit, ceil(estimate));
    fail_all(s, FIB_RESULT_TOO_SLOW, err.text);
    return true;
}

static bool open_tensors(struct fib_session *s)
{
    struct fib_error err = {0};
    const enum fib_status st =
        fib_tensors_create(s->runner->device, &s->problem, (uint64_t)s->kase->settings.random_seed,
                           s->slot_count, &s->tensors, &err);
    if (st == FIB_OK)
        return true;
    if (st == FIB_ERR_OOM)
        fail_all(s, FIB_RESULT_OOM, err.text);
    else
        fail_all_error(s, &err);
    return false;
}

/* The device must be for the others, and for its cold calls, what it was before. */
static void look_for_meddling(const struct fib_session *s, struct fib_run_arm *arm)
{
    struct fib_device *const device = s->runner->device;
    char buffer[128];
    const char *const what = device->ops->meddled && !is_lost(s)
                                 ? device->ops->meddled(device, buffer, sizeof(buffer))
                                 : NULL;
    if (what)
        fib_run_arm_fail(arm, FIB_RESULT_INVALID, what);
}

static void open_arm(struct fib_session *s, struct fib_run_arm *arm)
{
    struct fib_device *const device = s->runner->device;
    const uint64_t free_before = device->ops->free_bytes(device);
    enter(s, arm, FIB_STEP_PREPARE);
    fib_run_arm_open(arm, s->kase, &s->problem, device, s->tensors);
    look_for_meddling(s, arm);
    /* It found no memory and kept what there was: the others would pay for it in this process. */
    if (arm->status == FIB_RESULT_OOM && s->runner->replaceable &&
        device->ops->free_bytes(device) < free_before / 2)
        device->lost = true;
}

static void open_arms(struct fib_session *s)
{
    for (size_t i = 0; i < s->candidates.count && !is_lost(s); i++)
        if (fib_run_arm_is_sound(&s->arms[i]))
            open_arm(s, &s->arms[i]);
}

/* Every implementation is called once before anything is timed, checked or not. */
static void first_calls(struct fib_session *s)
{
    for (size_t i = 0; i < s->candidates.count && !is_lost(s); i++) {
        struct fib_error err = {0};
        struct fib_run_arm *const arm = &s->arms[i];
        if (!fib_run_arm_is_sound(arm))
            continue;
        enter(s, arm, FIB_STEP_CHECK);
        enum fib_status st = fib_run_arm_call(arm, NULL, 0, &err);
        if (st == FIB_OK)
            st = fib_tensors_synchronize(s->tensors, &err);
        if (st == FIB_OK)
            st = fib_tensors_restore(s->tensors, 0, &err);
        if (st != FIB_OK)
            fib_run_arm_fail_error(arm, &err);
    }
}

typedef enum fib_status judge_fn(struct fib_judge *judge, const struct fib_judge_call *call,
                                 struct fib_run_arm *arm, struct fib_error *err);

static enum fib_status judge_full(struct fib_judge *judge, const struct fib_judge_call *call,
                                  struct fib_run_arm *arm, struct fib_error *err)
{
    return fib_judge_full(judge, call, &arm->check, &arm->output_checksum, err);
}

/* The last slot: only timed calls have used it so far. */
static uint32_t other_slot(const struct fib_session *s)
{
    return s->slot_count - 1;
}

/* Once more as it was timed: in a window of its own, and on a slot that only timed calls have used.
 * Who works on the slot it saw first, whatever it is given, or beside the stream that is timed, has
 * right results otherwise. */
static enum fib_status judge_replay(struct fib_judge *judge, const struct fib_judge_call *call,
                                    struct fib_run_arm *arm, struct fib_error *err)
{
    const struct fib_session *const s = arm->session;
    struct fib_replay replay = {0};
    struct fib_judge_call timed = *call;
    timed.slot = other_slot(s);
    timed.call = fib_replay_call;
    timed.context = &replay;
    enum fib_status st = fib_replay_open(&replay, arm, s->samples.timer, timed.slot, err);
    if (st == FIB_OK)
        st = fib_judge_again(judge, &timed, &arm->check, err);
    fib_replay_close(&replay);
    if (st == FIB_OK && arm->check.failed) {
        char found[sizeof(arm->check.message)];
        memcpy(found, arm->check.message, sizeof(found));
        snprintf(arm->check.message, sizeof(arm->check.message),
                 "called as it was timed, on slot %u: %s", timed.slot, found);
    }
    return st;
}

static enum fib_status judge_again(struct fib_judge *judge, const struct fib_judge_call *call,
                                   struct fib_run_arm *arm, struct fib_error *err)
{
    const enum fib_status st = fib_judge_again(judge, call, &arm->check, err);
    return st == FIB_OK && !arm->check.failed ? judge_replay(judge, call, arm, err) : st;
}

/* What a backend broke in the slots that are checked must not meet the next one. */
static enum fib_status repair(const struct fib_session *s, struct fib_error *err)
{
    const enum fib_status st = fib_tensors_repair(s->tensors, 0, err);
    return st == FIB_OK && other_slot(s) > 0 ? fib_tensors_repair(s->tensors, other_slot(s), err)
                                             : st;
}

static void judge_arm(struct fib_session *s, struct fib_judge *judge, judge_fn *pass,
                      struct fib_run_arm *arm)
{
    struct fib_error err = {0};
    const struct fib_judge_call call = {.call = fib_run_arm_call,
                                        .context = arm,
                                        .accumulate_roundoff = arm->impl->accumulate_roundoff};
    const enum fib_status st = pass(judge, &call, arm, &err);
    arm->checked = true;
    look_for_meddling(s, arm);
    if (st != FIB_OK)
        fib_run_arm_fail_error(arm, &err);
    else if (arm->check.failed)
        fib_run_arm_fail(arm, FIB_RESULT_INCORRECT, arm->check.message);
    if (arm->check.failed && !is_lost(s) && repair(s, &err) != FIB_OK)
        fib_run_arm_fail_error(arm, &err);
}

/* One oracle pass over the content of slot 0 and the verdict on each arm `want` picks. */
static void judge_arms(struct fib_session *s, judge_fn *pass, double seconds, uint32_t draw,
                       bool (*want)(const struct fib_run_arm *arm))
{
    const enum fib_step step = draw > 0 ? FIB_STEP_CHECK_AGAIN : FIB_STEP_CHECK;
    struct fib_error err = {0};
    struct fib_judge *judge = NULL;
    struct fib_device *const device = s->runner->device;
    enter(s, NULL, step);
    const enum fib_status st = fib_judge_create(
        s->kase, &s->problem, s->tensors, device->pool,
        fib_judge_flops_budget(&s->problem, seconds, fib_pool_thread_count(device->pool)),
        (uint64_t)s->kase->settings.random_seed + draw, &judge, &err);
    if (st != FIB_OK)
        fail_all_error(s, &err);
    for (size_t i = 0; st == FIB_OK && i < s->candidates.count && !is_lost(s); i++) {
        if (!want(&s->arms[i]))
            continue;
        enter(s, &s->arms[i], step);
        judge_arm(s, judge, pass, &s->arms[i]);
    }
    fib_judge_free(&judge);
}

static bool is_timed(const struct fib_run_arm *arm)
{
    return arm->timed;
}

/* An arm that gave wrong results is not timed, unless the user wants to see its times. */
static bool wants_time(const struct fib_session *s, const struct fib_run_arm *arm)
{
    return !arm->call_failed && arm->prepared_count > 0 &&
           (fib_run_arm_is_sound(arm) ||
            (arm->status == FIB_RESULT_INCORRECT && s->kase->settings.allow_output_mismatch));
}

static size_t gather_arms(struct fib_session *s, struct fib_arm *timed)
{
    size_t count = 0;
    for (size_t i = 0; i < s->candidates.count; i++) {
        struct fib_run_arm *const arm = &s->arms[i];
        arm->timed = wants_time(s, arm);
        if (!arm->timed)
            continue;
        arm->series_index = count;
        timed[count++] =
            (struct fib_arm){.label = arm->candidate->label,
                             .call = fib_run_arm_call,
                             .reset = fib_tensors_has_inout(s->tensors) ? fib_run_arm_reset : NULL,
                             .enter = enter_window,
                             .context = arm};
    }
    return count;
}

static enum fib_timer choose_timer(const struct fib_session *s)
{
    const struct fib_settings *const settings = &s->kase->settings;
    const bool cuda = s->runner->device->facts.kind == FIB_DEVICE_CUDA;
    const char *name = settings->timer;
    if (!name && cuda && settings->use_cupti && !settings->use_cuda_events)
        name = "cupti";
    else if (!name && cuda && (settings->use_cuda_events || settings->no_cuda_graph))
        name = "events";
    for (int t = FIB_TIMER_GRAPH; name && t <= FIB_TIMER_WALL; t++)
        if (strcmp(name, fib_timer_name((enum fib_timer)t)) == 0)
            return (enum fib_timer)t;
    return s->runner->device->facts.default_timer;
}

static struct fib_sample_rules sample_rules(const struct fib_session *s, double spent_ms)
{
    const struct fib_settings *const settings = &s->kase->settings;
    return (struct fib_sample_rules){
        .timer = choose_timer(s),
        .slot_count = s->slot_count,
        .in_place = fib_tensors_has_inout(s->tensors),
        .warmup_calls = settings->dry_run_iters,
        .window_count = settings->num_iters,
        .budget_ms = budget_ms(settings),
        .precision = settings->precise ? 0.001 : 0.005,
        .margin = fib_verdict_margin,
        .quick = settings->quick,
        .sustained = strcmp(settings->power_mode, "sustained") == 0,
        .timeout_ms = fmax(settings->timeout_s * 1e3 - spent_ms, 1.0),
        .seed = (uint64_t)settings->random_seed,
        .interrupted = s->runner->interrupted,
        .interrupted_context = s->runner->context,
    };
}

static void mark_call_failures(struct fib_session *s, const struct fib_error *err)
{
    for (size_t i = 0; i < s->candidates.count; i++)
        if (s->arms[i].timed && s->arms[i].call_failed) {
            s->arms[i].timed = false;
            fib_run_arm_fail_error(&s->arms[i], err);
        }
}

static bool any_call_failed(const struct fib_session *s)
{
    for (size_t i = 0; i < s->candidates.count; i++)
        if (s->arms[i].timed && s->arms[i].call_failed)
            return true;
    return false;
}

/* An arm whose windows gave no time is as broken as one whose call failed. */
static void note_failed_arm(struct fib_session *s)
{
    for (size_t i = 0; i < s->candidates.count; i++)
        if (s->arms[i].timed && s->arms[i].series_index == s->samples.failed_arm)
            s->arms[i].call_failed = true;
}

/* An error of the sampling as a whole ends it for all; a lost device is the fault of who ran. */
static void stop_timing(struct fib_session *s, const struct fib_error *err)
{
    for (size_t i = 0; i < s->candidates.count; i++) {
        struct fib_run_arm *const arm = &s->arms[i];
        if (!arm->timed)
            continue;
        arm->timed = false;
        if (!is_lost(s) || arm == s->entered || arm->call_failed)
            fib_run_arm_fail_error(arm, err);
    }
}

/* The row has only a flag for it. */
static void tell_capture(const struct fib_session *s)
{
    struct fib_text line = {0};
    if (!s->samples.capture_note[0] || !s->runner->say)
        return;
    fib_text_addf(&line, "[WARNING] timed by events around plain launches: %s",
                  s->samples.capture_note);
    s->runner->say(s->runner->context, fib_text_chars(&line));
    fib_text_free(&line);
}

/* Times all arms together. An arm whose call fails drops out and the others start over. */
static void time_arms(struct fib_session *s, double spent_ms)
{
    struct fib_arm *const timed = fib_zalloc_array(s->candidates.count, sizeof(*timed));
    while (!is_lost(s)) {
        struct fib_error err = {0};
        const size_t count = gather_arms(s, timed);
        if (count == 0)
            break;
        const struct fib_sample_rules rules = sample_rules(s, spent_ms);
        const enum fib_status st =
            fib_sample_run(s->runner->device, timed, count, &rules, &s->samples, &err);
        if (st == FIB_OK)
            break;
        note_failed_arm(s);
        (void)fib_tensors_synchronize(s->tensors, NULL); /* shows whether the device is lost */
        if (!is_lost(s) && any_call_failed(s)) {
            mark_call_failures(s, &err);
            fib_samples_free(&s->samples);
            continue;
        }
        stop_timing(s, &err);
        break;
    }
    tell_capture(s);
    free(timed);
}

/* After timing: every slot's guards and inputs still as they were? With several arms nobody can
 * tell who did it, so none of their numbers stands. */
static void verify_slots(struct fib_session *s)
{
    struct fib_error err = {0};
    struct fib_verification found = {0};
    uint32_t slot = 0;
    if (fib_tensors_verify_all(s->tensors, &slot, &found, &err) != FIB_OK) {
        fail_all_error(s, &err);
        return;
    }
    if (!found.failed)
        return;
    struct fib_error sentence = {0};
    fib_fail(&sentence, FIB_ERR_INTERNAL, "while it was timed, slot %u: %s", slot, found.message);
    for (size_t i = 0; i < s->candidates.count; i++)
        if (s->arms[i].timed) {
            fib_run_arm_fail(&s->arms[i], FIB_RESULT_INCORRECT, sentence.text);
            s->arms[i].check.failed = true;
        }
}

static void check_again(struct fib_session *s)
{
    struct fib_error err = {0};
    if (fib_tensors_redraw(s->tensors, 0, 1, &err) != FIB_OK ||
        (other_slot(s) > 0 && fib_tensors_redraw(s->tensors, other_slot(s), 1, &err) != FIB_OK)) {
        fail_all_error(s, &err);
        return;
    }
    judge_arms(s, judge_again, oracle_seconds(s) / 4, 1, is_timed);
}

/* Steps that need memory: everything between the candidates and the records. */
static void measure(struct fib_session *s)
{
    struct fib_device *const device = s->runner->device;
    const double start_ms = device->ops->now_ms(device);
    choose_slots(s);
    if (refuse_slow(s))
        return;
    enter(s, NULL, FIB_STEP_FILL);
    if (!open_tensors(s))
        return;
    open_arms(s);
    if (s->kase->settings.no_check)
        first_calls(s);
    else if (!is_lost(s))
        judge_arms(s, judge_full, oracle_seconds(s), 0, fib_run_arm_is_sound);
    time_arms(s, device->ops->now_ms(device) - start_ms);
    if (!s->samples.series || is_lost(s))
        return;
    enter(s, NULL, FIB_STEP_CHECK_AGAIN);
    verify_slots(s);
    if (!s->kase->settings.no_check && !is_interrupted(s->runner) && !is_lost(s))
        check_again(s);
}

static void close_session(struct fib_session *s)
{
    for (size_t i = 0; i < s->candidates.count; i++) {
        if (s->arms[i].prepared_count > 0)
            enter(s, &s->arms[i], FIB_STEP_RELEASE);
        fib_run_arm_close(&s->arms[i]);
    }
    free(s->arms);
    fib_samples_free(&s->samples);
    fib_tensors_free(&s->tensors);
    fib_candidates_free(&s->candidates);
}

/* The case with the cache state of this half of --cache both. The copies are the caller's. */
static void decide_cache(const struct fib_case *kase, const char *cache, struct fib_case *decided,
                         struct fib_value *values)
{
    *decided = *kase;
    memcpy(values, kase->values, kase->options->count * sizeof(values[0]));
    values[fib_option_index(kase->options, "cache")].text = cache;
    decided->values = values;
    decided->settings.cache = cache;
}

/* The introduction comes once a case, and not where every row is there already. */
static void introduce(const struct fib_session *s, bool *introduced)
{
    if (!*introduced)
        fib_narrate_case(s->runner, s->kase, s->kase->routine->unavailable ? NULL : &s->problem);
    *introduced = true;
}

static void run_session(struct fib_session *s, bool *introduced)
{
    struct fib_error err = {0};
    enter(s, NULL, FIB_STEP_BEGIN);
    s->undescribed = describe(s->kase, &s->problem, &err) != FIB_OK;
    open_candidates(s);
    if (leave_out(s) == 0)
        return;
    if (s->undescribed)
        fail_all(s, err.status == FIB_ERR_UNSUPPORTED ? FIB_RESULT_UNSUPPORTED : FIB_RESULT_ERROR,
                 err.text);
    introduce(s, introduced);
    const char *const refusal = fib_device_timer_refusal(s->runner->device, choose_timer(s));
    if (refusal)
        fail_all(s, FIB_RESULT_UNSUPPORTED, refusal);
    if (count_sound(s) > 0)
        measure(s);
}

/* One cache state: runs, reports, keeps the medians for the other state in *median_ms (freed by the
 * caller). */
static enum fib_status run_state(const struct fib_runner *runner, const struct fib_case *kase,
                                 int64_t case_index, const double *cold_ms, double **median_ms,
                                 bool *introduced, struct fib_error *err)
{
    enum fib_status st = FIB_OK;
    struct fib_session s = {.runner = runner,
                            .kase = kase,
                            .case_index = case_index,
                            .hot = strcmp(kase->settings.cache, "hot") == 0,
                            .cold_ms = cold_ms};
    s.step_begin_ms = runner->device->ops->now_ms(runner->device);
    run_session(&s, introduced);
    enter(&s, NULL, FIB_STEP_RELEASE);
    if (median_ms) {
        *median_ms = fib_zalloc_array(s.candidates.count, sizeof(**median_ms));
        fib_session_medians(&s, *median_ms);
    }
    if (!is_interrupted(runner))
        st = fib_session_emit(&s, err);
    if (st == FIB_OK && runner->end_group && !(is_lost(&s) && runner->replaceable))
        st = runner->end_group(runner->context, err);
    close_session(&s);
    /* What releasing has enqueued goes wrong here, not in the next case. */
    (void)runner->device->ops->synchronize(runner->device, NULL, NULL);
    return st;
}

static enum fib_status run_both(const struct fib_runner *runner, const struct fib_case *kase,
                                int64_t case_index, bool *introduced, struct fib_error *err)
{
    struct fib_value *const values = fib_zalloc_array(kase->options->count, sizeof(values[0]));
    double *cold_ms = NULL;
    struct fib_case decided;
    decide_cache(kase, "cold", &decided, values);
    enum fib_status st = run_state(runner, &decided, case_index, NULL, &cold_ms, introduced, err);
    if (st == FIB_OK && !is_interrupted(runner) && !runner->device->lost) {
        decide_cache(kase, "hot", &decided, values);
        st = run_state(runner, &decided, case_index, cold_ms, NULL, introduced, err);
    }
    free(cold_ms);
    free(values);
    return st;
}

enum fib_status fib_runner_case(const struct fib_runner *runner, const struct fib_case *kase,
                                int64_t case_index, struct fib_error *err)
{
    bool introduced = runner->again;
    if (strcmp(kase->settings.cache, "both") == 0)
        return run_both(runner, kase, case_index, &introduced, err);
    return run_state(runner, kase, case_index, NULL, NULL, &introduced, err);
}

struct fib_json *fib_runner_failure(const struct fib_runner *runner, const struct fib_case *kase,
                                    bool hot, int64_t case_index, const char *backend,
                                    enum fib_result_status status, const char *reason)
{
    struct fib_value *const values = fib_zalloc_array(kase->options->count, sizeof(values[0]));
    struct fib_problem problem = {0};
    struct fib_case decided;
    decide_cache(kase, hot ? "hot" : "cold", &decided, values);
    if (is_describable(kase))
        describe(kase, &problem, NULL);
    struct fib_result result = {
        .kase = &decided,
        .backend = backend,
        .status = status,
        .has_cost = is_describable(kase),
        .cost = problem.cost,
        .cache = decided.settings.cache,
        .init = kase->settings.init,
        .utc_s = runner->device->ops->utc_s(runner->device),
        .run = 1,
        .case_index = case_index,
        .cold_over_hot = NAN,
    };
    snprintf(result.reason, sizeof(result.reason), "%s", reason);
    struct fib_json *const record = fib_result_record(
        &result, runner->device, runner->registry->program, runner->registry->build_id);
    free(values);
    return record;
}

enum fib_status fib_runner_estimate(const struct fib_runner *runner, const struct fib_case *kase,
                                    struct fib_estimate *estimate, struct fib_error *err)
{
    (void)err;
    struct fib_session s = {
        .runner = runner, .kase = kase, .hot = strcmp(kase->settings.cache, "hot") == 0};
    *estimate = (struct fib_estimate){0};
    estimate->unknown = kase->routine->outline != NULL;
    if (is_describable(kase))
        describe(kase, &s.problem, NULL);
    open_candidates(&s);
    estimate->backend_count = (int)s.candidates.runnable_count;
    if (s.candidates.runnable_count > 0 && !estimate->unknown) {
        choose_slots(&s);
        estimate->device_bytes = fib_tensors_bytes(&s.problem, s.slot_count);
        estimate->time_s = estimate_s(&s);
    }
    close_session(&s);
    return FIB_OK;
}
