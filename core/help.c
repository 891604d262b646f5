/* Help for people at a terminal: --help, --routine R --help, describe R. */
#include "core/help.h"

#include <string.h>

#include "core/help_rows.h"
#include "core/memory.h"
#include "core/text.h"

enum { GLOBAL_INDENT = 28, FLAG_INDENT = 32, LABEL_INDENT = 14, PROSE_INDENT = 2 };

static void add_usage(const struct fib_registry *registry, struct fib_text *out)
{
    const char *program = registry->program;
    fib_text_addf(out, "%s %s: measures LLM kernels and checks every result\n\n", program,
                  registry->version);
    fib_text_addf(out,
                  "  %s --routine R [flags]        one routine; --m 1,16 or --m 1:4096:*2 sweeps\n",
                  program);
    fib_text_addf(out, "  %s --testlist F [flags]       a file of flags, one case a line\n",
                  program);
    fib_text_addf(out, "  %s --routine R --help         flags of a routine\n", program);
    fib_text_addf(out,
                  "  %s list                       routines and backends; --family F, --models, "
                  "--flags\n",
                  program);
    fib_text_addf(out,
                  "  %s describe R                 formula, tensors, flags, cost, tolerance, "
                  "backends\n",
                  program);
    fib_text_addf(out, "  %s env | doctor               what is here, and what is missing\n",
                  program);
}

/* One line: the first of three lengths of detail that fits the screen. */
static void add_global_flag(const struct fib_option *option, struct fib_text *out)
{
    struct fib_arena *arena = fib_arena_create();
    const bool choice = option->kind == FIB_OPT_CHOICE;
    const char *values = choice ? fib_help_values(option, arena) : NULL;
    const char *fallback = option->kind == FIB_OPT_SWITCH ? NULL : fib_help_default(option);
    const char *start =
        choice ? fib_arena_printf(arena, "%s: %s", option->help, values) : option->help;
    const char *whole = fallback ? fib_arena_printf(arena, "%s [%s]", start, fallback) : start;
    const char *const details[] = {whole, start, option->help};
    size_t pick = 0;
    while (pick < 2 && GLOBAL_INDENT + strlen(details[pick]) > FIB_HELP_COLUMNS)
        pick++;
    fib_text_add(out, "  ");
    fib_help_spelling(option, out);
    fib_text_add_char(out, ' ');
    fib_help_wrap(out, GLOBAL_INDENT, details[pick]);
    fib_arena_free(&arena);
}

/* Flags that the usage lines show already, and a placeholder that nobody types. */
static bool is_shown_elsewhere(const struct fib_option *option)
{
    return fib_words_contain("routine testlist repro_command", option->name);
}

static void add_global_flags(enum fib_option_scope scope, struct fib_text *out)
{
    for (const struct fib_option *row = fib_shared_options; row->name; row++)
        if (row->scope == scope && !is_shown_elsewhere(row))
            add_global_flag(row, out);
}

void fib_help_global(const struct fib_registry *registry, struct fib_text *out)
{
    add_usage(registry, out);
    fib_text_add(out, "\nEvery case (beside --testlist: defaults that a line overrides)\n");
    add_global_flags(FIB_SCOPE_SHARED, out);
    fib_text_add(out, "\nThe run\n");
    add_global_flags(FIB_SCOPE_RUN, out);
    fib_text_add(out, "\nAll flags of all routines: docs/options.md. From the Python tool: "
                      "docs/from_flashinfer.md.\n");
}

/* "rows (required, 1 .. 1048576)". In arena. */
static const char *explain(const struct fib_option *option, struct fib_arena *arena)
{
    const char *values = fib_help_values(option, arena);
    const char *fallback = fib_help_default(option);
    if (option->kind == FIB_OPT_SWITCH && strcmp(fallback, "off") == 0)
        return option->help;
    if (option->required)
        return fib_arena_printf(arena, "%s (required%s%s)", option->help, values ? "; " : "",
                                values ? values : "");
    if (!fallback)
        return values ? fib_arena_printf(arena, "%s (%s)", option->help, values) : option->help;
    return fib_arena_printf(arena, "%s (%s%sdefault %s)", option->help, values ? values : "",
                            values ? "; " : "", fallback);
}

static void add_flag(const struct fib_option *option, struct fib_text *out)
{
    struct fib_arena *arena = fib_arena_create();
    fib_text_add(out, "  ");
    fib_help_spelling(option, out);
    fib_text_add_char(out, ' ');
    fib_help_wrap(out, FLAG_INDENT, explain(option, arena));
    fib_arena_free(&arena);
}

static void add_unused(const struct fib_routine *routine, const struct fib_option_set *set,
                       struct fib_text *out)
{
    struct fib_text flags = {0};
    for (size_t i = 0; i < set->count; i++)
        if (set->rows[i].scope == FIB_SCOPE_ROUTINE && !fib_help_is_used(routine, &set->rows[i]))
            fib_text_addf(&flags, " --%s", set->rows[i].name);
    if (flags.length) {
        fib_text_add(out, "  accepted without effect:");
        fib_help_wrap(out, 27, fib_text_chars(&flags));
    }
    fib_text_free(&flags);
}

static void add_flags(const struct fib_routine *routine, struct fib_text *out)
{
    struct fib_arena *arena = fib_arena_create();
    const struct fib_option_set set = fib_registry_options(routine, arena);
    fib_text_add(out, "\nFlags\n");
    for (size_t i = 0; i < set.count; i++)
        if (set.rows[i].scope == FIB_SCOPE_ROUTINE && fib_help_is_used(routine, &set.rows[i]))
            add_flag(&set.rows[i], out);
    add_unused(routine, &set, out);
    fib_arena_free(&arena);
}

static void add_required(const struct fib_routine *routine, struct fib_text *out)
{
    struct fib_arena *arena = fib_arena_create();
    const struct fib_option_set set = fib_registry_options(routine, arena);
    for (size_t i = 0; i < set.count; i++) {
        if (set.rows[i].scope != FIB_SCOPE_ROUTINE || !set.rows[i].required)
            continue;
        fib_text_add_char(out, ' ');
        fib_help_spelling(&set.rows[i], out);
    }
    fib_arena_free(&arena);
}

static void add_heading(const struct fib_routine *routine, struct fib_text *out)
{
    fib_text_addf(out, "%s  (%s)\n", routine->name, routine->family);
    fib_help_wrap(out, PROSE_INDENT, routine->summary);
    if (routine->unavailable)
        fib_help_wrap(out, PROSE_INDENT, routine->unavailable);
}

void fib_help_routine(const struct fib_registry *registry, const struct fib_routine *routine,
                      struct fib_text *out)
{
    struct fib_text usage = {0};
    add_heading(routine, out);
    fib_text_addf(&usage, "%s --routine %s", registry->program, routine->name);
    add_required(routine, &usage);
    fib_text_add(&usage, " [flags]");
    fib_text_add_char(out, '\n');
    fib_help_wrap(out, PROSE_INDENT, fib_text_chars(&usage));
    fib_text_free(&usage);
    add_flags(routine, out);
    fib_text_addf(out, "\nMore: %s describe %s\nFlags that every routine has: %s --help\n",
                  registry->program, routine->name, registry->program);
}

static void add_prose(const char *heading, const char *text, struct fib_text *out)
{
    if (!text)
        return;
    fib_text_addf(out, "\n%s\n", heading);
    fib_help_wrap(out, PROSE_INDENT, text);
}

static void add_backend(const char *label, const char *state, struct fib_text *out)
{
    fib_text_addf(out, "  %s", label);
    fib_text_add_char(out, ' ');
    fib_help_wrap(out, LABEL_INDENT, state);
}

/* Why nothing runs under a label, when that is worth a line of its own; else NULL. */
static const char *refusal(const struct fib_registry *registry, const struct fib_routine *routine,
                           const char *label)
{
    const struct fib_backend *absent = fib_registry_absent(registry, label, routine->family);
    if (absent)
        return absent->absent;
    return fib_words_contain(routine->default_backends, label) ? "not built" : NULL;
}

static void add_backends(const struct fib_registry *registry, const struct fib_routine *routine,
                         struct fib_text *out)
{
    fib_text_add(out, "\nBackends\n");
    for (size_t i = 0; i < registry->label_count; i++) {
        const struct fib_label *label = &registry->labels[i];
        const char *why = refusal(registry, routine, label->name);
        if (fib_registry_impl(registry, routine->name, label->name, FIB_DEVICE_CPU))
            add_backend(label->name, "runs here", out);
        else if (fib_registry_impl(registry, routine->name, label->name, FIB_DEVICE_CUDA))
            add_backend(label->name, "runs on a CUDA device", out);
        else if (why)
            add_backend(label->name, why, out);
    }
    fib_text_add(out,
                 "  Other labels are accepted and refused with a reason; see docs/options.md.\n");
}

void fib_help_describe(const struct fib_registry *registry, const struct fib_routine *routine,
                       struct fib_text *out)
{
    add_heading(routine, out);
    add_prose("Tensors", routine->layout_note, out);
    add_flags(routine, out);
    add_prose("Cost", routine->cost_note, out);
    if (!routine->reference && routine->outline)
        add_prose("Check", "The routine has no reference: rows are UNCHECKED.", out);
    else if (!routine->unavailable)
        add_prose("Check",
                  "Against a float64 computation of the same inputs: |out - ref| <= u_out |ref| + "
                  "4 u_acc sum|terms|, where u_out is the rounding of the output dtype and u_acc "
                  "2^-24; quantised outputs: 99.9 % of the codes equal, the rest one code off.",
                  out);
    add_backends(registry, routine, out);
}
