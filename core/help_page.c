/* docs/options.md: every flag of every family in tables, made from the option rows. */
#include "core/help.h"

#include <string.h>

#include "core/help_rows.h"
#include "core/memory.h"
#include "core/text.h"

static const char *kind_name(enum fib_option_kind kind)
{
    switch (kind) {
    case FIB_OPT_I64:
        return "integer";
    case FIB_OPT_F64:
        return "number";
    case FIB_OPT_CHOICE:
        return "choice";
    case FIB_OPT_DTYPE:
        return "dtype";
    case FIB_OPT_TEXT:
        return "text";
    case FIB_OPT_SWITCH:
        return "switch";
    case FIB_OPT_COUNT:
        return "count";
    case FIB_OPT_WORDS:
        return "words";
    case FIB_OPT_I64_LIST:
        return "integers";
    }
    return "";
}

/* Text of a table cell: choices are separated by commas, since a bar would end the cell. */
static void add_cell(const char *text, struct fib_text *out)
{
    for (const char *c = text; *c; c++) {
        if (strncmp(c, " | ", 3) == 0) {
            fib_text_add(out, ", ");
            c += 2;
        } else if (*c == '|') {
            fib_text_add(out, "\\|");
        } else {
            fib_text_add_char(out, *c);
        }
    }
}

static void add_spelling_cell(const struct fib_option *option, struct fib_text *out)
{
    fib_text_addf(out, "| `--%s`", option->name);
    if (option->short_name)
        fib_text_addf(out, ", `-%s`", option->short_name);
    if (option->negation)
        fib_text_addf(out, ", `--%s`", option->negation);
    fib_text_addf(out, " | %s | ", kind_name(option->kind));
}

static const char *default_text(const struct fib_option *option, struct fib_arena *arena)
{
    (void)arena;
    const char *text = fib_help_default(option);
    return text ? text : "unset";
}

static const char *values_text(const struct fib_option *option, struct fib_arena *arena)
{
    const char *text = fib_help_values(option, arena);
    return text ? text : "";
}

static void add_shared_row(const struct fib_option *option, struct fib_text *out)
{
    struct fib_arena *arena = fib_arena_create();
    add_spelling_cell(option, out);
    fib_text_addf(out, "%s | ", default_text(option, arena));
    add_cell(values_text(option, arena), out);
    fib_text_addf(out, " | %s | ", option->own ? "ours" : "reference");
    add_cell(option->help, out);
    fib_text_add(out, " |\n");
    fib_arena_free(&arena);
}

static void add_shared_table(const char *heading, const char *note, enum fib_option_scope scope,
                             struct fib_text *out)
{
    fib_text_addf(out, "\n## %s\n\n%s\n\n", heading, note);
    fib_text_add(out, "| Flag | Kind | Default | Allowed | Origin | Meaning |\n"
                      "|---|---|---|---|---|---|\n");
    for (const struct fib_option *row = fib_shared_options; row->name; row++)
        if (row->scope == scope)
            add_shared_row(row, out);
}

/* A flag over the routines of a family that have and read it. */
struct spread {
    const struct fib_routine *const *routines;
    const struct fib_option **rows; /* effective row of each routine */
    size_t count;
};

static void add_names(const struct spread *spread, const char *const *texts, const char *text,
                      struct fib_text *out)
{
    const char *separator = "";
    for (size_t i = 0; i < spread->count; i++) {
        if (strcmp(texts[i], text) != 0)
            continue;
        fib_text_addf(out, "%s`%s`", separator, spread->routines[i]->name);
        separator = ", ";
    }
}

static size_t count_equal(const char *const *texts, size_t count, const char *text)
{
    size_t equal = 0;
    for (size_t i = 0; i < count; i++)
        equal += strcmp(texts[i], text) == 0;
    return equal;
}

/* One text when all routines agree; else what most have, then the exceptions with their names. */
static void add_spread(const struct spread *spread, struct fib_arena *arena,
                       const char *(*text_of)(const struct fib_option *, struct fib_arena *),
                       struct fib_text *out)
{
    const char **texts = fib_arena_array(arena, spread->count, sizeof(*texts));
    for (size_t i = 0; i < spread->count; i++)
        texts[i] = text_of(spread->rows[i], arena);
    const char *most = texts[0];
    for (size_t i = 1; i < spread->count; i++)
        if (count_equal(texts, spread->count, texts[i]) > count_equal(texts, spread->count, most))
            most = texts[i];
    add_cell(most, out);
    for (size_t i = 0; i < spread->count; i++) {
        /* each exception once, at its first routine */
        if (strcmp(texts[i], most) == 0 || count_equal(texts, i, texts[i]) > 0)
            continue;
        fib_text_add(out, "; ");
        add_cell(texts[i], out);
        fib_text_add(out, " for ");
        add_names(spread, texts, texts[i], out);
    }
}

/* "all", the routines that read the flag, or "all but" the others when those are fewer. */
static void add_users(const struct fib_family *family, const struct spread *spread,
                      struct fib_text *out)
{
    const size_t others = family->routine_count - spread->count;
    const bool complement = others > 0 && others < spread->count;
    if (others == 0 || complement)
        fib_text_add(out, others == 0 ? "all" : "all but ");
    const char *separator = "";
    for (size_t i = 0; others > 0 && i < family->routine_count; i++) {
        bool reads = false;
        for (size_t j = 0; j < spread->count; j++)
            reads = reads || spread->routines[j] == &family->routines[i];
        if (reads == complement)
            continue;
        fib_text_addf(out, "%s`%s`", separator, family->routines[i].name);
        separator = ", ";
    }
}

static struct spread spread_of(const struct fib_family *family, const char *flag,
                               struct fib_arena *arena)
{
    const struct fib_routine **routines =
        fib_arena_array(arena, family->routine_count, sizeof(*routines));
    struct spread spread = {
        .routines = routines,
        .rows = fib_arena_array(arena, family->routine_count, sizeof(*spread.rows)),
    };
    for (size_t i = 0; i < family->routine_count; i++) {
        const struct fib_routine *routine = &family->routines[i];
        const struct fib_option_set set = fib_registry_options(routine, arena);
        const int index = fib_option_index(&set, flag);
        if (index < 0 || !fib_help_is_used(routine, &set.rows[index]))
            continue;
        routines[spread.count] = routine;
        spread.rows[spread.count++] = &set.rows[index];
    }
    return spread;
}

static void add_family_row(const struct fib_family *family, const struct fib_option *option,
                           struct fib_text *out)
{
    struct fib_arena *arena = fib_arena_create();
    const struct spread spread = spread_of(family, option->name, arena);
    add_spelling_cell(option, out);
    if (spread.count > 0) {
        add_spread(&spread, arena, default_text, out);
        fib_text_add(out, " | ");
        add_spread(&spread, arena, values_text, out);
        fib_text_add(out, " | ");
        add_users(family, &spread, out);
    } else {
        fib_text_add(out, " | | none yet");
    }
    fib_text_add(out, " | ");
    add_cell(option->help, out);
    fib_text_addf(out, "%s |\n", option->own ? " (ours)" : "");
    fib_arena_free(&arena);
}

/* True when an earlier routine of the family has the flag in its table. */
static bool seen_before(const struct fib_family *family, size_t routine, const char *flag)
{
    for (size_t i = 0; i < routine; i++)
        for (const struct fib_option *row = family->routines[i].options; row->name; row++)
            if (strcmp(row->name, flag) == 0)
                return true;
    return false;
}

static void add_family_table(const struct fib_family *family, struct fib_text *out)
{
    fib_text_addf(out, "\n## %s\n\n", family->name);
    for (size_t i = 0; i < family->routine_count; i++)
        fib_text_addf(out, "- `%s`: %s%s\n", family->routines[i].name, family->routines[i].summary,
                      family->routines[i].unavailable ? " (not built)" : "");
    fib_text_add(out, "\n| Flag | Kind | Default | Allowed | Used by | Meaning |\n"
                      "|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < family->routine_count; i++)
        for (const struct fib_option *row = family->routines[i].options; row->name; row++)
            if (!seen_before(family, i, row->name))
                add_family_row(family, row, out);
}

static void add_labels(const struct fib_registry *registry, struct fib_text *out)
{
    fib_text_add(out, "\n## Backend labels\n\n"
                      "Every label may be named; where nothing runs under it, its row says why. "
                      "`plugin:NAME` is a loaded library.\n\n"
                      "| Label | Stands for |\n|---|---|\n");
    for (size_t i = 0; i < registry->label_count; i++) {
        const struct fib_label *label = &registry->labels[i];
        fib_text_addf(out, "| `%s` | ", label->name);
        add_cell(label->meaning, out);
        fib_text_addf(out, "%s |\n", label->alias_warns ? ", with a warning" : "");
    }
}

static void add_work(const struct fib_registry *registry, struct fib_text *out)
{
    fib_text_add(out,
                 "\n## Work of a call\n\n"
                 "`tflops` and `tb_per_sec` of a row count this, whatever the backend does. Worked "
                 "examples: [metrics.md](metrics.md).\n\n"
                 "| Routine | Flops and bytes |\n|---|---|\n");
    const struct fib_routine *routine;
    for (size_t n = 0; (routine = fib_registry_routine_at(registry, n)); n++) {
        if (!routine->cost_note)
            continue;
        fib_text_addf(out, "| `%s` | ", routine->name);
        add_cell(routine->cost_note, out);
        fib_text_add(out, " |\n");
    }
}

void fib_help_options_page(const struct fib_registry *registry, struct fib_text *out)
{
    fib_text_addf(
        out,
        "# Flags\n\n"
        "Made by `%s list --flags` from the tables of options, labels and routines; do not "
        "edit.\n\n"
        "`--flag value` and `--flag=value` are the same, so are `_` and `-`, and a prefix "
        "that fits one flag stands for it. A number, choice or dtype may be a sweep: "
        "`1,2,4`, `1:64:*2`, `1:9:2`. A flag that a routine does not use is accepted "
        "with a warning when it belongs to its family, and is an error otherwise.\n",
        registry->program);
    add_shared_table("Every case", "Beside `--testlist` they are defaults that a line overrides.",
                     FIB_SCOPE_SHARED, out);
    add_shared_table("The run", "Inside a test list they are ignored with a warning.",
                     FIB_SCOPE_RUN, out);
    add_labels(registry, out);
    for (size_t i = 0; i < registry->family_count; i++)
        add_family_table(registry->families[i], out);
    add_work(registry, out);
}
