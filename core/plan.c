/* The plan: a command line or a test list becomes a list of cases and bad lines.
 *
 * Words become given flags (assign), given flags become values and sweeps (expand, sweep), and here
 * each combination is bound into a case, filtered by --only, and checked by its routine. */
#include "core/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/assign.h"
#include "core/expand.h"
#include "core/memory.h"
#include "core/only.h"
#include "core/suggest.h"
#include "core/testlist.h"
#include "core/text.h"

struct builder {
    const struct fib_registry *registry;
    struct fib_plan *plan;
    struct fib_arena *arena;       /* the plan's */
    struct fib_arena *scratch;     /* words and flags of the line at hand */
    struct fib_context **contexts; /* by position of the routine; made when first needed */
    struct fib_context *shared;    /* rows without a routine */
    struct fib_given *run_given; /* beside --testlist: defaults of every line; one per shared row */
    const struct fib_only *only;
    struct fib_warnings warnings;
    size_t item_capacity;
    /* the line at hand */
    const char *path; /* NULL on the command line */
    int64_t line;
    const char *line_text, *routine_name;
    bool line_is_bad;
};

/* ---- items ---- */

static struct fib_plan_item *add_item(struct builder *builder)
{
    struct fib_plan *plan = builder->plan;
    if (plan->count == builder->item_capacity) {
        builder->item_capacity = builder->item_capacity ? 2 * builder->item_capacity : 64;
        plan->items = fib_realloc(plan->items, builder->item_capacity * sizeof(*plan->items));
    }
    struct fib_plan_item *item = &plan->items[plan->count++];
    *item = (struct fib_plan_item){.line = builder->line,
                                   .line_text = builder->line_text,
                                   .routine_name = builder->routine_name};
    return item;
}

static void add_bad_item(struct builder *builder, const char *sentence)
{
    add_item(builder)->error = fib_arena_printf(builder->arena, "%s:%lld: %s", builder->path,
                                                (long long)builder->line, sentence);
    if (!builder->line_is_bad)
        builder->plan->bad_line_count++;
    builder->line_is_bad = true;
}

/* ---- binding ---- */

static void bind_settings(const struct fib_context *context, const struct fib_value *values,
                          struct fib_settings *settings)
{
    for (size_t i = 0; i < context->options.count; i++)
        if (context->options.rows[i].scope != FIB_SCOPE_ROUTINE)
            fib_option_bind(&context->options.rows[i], &values[i], settings);
}

static struct fib_case *make_case(struct builder *builder, const struct fib_context *context,
                                  const struct fib_expansion *expansion, size_t index)
{
    const size_t count = context->options.count;
    struct fib_value *values = fib_arena_array(builder->arena, count, sizeof(*values));
    memcpy(values, expansion->values, count * sizeof(*values));
    fib_axes_pick(expansion->axes, expansion->axis_count, index, values);
    struct fib_case *kase = fib_arena_alloc(builder->arena, sizeof(*kase));
    *kase = (struct fib_case){.routine = context->routine,
                              .options = &context->options,
                              .values = values,
                              .line = builder->line,
                              .source = builder->path,
                              .line_text = builder->line_text};
    bind_settings(context, values, &kase->settings);
    kase->settings.routine = context->routine->name;
    if (context->routine->params_size) {
        void *params = fib_arena_alloc(builder->arena, context->routine->params_size);
        for (size_t i = 0; i < count; i++)
            if (context->options.rows[i].scope == FIB_SCOPE_ROUTINE)
                fib_option_bind(&context->options.rows[i], &values[i], params);
        kase->params = params;
    }
    return kase;
}

static enum fib_status add_case(struct builder *builder, const struct fib_context *context,
                                const struct fib_expansion *expansion, size_t index,
                                struct fib_error *err)
{
    struct fib_case *kase = make_case(builder, context, expansion, index);
    if (builder->only && !fib_only_holds(builder->only, kase)) {
        builder->plan->filtered_count++;
        return FIB_OK;
    }
    struct fib_error problem = {0};
    const enum fib_status st =
        context->routine->check ? context->routine->check(kase, &problem) : FIB_OK;
    if (st == FIB_OK) {
        add_item(builder)->kase = kase;
        return FIB_OK;
    }
    if (!builder->path)
        return fib_fail(err, st, "%s", problem.text);
    add_bad_item(builder, problem.text);
    return FIB_OK;
}

static enum fib_status add_cases(struct builder *builder, const struct fib_context *context,
                                 const struct fib_expansion *expansion, struct fib_error *err)
{
    const size_t so_far = builder->plan->count + builder->plan->filtered_count;
    if (so_far + expansion->case_count > FIB_PLAN_MAX_CASES)
        return fib_fail(err, FIB_ERR_USAGE, "with this line the run has more than %d cases",
                        FIB_PLAN_MAX_CASES);
    for (size_t i = 0; i < expansion->case_count; i++) {
        const enum fib_status st = add_case(builder, context, expansion, i, err);
        if (st != FIB_OK)
            return st;
    }
    return FIB_OK;
}

/* ---- one line or command line ---- */

static enum fib_status find_context(struct builder *builder, const struct fib_routine *routine,
                                    struct fib_context **context, struct fib_error *err)
{
    size_t n = 0;
    while (fib_registry_routine_at(builder->registry, n) != routine)
        n++;
    enum fib_status st = FIB_OK;
    if (!builder->contexts[n])
        st = fib_context_create(routine, builder->arena, &builder->contexts[n], err);
    *context = builder->contexts[n];
    return st;
}

static struct fib_given *given_of(const struct fib_context *context, struct fib_given *given,
                                  const char *name)
{
    return &given[fib_option_index(&context->options, name)];
}

/* Flags of the run mean nothing inside a list; the run's own values take their place. */
static enum fib_status drop_run_flags(struct builder *builder, const struct fib_context *context,
                                      struct fib_given *given, struct fib_error *err)
{
    if (given_of(context, given, "testlist")->origin)
        return fib_fail(err, FIB_ERR_USAGE, "--testlist cannot stand inside a test list");
    for (size_t i = 0; i < context->options.count; i++) {
        const struct fib_option *option = &context->options.rows[i];
        if (option->scope != FIB_SCOPE_RUN || !given[i].origin)
            continue;
        fib_warn(&builder->warnings, "--%s is ignored inside a test list; it belongs to the run",
                 option->name);
        given[i] = (struct fib_given){0};
    }
    fib_given_inherit(&context->options, builder->run_given, builder->shared->options.count, given);
    return FIB_OK;
}

static enum fib_status find_routine(struct builder *builder, size_t word_count,
                                    const char *const *words, const struct fib_routine **routine,
                                    struct fib_error *err)
{
    bool present = false;
    const char *name =
        fib_assign_peek(&builder->shared->options, "routine", word_count, words, &present);
    if (!present)
        return fib_fail(err, FIB_ERR_USAGE, "--routine is missing; `%s list` shows the routines",
                        builder->registry->program);
    if (!name)
        return fib_fail(err, FIB_ERR_USAGE, "--routine needs a value; `%s list` shows the routines",
                        builder->registry->program);
    builder->routine_name = fib_arena_strdup(builder->arena, name);
    *routine = fib_registry_need_routine(builder->registry, name, err);
    return *routine ? FIB_OK : FIB_ERR_USAGE;
}

static enum fib_status check_not_beside_list(const struct fib_context *context,
                                             struct fib_given *given, struct fib_error *err)
{
    if (!given_of(context, given, "testlist")->origin)
        return FIB_OK;
    return fib_fail(err, FIB_ERR_USAGE,
                    "--routine belongs to a case and cannot stand beside --testlist");
}

/* All words of one case line; its cases become items. */
static enum fib_status plan_words(struct builder *builder, size_t word_count,
                                  const char *const *words, struct fib_error *err)
{
    const struct fib_routine *routine = NULL;
    struct fib_context *context = NULL;
    enum fib_status st = find_routine(builder, word_count, words, &routine, err);
    if (st == FIB_OK)
        st = find_context(builder, routine, &context, err);
    if (st != FIB_OK)
        return st;
    struct fib_given *given =
        fib_arena_array(builder->scratch, context->options.count, sizeof(*given));
    st = fib_assign_words(&context->options, routine->name, word_count, words, FIB_FROM_LINE,
                          builder->scratch, given, err);
    if (st == FIB_OK)
        st = builder->path ? drop_run_flags(builder, context, given, err)
                           : check_not_beside_list(context, given, err);
    struct fib_expansion expansion;
    if (st == FIB_OK)
        st = fib_expand(builder->registry, context, FIB_FROM_LINE, given, builder->arena,
                        builder->scratch, &builder->warnings, &expansion, err);
    if (st != FIB_OK)
        return st;
    if (!builder->path) {
        bind_settings(context, expansion.values, &builder->plan->settings);
        const char *only = builder->plan->settings.only;
        if (only)
            st = fib_only_parse(only, builder->registry, builder->arena, &builder->only, err);
    }
    return st == FIB_OK ? add_cases(builder, context, &expansion, err) : st;
}

/* ---- lists ---- */

static bool asks_for_help(size_t word_count, const char *const *words)
{
    for (size_t i = 0; i < word_count; i++)
        if (strcmp(words[i], "-h") == 0 || strcmp(words[i], "--help") == 0)
            return true;
    return false;
}

static enum fib_status plan_line(struct builder *builder, const struct fib_testlist_line *line,
                                 struct fib_error *err)
{
    const char *const *words = NULL;
    size_t word_count = 0;
    if (line->error)
        return fib_fail(err, FIB_ERR_USAGE, "%s", line->error);
    enum fib_status st =
        fib_split_words(line->text, line->length, builder->scratch, &words, &word_count, err);
    if (st == FIB_OK && asks_for_help(word_count, words))
        st = fib_fail(err, FIB_ERR_USAGE, "--help cannot stand inside a test list");
    return st == FIB_OK ? plan_words(builder, word_count, words, err) : st;
}

/* Every line ends as cases or as a bad item; only too many of them end the call. */
static enum fib_status plan_lines(struct builder *builder, const char *bytes, size_t length,
                                  struct fib_error *err)
{
    struct fib_testlist list = {.bytes = bytes, .length = length};
    struct fib_testlist_line line;
    bool any = false;
    while (fib_testlist_next(&list, &line)) {
        any = true;
        const size_t kept = line.error && line.length > 256 ? 256 : line.length;
        builder->line = line.number;
        builder->line_text = fib_arena_strndup(builder->arena, line.text, kept);
        builder->routine_name = NULL;
        builder->line_is_bad = false;
        builder->warnings.prefix =
            fib_arena_printf(builder->arena, "%s:%lld: ", builder->path, (long long)line.number);
        struct fib_error problem = {0};
        if (builder->plan->count >= FIB_PLAN_MAX_CASES)
            return fib_fail(err, FIB_ERR_USAGE, "%s has more than %d cases and bad lines",
                            builder->path, FIB_PLAN_MAX_CASES);
        if (plan_line(builder, &line, &problem) != FIB_OK)
            add_bad_item(builder, problem.text);
        fib_arena_free(&builder->scratch);
        builder->scratch = fib_arena_create();
    }
    builder->warnings.prefix = "";
    return any ? FIB_OK
               : fib_fail(err, FIB_ERR_USAGE, "%s: the test list holds no line to run",
                          builder->path);
}

/* Beside --testlist: a flag that only routines know gets its own sentence. */
static enum fib_status explain_foreign(struct builder *builder, size_t word_count,
                                       const char *const *words, struct fib_error *err)
{
    struct fib_context *context = NULL;
    const struct fib_routine *routine;
    for (size_t n = 0; (routine = fib_registry_routine_at(builder->registry, n)); n++) {
        struct fib_error ignored = {0};
        if (find_context(builder, routine, &context, &ignored) != FIB_OK)
            continue;
        const struct fib_option *foreign =
            fib_assign_foreign(&builder->shared->options, &context->options, word_count, words);
        if (!foreign || foreign->scope != FIB_SCOPE_ROUTINE)
            continue;
        *err = (struct fib_error){0}; /* it says "unknown flag", which is not the whole truth */
        return fib_fail(err, FIB_ERR_USAGE,
                        "--%s belongs to a routine and cannot stand beside --testlist",
                        foreign->name);
    }
    return FIB_ERR_USAGE;
}

/* Flags beside --testlist: settings of the run, and defaults of every line. */
static enum fib_status plan_run_flags(struct builder *builder, size_t word_count,
                                      const char *const *words, struct fib_error *err)
{
    const struct fib_context *shared = builder->shared;
    const size_t count = shared->options.count;
    builder->run_given = fib_arena_array(builder->arena, count, sizeof(*builder->run_given));
    struct fib_error problem = {0};
    if (fib_assign_words(&shared->options, "--testlist", word_count, words, FIB_FROM_RUN,
                         builder->arena, builder->run_given, &problem) != FIB_OK) {
        explain_foreign(builder, word_count, words, &problem);
        return fib_fail(err, problem.status, "%s", problem.text);
    }
    struct fib_given *given = fib_arena_array(builder->arena, count, sizeof(*given));
    memcpy(given, builder->run_given, count * sizeof(*given));
    struct fib_expansion expansion;
    enum fib_status st = fib_expand(builder->registry, shared, FIB_FROM_RUN, given, builder->arena,
                                    builder->scratch, &builder->warnings, &expansion, err);
    if (st != FIB_OK)
        return st;
    bind_settings(shared, expansion.values, &builder->plan->settings);
    const char *only = builder->plan->settings.only;
    return only ? fib_only_parse(only, builder->registry, builder->arena, &builder->only, err)
                : FIB_OK;
}

static enum fib_status plan_testlist(struct builder *builder, size_t word_count,
                                     const char *const *words, struct fib_error *err)
{
    enum fib_status st = plan_run_flags(builder, word_count, words, err);
    if (st != FIB_OK)
        return st;
    builder->path = builder->plan->settings.testlist;
    if (!*builder->path)
        return fib_fail(err, FIB_ERR_USAGE, "--testlist '': the path of a file is needed");
    struct fib_text bytes = {0};
    st = fib_testlist_read(builder->path, &bytes, err);
    if (st == FIB_OK)
        st = plan_lines(builder, fib_text_chars(&bytes), bytes.length, err);
    fib_text_free(&bytes);
    return st;
}

/* ---- the whole ---- */

static struct builder *builder_create(const struct fib_registry *registry, struct fib_error *err)
{
    struct fib_arena *arena = fib_arena_create();
    struct builder *builder = fib_arena_alloc(arena, sizeof(*builder));
    size_t routine_count = 0;
    while (fib_registry_routine_at(registry, routine_count))
        routine_count++;
    *builder = (struct builder){.registry = registry, .arena = arena};
    builder->scratch = fib_arena_create();
    builder->plan = fib_zalloc(sizeof(*builder->plan));
    builder->plan->arena = arena;
    builder->warnings = (struct fib_warnings){.arena = arena, .prefix = ""};
    builder->contexts = fib_arena_array(arena, routine_count + 1, sizeof(*builder->contexts));
    fib_context_create(NULL, arena, &builder->shared, err);
    return builder;
}

/* What grew on the heap moves into the arena, so that the plan has one owner. */
static enum fib_status finish(struct builder *builder, enum fib_status st, struct fib_plan **plan)
{
    struct fib_plan *made = builder->plan;
    const char **warnings = builder->warnings.texts;
    struct fib_plan_item *items = made->items;
    made->items = fib_arena_array(made->arena, made->count + 1, sizeof(*items));
    if (made->count)
        memcpy(made->items, items, made->count * sizeof(*items));
    made->warning_count = builder->warnings.count;
    const char **kept = fib_arena_array(made->arena, made->warning_count + 1, sizeof(*kept));
    if (made->warning_count)
        memcpy(kept, warnings, made->warning_count * sizeof(*kept));
    made->warnings = kept;
    free(items);
    free(warnings);
    fib_arena_free(&builder->scratch);
    if (st != FIB_OK)
        fib_plan_free(&made);
    *plan = made;
    return st;
}

enum fib_status fib_plan_parse(const struct fib_registry *registry, size_t word_count,
                               const char *const *words, struct fib_plan **plan,
                               struct fib_error *err)
{
    struct builder *builder = builder_create(registry, err);
    if (!builder->shared)
        return finish(builder, FIB_ERR_INTERNAL, plan);
    const struct fib_option_set *shared = &builder->shared->options;
    bool has_routine = false, has_list = false;
    fib_assign_peek(shared, "routine", word_count, words, &has_routine);
    fib_assign_peek(shared, "testlist", word_count, words, &has_list);
    enum fib_status st;
    if (has_routine)
        st = plan_words(builder, word_count, words, err);
    else if (has_list)
        st = plan_testlist(builder, word_count, words, err);
    else
        st = fib_fail(err, FIB_ERR_USAGE,
                      "--routine NAME or --testlist PATH is needed; `%s list` shows the routines",
                      registry->program);
    return finish(builder, st, plan);
}

enum fib_status fib_testlist_plan(const struct fib_registry *registry, const char *name,
                                  const char *bytes, size_t length, struct fib_plan **plan,
                                  struct fib_error *err)
{
    struct builder *builder = builder_create(registry, err);
    if (!builder->shared)
        return finish(builder, FIB_ERR_INTERNAL, plan);
    const char *const words[] = {"--testlist", name};
    enum fib_status st = plan_run_flags(builder, 2, words, err);
    builder->path = builder->plan->settings.testlist;
    if (st == FIB_OK)
        st = plan_lines(builder, bytes, length, err);
    return finish(builder, st, plan);
}

void fib_plan_free(struct fib_plan **plan)
{
    if (!*plan)
        return;
    fib_arena_free(&(*plan)->arena);
    free(*plan);
    *plan = NULL;
}
