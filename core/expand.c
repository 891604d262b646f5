/* Given flags become values: models, sweeps, zips, backend names, contradictions. */
#include "core/expand.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/memory.h"
#include "core/plan.h"
#include "core/suggest.h"
#include "core/text.h"

enum {
    MAX_ZIPS = 2,   /* the model's and the user's */
    MAX_LABELS = 64 /* more backends than any build has; also bounds the search for duplicates */
};

/* Flags of one line that walk together. */
struct zip {
    size_t *rows;
    size_t count;
};

struct job {
    const struct fib_registry *registry;
    const struct fib_context *context;
    enum fib_origin own_origin;
    struct fib_given *given;
    struct fib_arena *arena;   /* what cases keep */
    struct fib_arena *scratch; /* what ends with the line */
    struct fib_warnings *warnings;
    struct fib_expansion *expansion;
    struct fib_error *err;
    struct zip zips[MAX_ZIPS];
    size_t zip_count;
    struct fib_sweep *sweeps; /* rows with several values, one slot per row */
};

/* ---- warnings ---- */

void fib_warn(struct fib_warnings *warnings, const char *format, ...)
{
    char text[FIB_ERROR_CHARS];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (warnings->count == warnings->capacity) {
        warnings->capacity = warnings->capacity ? 2 * warnings->capacity : 16;
        warnings->texts =
            fib_realloc(warnings->texts, warnings->capacity * sizeof(*warnings->texts));
    }
    char *kept = fib_arena_printf(warnings->arena, "%s%s", warnings->prefix, text);
    for (char *c = kept; *c; c++) /* one warning stays one line */
        *c = (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c;
    warnings->texts[warnings->count++] = kept;
}

/* ---- contexts ---- */

enum fib_status fib_context_create(const struct fib_routine *routine, struct fib_arena *arena,
                                   struct fib_context **context, struct fib_error *err)
{
    struct fib_context *made = fib_arena_alloc(arena, sizeof(*made));
    made->routine = routine;
    made->options = fib_registry_options(routine, arena);
    made->defaults = fib_arena_array(arena, made->options.count, sizeof(*made->defaults));
    for (size_t i = 0; i < made->options.count; i++) {
        const struct fib_option *option = &made->options.rows[i];
        const char *text = option->fallback;
        if (!text && option->kind == FIB_OPT_SWITCH)
            text = "False";
        if (!text && option->kind == FIB_OPT_COUNT)
            text = "0";
        if (!text)
            continue;
        struct fib_error inner = {0};
        if (fib_option_parse(option, text, arena, &made->defaults[i], &inner) != FIB_OK)
            return fib_fail(err, FIB_ERR_INTERNAL, "default of %s: %s",
                            routine ? routine->name : "the shared flags", inner.text);
    }
    *context = made;
    return FIB_OK;
}

static size_t shared_row(const struct job *job, const char *name)
{
    return (size_t)fib_option_index(&job->context->options, name);
}

static bool is_used(const struct job *job, const struct fib_option *option)
{
    const struct fib_routine *routine = job->context->routine;
    return !routine || !option->uses || fib_words_contain(option->uses, routine->name);
}

/* ---- contradictions ---- */

static const struct {
    const char *a, *b;
    bool is_error; /* else a later origin replaces an earlier one, and that is all */
} contradictions[] = {
    {"quick", "precise", true},
    {"force", "append", true},
    {"timer", "use_cuda_events", false},
};

void fib_given_inherit(const struct fib_option_set *set, const struct fib_given *defaults,
                       size_t default_count, struct fib_given *given)
{
    for (size_t i = 0; i < default_count; i++) {
        if (given[i].origin || !defaults[i].origin)
            continue;
        bool contradicted = false;
        for (size_t j = 0; j < sizeof(contradictions) / sizeof(contradictions[0]); j++) {
            const bool is_a = strcmp(set->rows[i].name, contradictions[j].a) == 0;
            const bool is_b = strcmp(set->rows[i].name, contradictions[j].b) == 0;
            if (!is_a && !is_b)
                continue;
            const int other =
                fib_option_index(set, is_a ? contradictions[j].b : contradictions[j].a);
            contradicted = contradicted || given[other].origin == FIB_FROM_LINE;
        }
        if (!contradicted)
            given[i] = defaults[i];
    }
}

static bool given_both(const struct job *job, const char *a, const char *b)
{
    return job->given[shared_row(job, a)].origin && job->given[shared_row(job, b)].origin;
}

static enum fib_status check_contradictions(const struct job *job)
{
    for (size_t i = 0; i < sizeof(contradictions) / sizeof(contradictions[0]); i++)
        if (contradictions[i].is_error && given_both(job, contradictions[i].a, contradictions[i].b))
            return fib_fail(job->err, FIB_ERR_USAGE, "--%s and --%s exclude each other",
                            contradictions[i].a, contradictions[i].b);
    return FIB_OK;
}

static bool given_here(const struct job *job, const char *name)
{
    return job->given[shared_row(job, name)].origin == job->own_origin;
}

static void warn_shared(const struct job *job)
{
    if (given_here(job, "use_cuda_events") && given_both(job, "timer", "use_cuda_events"))
        fib_warn(job->warnings, "--timer wins over --use_cuda_events");
    if ((given_here(job, "no_check") || given_here(job, "refcheck")) &&
        given_both(job, "no_check", "refcheck"))
        fib_warn(job->warnings, "--no_check wins over --refcheck: results will be UNCHECKED");
}

static void warn_unused(const struct job *job)
{
    const struct fib_option_set *options = &job->context->options;
    for (size_t i = 0; i < options->count; i++)
        if (job->given[i].origin == job->own_origin && !is_used(job, &options->rows[i]))
            fib_warn(job->warnings, "--%s has no effect on %s", options->rows[i].name,
                     job->context->routine->name);
}

/* ---- zip ---- */

static bool zip_holds(const struct zip *zip, size_t row)
{
    for (size_t i = 0; i < zip->count; i++)
        if (zip->rows[i] == row)
            return true;
    return false;
}

static enum fib_status add_zip_name(struct job *job, struct zip *zip, const char *name)
{
    const struct fib_option_set *options = &job->context->options;
    const struct fib_routine *routine = job->context->routine;
    bool negated = false;
    const char *bare = name + strspn(name, "-");
    const struct fib_option *option =
        fib_option_find(options, bare, routine ? routine->name : NULL, &negated, job->err);
    if (!option)
        return FIB_ERR_USAGE;
    if (!fib_sweep_allowed(option))
        return fib_fail(job->err, FIB_ERR_USAGE, "--zip: --%s cannot be swept", option->name);
    const size_t row = (size_t)(option - options->rows);
    for (size_t i = 0; i < job->zip_count; i++)
        if (&job->zips[i] != zip && zip_holds(&job->zips[i], row))
            return fib_fail(job->err, FIB_ERR_USAGE,
                            "--zip: --%s is already walked together with others by --model",
                            option->name);
    if (!zip_holds(zip, row))
        zip->rows[zip->count++] = row;
    return FIB_OK;
}

static enum fib_status add_zip(struct job *job, const char *text)
{
    const size_t zip_row = shared_row(job, "zip");
    struct fib_value names = {0};
    enum fib_status st = fib_option_parse(&job->context->options.rows[zip_row], text, job->scratch,
                                          &names, job->err);
    if (st != FIB_OK)
        return st;
    struct zip *zip = &job->zips[job->zip_count];
    zip->rows = fib_arena_array(job->scratch, job->context->options.count, sizeof(*zip->rows));
    size_t length = 0;
    for (const char *word = names.text; (word = fib_words_next(word, &length)); word += length) {
        st = add_zip_name(job, zip, fib_arena_strndup(job->scratch, word, length));
        if (st != FIB_OK)
            return st;
    }
    job->zip_count++;
    return FIB_OK;
}

/* ---- model ---- */

static enum fib_status fail_model(const struct job *job, const char *name, bool known)
{
    const struct fib_registry *registry = job->registry;
    if (known)
        return fib_fail(job->err, FIB_ERR_USAGE,
                        "--model %s: no shapes for %s (family %s); `%s list --models` shows all",
                        fib_shown(name, job->scratch), job->context->routine->name,
                        job->context->routine->family, registry->program);
    struct fib_suggest suggest = fib_suggest_start(name);
    for (size_t i = 0; i < registry->model_count; i++)
        fib_suggest_try(&suggest, registry->models[i].name);
    const char *best = fib_suggest_best(&suggest);
    return fib_fail(job->err, FIB_ERR_USAGE,
                    "--model %s: unknown model%s%s; `%s list --models` shows all",
                    fib_shown(name, job->scratch), best ? ", nearest is " : "", best ? best : "",
                    registry->program);
}

static const struct fib_model *find_model(const struct job *job, const char *name, bool *known)
{
    const struct fib_routine *routine = job->context->routine;
    *known = false;
    for (size_t i = 0; i < job->registry->model_count; i++) {
        const struct fib_model *model = &job->registry->models[i];
        if (strcasecmp(model->name, name) != 0)
            continue;
        *known = true;
        if (!routine || strcmp(model->family, routine->family) == 0)
            return model;
    }
    return NULL;
}

/* True when the user gave some flag of the model's zipped group: then the group goes as a whole. */
static bool group_replaced(const struct job *job)
{
    const struct zip *zip = &job->zips[0];
    for (size_t i = 0; i < zip->count; i++)
        if (job->given[zip->rows[i]].origin)
            return true;
    return false;
}

static enum fib_status fill_from_model(struct job *job, struct fib_given *filled)
{
    const struct fib_option_set *options = &job->context->options;
    struct fib_given *zip_given = &filled[shared_row(job, "zip")];
    if (zip_given->origin) {
        const enum fib_status st = add_zip(job, zip_given->text);
        if (st != FIB_OK)
            return st;
        *zip_given = (struct fib_given){0};
    }
    const bool replaced = job->zip_count && group_replaced(job);
    for (size_t i = 0; i < options->count; i++) {
        const bool in_group = job->zip_count && zip_holds(&job->zips[0], i);
        if (!filled[i].origin || job->given[i].origin || !is_used(job, &options->rows[i]) ||
            (in_group && replaced))
            continue;
        job->given[i] = filled[i];
    }
    if (replaced)
        job->zip_count = 0;
    return FIB_OK;
}

static enum fib_status apply_model(struct job *job)
{
    const struct fib_given *model_given = &job->given[shared_row(job, "model")];
    if (!model_given->origin)
        return FIB_OK;
    bool known = false;
    const struct fib_model *model = find_model(job, model_given->text, &known);
    if (!model)
        return fail_model(job, model_given->text, known);
    if (!job->context->routine)
        return FIB_OK;
    const char *const *words = NULL;
    size_t word_count = 0;
    struct fib_given *filled =
        fib_arena_array(job->scratch, job->context->options.count, sizeof(*filled));
    enum fib_status st = fib_split_words(model->words, strlen(model->words), job->scratch, &words,
                                         &word_count, job->err);
    if (st == FIB_OK)
        st = fib_assign_words(&job->context->options, job->context->routine->name, word_count,
                              words, FIB_FROM_MODEL, job->scratch, filled, job->err);
    return st == FIB_OK ? fill_from_model(job, filled) : st;
}

/* ---- values ---- */

static const char *raw_text(const struct job *job, size_t row)
{
    const struct fib_given *given = &job->given[row];
    switch (job->context->options.rows[row].kind) {
    case FIB_OPT_SWITCH:
        return given->negated ? "False" : "True";
    case FIB_OPT_COUNT:
        return fib_arena_printf(job->scratch, "%lld", (long long)given->count);
    default:
        return given->text;
    }
}

/* A flag that the routine does not read must be legal, and keeps its default. */
static enum fib_status parse_row(struct job *job, size_t row)
{
    struct fib_sweep *sweep = &job->sweeps[row];
    const struct fib_option *option = &job->context->options.rows[row];
    sweep->row = row;
    const enum fib_status st =
        fib_sweep_parse(option, raw_text(job, row), FIB_PLAN_MAX_CASES, job->arena, &sweep->values,
                        &sweep->count, job->err);
    if (st != FIB_OK)
        return st;
    if (is_used(job, option))
        job->expansion->values[row] = sweep->values[0];
    else
        sweep->count = 1;
    job->expansion->values[row].given = is_used(job, option);
    return FIB_OK;
}

static enum fib_status parse_rows(struct job *job)
{
    const size_t count = job->context->options.count;
    struct fib_value *values = fib_arena_array(job->scratch, count, sizeof(*values));
    memcpy(values, job->context->defaults, count * sizeof(*values));
    job->expansion->values = values;
    job->sweeps = fib_arena_array(job->scratch, count, sizeof(*job->sweeps));
    for (size_t i = 0; i < count; i++) {
        const enum fib_status st = job->given[i].origin ? parse_row(job, i) : FIB_OK;
        if (st != FIB_OK)
            return st;
    }
    return FIB_OK;
}

/* The first missing flag is the sentence's subject; the others follow, so that one look is enough.
 */
static enum fib_status demand_required(const struct job *job)
{
    const struct fib_option_set *options = &job->context->options;
    struct fib_text others = {0};
    const char *first = NULL;
    for (size_t i = 0; job->context->routine && i < options->count; i++) {
        const struct fib_option *option = &options->rows[i];
        if (!option->required || job->expansion->values[i].set || !is_used(job, option))
            continue;
        if (first)
            fib_text_addf(&others, "%s--%s", others.length ? ", " : ", and so is ", option->name);
        else
            first = option->name;
    }
    enum fib_status st = FIB_OK;
    if (first)
        st = fib_fail(job->err, FIB_ERR_USAGE, "--%s is required for %s%s", first,
                      job->context->routine->name, fib_text_chars(&others));
    fib_text_free(&others);
    return st;
}

/* ---- backends ---- */

static enum fib_status fail_label(const struct job *job, const char *flag, const char *name)
{
    const struct fib_registry *registry = job->registry;
    struct fib_suggest suggest = fib_suggest_start(name);
    for (size_t i = 0; i < registry->label_count; i++)
        fib_suggest_try(&suggest, registry->labels[i].name);
    const char *best = fib_suggest_best(&suggest);
    return fib_fail(job->err, FIB_ERR_USAGE, "--%s: unknown backend %s%s%s; `%s list` shows all",
                    flag, fib_shown(name, job->scratch), best ? ", nearest is " : "",
                    best ? best : "", registry->program);
}

/* Appends the label that `name` stands for. */
static enum fib_status add_label(const struct job *job, size_t row, const char *name,
                                 struct fib_text *labels)
{
    const char *flag = job->context->options.rows[row].name;
    const bool announce = job->given[row].origin == job->own_origin;
    const struct fib_label *label = fib_registry_label(job->registry, name);
    if (!label)
        return fail_label(job, flag, name);
    if (label->alias_of) {
        if (label->alias_warns && announce)
            fib_warn(job->warnings, "backend %s is now called %s", name, label->alias_of);
        name = label->alias_of;
    }
    if (fib_words_contain(fib_text_chars(labels), name)) {
        if (announce)
            fib_warn(job->warnings, "--%s names %s more than once", flag, name);
        return FIB_OK;
    }
    if (labels->length)
        fib_text_add_char(labels, ' ');
    fib_text_add(labels, name);
    return FIB_OK;
}

static enum fib_status map_labels(const struct job *job, const char *flag, bool none_allowed)
{
    const size_t row = shared_row(job, flag);
    struct fib_value *value = &job->expansion->values[row];
    if (!value->set || (none_allowed && strcmp(value->text, "none") == 0))
        return FIB_OK;
    if (none_allowed && fib_words_contain(value->text, "none"))
        return fib_fail(job->err, FIB_ERR_USAGE,
                        "--%s none stands alone, was given with others: %s", flag,
                        fib_shown(value->text, job->scratch));
    struct fib_text labels = {0};
    size_t length = 0, count = 0;
    enum fib_status st = FIB_OK;
    for (const char *word = value->text; st == FIB_OK && (word = fib_words_next(word, &length));
         word += length) {
        if (++count > MAX_LABELS)
            st = fib_fail(job->err, FIB_ERR_USAGE, "--%s: more than %d backends", flag, MAX_LABELS);
        else
            st = add_label(job, row, fib_arena_strndup(job->scratch, word, length), &labels);
    }
    value->text = fib_arena_strdup(job->arena, fib_text_chars(&labels));
    fib_text_free(&labels);
    return st;
}

/* ---- axes ---- */

/* Earlier flags are slower: first by where they came from, then by their place there. */
static int compare_given(const struct fib_given *a, const struct fib_given *b)
{
    if (a->origin != b->origin)
        return a->origin < b->origin ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static enum fib_status fail_zip(const struct job *job, const struct zip *zip)
{
    struct fib_text counts = {0};
    for (size_t i = 0; i < zip->count; i++) {
        const size_t count = job->sweeps[zip->rows[i]].count;
        fib_text_addf(&counts, "%s--%s has %zu", i ? ", " : "",
                      job->context->options.rows[zip->rows[i]].name, count ? count : 1);
    }
    const enum fib_status st =
        fib_fail(job->err, FIB_ERR_USAGE, "--zip needs flags with equally many values: %s",
                 fib_text_chars(&counts));
    fib_text_free(&counts);
    return st;
}

static enum fib_status check_zip(const struct job *job, const struct zip *zip)
{
    for (size_t i = 1; i < zip->count; i++) {
        const size_t first = job->sweeps[zip->rows[0]].count,
                     other = job->sweeps[zip->rows[i]].count;
        if ((first ? first : 1) != (other ? other : 1))
            return fail_zip(job, zip);
    }
    return FIB_OK;
}

/* The zip that holds a row, or NULL. */
static const struct zip *zip_of(const struct job *job, size_t row)
{
    for (size_t i = 0; i < job->zip_count; i++)
        if (zip_holds(&job->zips[i], row))
            return &job->zips[i];
    return NULL;
}

static struct fib_axis make_axis(const struct job *job, size_t row)
{
    const struct zip *zip = zip_of(job, row);
    if (!zip)
        return (struct fib_axis){
            .sweeps = &job->sweeps[row], .sweep_count = 1, .count = job->sweeps[row].count};
    struct fib_axis axis = {.count = job->sweeps[row].count};
    axis.sweeps = fib_arena_array(job->scratch, zip->count, sizeof(*axis.sweeps));
    for (size_t i = 0; i < zip->count; i++)
        axis.sweeps[axis.sweep_count++] = job->sweeps[zip->rows[i]];
    return axis;
}

/* Slow axes first; a zipped group stands where its first flag stands. */
static void make_axes(struct job *job)
{
    const size_t count = job->context->options.count;
    size_t *order = fib_arena_array(job->scratch, count, sizeof(*order));
    size_t swept = 0;
    for (size_t row = 0; row < count; row++) {
        if (job->sweeps[row].count < 2)
            continue;
        size_t at = swept++;
        for (; at > 0 && compare_given(&job->given[row], &job->given[order[at - 1]]) < 0; at--)
            order[at] = order[at - 1];
        order[at] = row;
    }
    struct fib_expansion *expansion = job->expansion;
    expansion->axes = fib_arena_array(job->scratch, swept + 1, sizeof(*expansion->axes));
    bool *done = fib_arena_array(job->scratch, count, sizeof(*done));
    for (size_t i = 0; i < swept; i++) {
        if (done[order[i]])
            continue;
        const struct fib_axis axis = make_axis(job, order[i]);
        for (size_t j = 0; j < axis.sweep_count; j++)
            done[axis.sweeps[j].row] = true;
        expansion->axes[expansion->axis_count++] = axis;
    }
}

static enum fib_status combine(struct job *job)
{
    for (size_t i = 0; i < job->zip_count; i++) {
        const enum fib_status st = check_zip(job, &job->zips[i]);
        if (st != FIB_OK)
            return st;
    }
    make_axes(job);
    struct fib_expansion *expansion = job->expansion;
    expansion->case_count =
        fib_axes_count(expansion->axes, expansion->axis_count, FIB_PLAN_MAX_CASES);
    if (expansion->case_count > FIB_PLAN_MAX_CASES)
        return fib_fail(job->err, FIB_ERR_USAGE, "the sweeps multiply to more than %d cases",
                        FIB_PLAN_MAX_CASES);
    return FIB_OK;
}

static enum fib_status expand(struct job *job)
{
    enum fib_status st = apply_model(job);
    const struct fib_given *zip = &job->given[shared_row(job, "zip")];
    /* Beside a test list the names belong to routines that are not known yet. */
    if (st == FIB_OK && zip->origin && job->context->routine)
        st = add_zip(job, zip->text);
    if (st == FIB_OK)
        st = check_contradictions(job);
    if (st == FIB_OK)
        st = parse_rows(job);
    if (st == FIB_OK)
        st = demand_required(job);
    if (st == FIB_OK)
        st = map_labels(job, "backends", false);
    if (st == FIB_OK)
        st = map_labels(job, "also", true);
    if (st == FIB_OK)
        st = combine(job);
    if (st == FIB_OK) {
        warn_shared(job);
        warn_unused(job);
    }
    return st;
}

enum fib_status fib_expand(const struct fib_registry *registry, const struct fib_context *context,
                           enum fib_origin own_origin, struct fib_given *given,
                           struct fib_arena *arena, struct fib_arena *scratch,
                           struct fib_warnings *warnings, struct fib_expansion *expansion,
                           struct fib_error *err)
{
    struct job job = {.registry = registry,
                      .context = context,
                      .own_origin = own_origin,
                      .given = given,
                      .arena = arena,
                      .scratch = scratch,
                      .warnings = warnings,
                      .expansion = expansion,
                      .err = err};
    *expansion = (struct fib_expansion){0};
    return expand(&job);
}
