/* Lines that tools written for the reference look for on stdout. */
#include "core/narrate.h"

#include <inttypes.h>
#include <string.h>

#include "core/text.h"

static void say(const struct fib_runner *runner, struct fib_text *text)
{
    runner->say(runner->context, fib_text_chars(text));
    fib_text_clear(text);
}

/* Python's spelling of a text: single quotes, or double ones around single ones. */
static void add_python_text(struct fib_text *text, const char *chars)
{
    const char quote = strchr(chars, '\'') && !strchr(chars, '"') ? '"' : '\'';
    fib_text_add_char(text, quote);
    for (const char *c = chars; *c; c++) {
        if (*c == quote || *c == '\\')
            fib_text_add_char(text, '\\');
        if (*c == '\n')
            fib_text_add(text, "\\n");
        else
            fib_text_add_char(text, *c);
    }
    fib_text_add_char(text, quote);
}

static void add_python_list(struct fib_text *text, const char *words)
{
    size_t length;
    fib_text_add_char(text, '[');
    for (const char *word = fib_words_next(words, &length); word;
         word = fib_words_next(word + length, &length))
        fib_text_addf(text, "%s'%.*s'", word == words ? "" : ", ", (int)length, word);
    fib_text_add_char(text, ']');
}

static void add_python_value(struct fib_text *text, const struct fib_option *option,
                             const struct fib_value *value)
{
    const enum fib_option_kind kind = option->kind;
    if (!value->set || !value->text)
        fib_text_add(text, "None");
    else if (kind == FIB_OPT_WORDS)
        add_python_list(text, value->text);
    else if (kind == FIB_OPT_CHOICE || kind == FIB_OPT_DTYPE || kind == FIB_OPT_TEXT)
        add_python_text(text, value->text);
    else
        fib_text_add(text, value->text);
}

/* "[INFO] args = Namespace(routine='rmsnorm', batch_size=32, ...)": the case's own flags. */
static void say_arguments(const struct fib_runner *runner, const struct fib_case *kase,
                          struct fib_text *text)
{
    const char *comma = "";
    fib_text_add(text, "[INFO] args = Namespace(");
    for (size_t i = 0; i < kase->options->count; i++) {
        const struct fib_option *const option = &kase->options->rows[i];
        if (option->scope == FIB_SCOPE_RUN)
            continue;
        fib_text_addf(text, "%s%s=", comma, option->name);
        add_python_value(text, option, &kase->values[i]);
        comma = ", ";
    }
    fib_text_add(text, ")");
    say(runner, text);
}

static void say_tensors(const struct fib_runner *runner, const struct fib_problem *problem,
                        struct fib_text *text)
{
    for (int t = 0; problem && t < problem->tensor_count; t++) {
        const struct fib_tensor *const tensor = &problem->tensors[t];
        fib_text_addf(text, "[VVERBOSE] %s.shape = (", tensor->name);
        for (int d = 0; d < tensor->rank; d++)
            fib_text_addf(text, "%s%" PRId64, d > 0 ? ", " : "", tensor->shape[d]);
        fib_text_add(text, ")");
        say(runner, text);
        fib_text_addf(text, "[VVERBOSE] %s.dtype = %s", tensor->name,
                      fib_dtype_name(tensor->dtype));
        say(runner, text);
    }
}

static void say_device(const struct fib_runner *runner, struct fib_text *text)
{
    fib_text_add(text, "[VVERBOSE] gpu_name = '");
    for (const char *c = runner->device->facts.name; *c; c++)
        fib_text_add_char(text, *c == ' ' ? '_' : *c);
    fib_text_add(text, "'");
    say(runner, text);
}

/* Switches that only a CUDA device knows say so, rather than be accepted in silence. */
static void say_without_effect(const struct fib_runner *runner, const struct fib_case *kase,
                               struct fib_text *text)
{
    const struct fib_settings *const settings = &kase->settings;
    const struct fib_value *const autotune = fib_case_value(kase, "autotune");
    const struct {
        const char *name;
        bool given;
    } switches[] = {{"autotune", autotune && autotune->given},
                    {"autotune_cache", settings->autotune_cache != NULL},
                    {"no_cuda_graph", settings->no_cuda_graph},
                    {"use_cupti", settings->use_cupti},
                    {"use_cuda_events", settings->use_cuda_events},
                    {"enable_pdl", settings->enable_pdl}};
    if (runner->device->facts.kind == FIB_DEVICE_CUDA)
        return;
    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
        if (!switches[i].given)
            continue;
        fib_text_addf(text, "[WARNING] --%s has no effect without a CUDA device", switches[i].name);
        say(runner, text);
    }
}

void fib_narrate_case(const struct fib_runner *runner, const struct fib_case *kase,
                      const struct fib_problem *problem)
{
    struct fib_text text = {0};
    say_without_effect(runner, kase, &text);
    if (kase->settings.verbose >= 1) {
        say_arguments(runner, kase, &text);
        fib_text_addf(&text, "[INFO] Running %s", kase->routine->name);
        say(runner, &text);
        fib_text_addf(&text, "[INFO] %s version: %s", runner->registry->program,
                      runner->registry->version);
        say(runner, &text);
    }
    if (kase->settings.verbose >= 2)
        say_device(runner, &text);
    if (kase->settings.generate_repro_command) {
        fib_text_add(&text, "[INFO] To reproduce this test case, run the following command: ");
        fib_case_repro(kase, runner->registry->program, &text);
        say(runner, &text);
    }
    if (kase->settings.verbose >= 2)
        say_tensors(runner, problem, &text);
    fib_text_free(&text);
}
