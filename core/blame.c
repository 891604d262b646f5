/* Bookkeeping of one case over the workers it uses up, and the sentences of the failure rows. */
#include "core/blame.h"

#include <stdlib.h>
#include <string.h>

#include "core/candidates.h"
#include "core/memory.h"

void fib_blame_begin(struct fib_blame *blame, const struct fib_runner *runner,
                     const struct fib_case *kase, int64_t index)
{
    *blame = (struct fib_blame){.runner = runner, .kase = kase, .index = index};
    blame->both = strcmp(kase->settings.cache, "both") == 0;
    fib_blame_start(blame);
}

static void drop_labels(struct fib_blame_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        free(state->labels[i]);
    free(state->labels);
    state->labels = NULL;
    state->count = 0;
}

void fib_blame_free(struct fib_blame *blame)
{
    for (int hot = 0; hot < 2; hot++) {
        drop_labels(&blame->states[hot]);
        fib_text_free(&blame->states[hot].done);
    }
}

void fib_blame_start(struct fib_blame *blame)
{
    blame->hot = strcmp(blame->kase->settings.cache, "hot") == 0;
    blame->in_group = false;
}

static bool has_row(const struct fib_blame_state *state, const char *label)
{
    return fib_words_contain(fib_text_chars(&state->done), label);
}

static void set_done(struct fib_blame_state *state, const char *label)
{
    fib_text_add(&state->done, state->done.length > 0 ? " " : "");
    fib_text_add(&state->done, label);
}

static void set_labels(struct fib_blame_state *state, const char *const *labels, size_t count)
{
    drop_labels(state);
    state->labels = fib_zalloc_array(count, sizeof(state->labels[0]));
    state->count = count;
    for (size_t i = 0; i < count; i++)
        state->labels[i] = fib_strdup(labels[i]);
}

void fib_blame_group(struct fib_blame *blame, const struct fib_group *group)
{
    struct fib_blame_state *const state = &blame->states[group->hot];
    blame->hot = group->hot;
    blame->in_group = true;
    set_labels(state, group->labels, group->count);
    if (!state->begun && blame->runner->begin_group) {
        bool *const skip = fib_zalloc_array(group->count, sizeof(skip[0]));
        blame->runner->begin_group(blame->runner->context, group, skip);
        for (size_t i = 0; i < group->count; i++)
            if (skip[i])
                set_done(state, group->labels[i]);
        free(skip);
    }
    state->begun = true;
}

bool fib_blame_is_done(const struct fib_blame *blame, size_t i)
{
    const struct fib_blame_state *const state = &blame->states[blame->hot];
    return has_row(state, state->labels[i]);
}

bool fib_blame_note(struct fib_blame *blame, const char *label)
{
    struct fib_blame_state *const state = &blame->states[blame->hot];
    for (size_t i = 0; label && blame->in_group && i < state->count; i++) {
        if (strcmp(state->labels[i], label) != 0 || has_row(state, label))
            continue;
        set_done(state, label);
        blame->open = true;
        blame->row_count++;
        return true;
    }
    return false;
}

enum fib_status fib_blame_end_group(struct fib_blame *blame, struct fib_error *err)
{
    const struct fib_runner *const runner = blame->runner;
    blame->in_group = false;
    blame->open = false;
    blame->hot = blame->hot || blame->both;
    return runner->end_group ? runner->end_group(runner->context, err) : FIB_OK;
}

static bool state_is_complete(const struct fib_blame_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        if (!has_row(state, state->labels[i]))
            return false;
    return state->begun;
}

bool fib_blame_is_complete(const struct fib_blame *blame)
{
    if (blame->both)
        return state_is_complete(&blame->states[0]) && state_is_complete(&blame->states[1]);
    return state_is_complete(&blame->states[blame->hot]);
}

/* ---- failure rows ---- */

static const char *step_of_backend(int step)
{
    switch (step) {
    case FIB_STEP_PREPARE:
        return ", while it was prepared";
    case FIB_STEP_CHECK:
        return ", in its first calls";
    case FIB_STEP_TIME:
        return ", while it was timed";
    case FIB_STEP_CHECK_AGAIN:
        return ", in the check after timing";
    case FIB_STEP_RELEASE:
        return ", while it was released";
    default:
        return "";
    }
}

static const char *step_of_nobody(int step)
{
    switch (step) {
    case FIB_STEP_FILL:
        return " while inputs were filled";
    case FIB_STEP_CHECK:
    case FIB_STEP_CHECK_AGAIN:
        return " while results were checked";
    default:
        return " before any backend ran";
    }
}

static enum fib_status book_row(struct fib_blame *blame, const struct fib_blame_end *end,
                                const char *label, bool guilty, struct fib_error *err)
{
    struct fib_blame_state *const state = &blame->states[blame->hot];
    const struct fib_runner *const runner = blame->runner;
    struct fib_text reason = {0};
    if (guilty)
        fib_text_addf(&reason, "%s in %s%s", end->what, label, step_of_backend(end->step));
    else
        fib_text_addf(&reason, "%s%s", end->what, step_of_nobody(end->step));
    if (!guilty && blame->kase->routine->outline)
        fib_text_addf(&reason, "; the routine is that of %s", blame->kase->routine->family);
    struct fib_json *const record = fib_runner_failure(
        runner, blame->kase, blame->hot, blame->index, label, end->status, fib_text_chars(&reason));
    fib_text_free(&reason);
    set_done(state, label);
    blame->open = true;
    blame->row_count++;
    return runner->emit(runner->context, record, err);
}

/* The worker did not live to name the backends. */
static void name_backends(struct fib_blame *blame)
{
    struct fib_blame_state *const state = &blame->states[blame->hot];
    const struct fib_runner *const runner = blame->runner;
    struct fib_candidates candidates;
    fib_candidates_name(runner->registry, blame->kase, runner->device, &candidates);
    const char **const labels = fib_zalloc_array(candidates.count, sizeof(labels[0]));
    for (size_t i = 0; i < candidates.count; i++)
        labels[i] = candidates.items[i].label;
    set_labels(state, labels, candidates.count);
    state->begun = true;
    free(labels);
    fib_candidates_free(&candidates);
}

/* All rows of the state are there, so that the case lost nothing. */
static void warn_of_end(const struct fib_blame *blame, const struct fib_blame_end *end)
{
    struct fib_text line = {0};
    if (!blame->runner->say)
        return;
    fib_text_addf(&line, "[WARNING] %s after its results had been reported%s", end->what,
                  step_of_backend(end->step));
    blame->runner->say(blame->runner->context, fib_text_chars(&line));
    fib_text_free(&line);
}

enum fib_status fib_blame_book(struct fib_blame *blame, const struct fib_blame_end *end,
                               struct fib_error *err)
{
    struct fib_blame_state *const state = &blame->states[blame->hot];
    if (end->step == FIB_STEP_RELEASE || (blame->in_group && state_is_complete(state))) {
        warn_of_end(blame, end);
        return FIB_OK;
    }
    if (!state->begun)
        name_backends(blame);
    if (blame->in_group && end->arm >= 0 && (size_t)end->arm < state->count &&
        !has_row(state, state->labels[end->arm]))
        return book_row(blame, end, state->labels[end->arm], true, err);
    enum fib_status st = FIB_OK;
    for (size_t i = 0; i < state->count && st == FIB_OK; i++)
        if (!has_row(state, state->labels[i]))
            st = book_row(blame, end, state->labels[i], false, err);
    return st;
}
