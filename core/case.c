/* What a case says about itself: values by name, the command that repeats it, its key and title. */
#include "core/case.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/assign.h"
#include "core/element.h"
#include "core/routine.h"
#include "core/text.h"

const struct fib_value *fib_case_value(const struct fib_case *kase, const char *name)
{
    const int row = fib_option_index(kase->options, name);
    return row < 0 ? NULL : &kase->values[row];
}

static const struct fib_value *value_of(const struct fib_case *kase, const char *flag)
{
    const struct fib_value *value = fib_case_value(kase, flag);
    assert(value && "the routine has no such flag");
    return value;
}

int64_t fib_case_i64(const struct fib_case *kase, const char *flag)
{
    const struct fib_value *value = value_of(kase, flag);
    return value->set ? value->i64 : FIB_UNSET_I64;
}

double fib_case_f64(const struct fib_case *kase, const char *flag)
{
    const struct fib_value *value = value_of(kase, flag);
    return value->set ? value->f64 : NAN;
}

const char *fib_case_text(const struct fib_case *kase, const char *flag)
{
    const struct fib_value *value = value_of(kase, flag);
    return value->set ? value->text : NULL;
}

bool fib_case_on(const struct fib_case *kase, const char *flag)
{
    return fib_case_is(kase, flag, "True");
}

bool fib_case_is(const struct fib_case *kase, const char *flag, const char *text)
{
    const char *have = fib_case_text(kase, flag);
    return have && strcmp(have, text) == 0;
}

bool fib_case_uses(const struct fib_case *kase, const struct fib_option *option)
{
    return !option->uses || fib_words_contain(option->uses, kase->routine->name);
}

/* ---- repro ---- */

/* A value that looks like a flag must be tied to its own. */
static void add_flag_value(const char *name, const char *text, struct fib_text *out)
{
    if (!fib_word_is_flag(text)) {
        fib_text_addf(out, " --%s ", name);
        fib_text_add_shell_word(out, text);
        return;
    }
    struct fib_text word = {0};
    fib_text_addf(&word, "--%s=", name);
    fib_text_add(&word, text);
    fib_text_add_char(out, ' ');
    fib_text_add_shell_word(out, fib_text_chars(&word));
    fib_text_free(&word);
}

static bool some_word_is_flag(const char *words)
{
    size_t length = 0;
    for (const char *word = words; (word = fib_words_next(word, &length)); word += length)
        if (fib_word_is_flag(word))
            return true;
    return false;
}

/* Words stand apart, or joined by commas where one of them looks like a flag. */
static void add_flag_words(const char *name, const char *words, struct fib_text *out)
{
    const bool tied = some_word_is_flag(words);
    struct fib_text word = {0};
    size_t length = 0;
    fib_text_addf(tied ? &word : out, tied ? "--%s=" : " --%s", name);
    const char *separator = "";
    for (const char *next = words; (next = fib_words_next(next, &length)); next += length) {
        if (tied) {
            fib_text_add(&word, separator);
            fib_text_add_n(&word, next, length);
            separator = ",";
            continue;
        }
        fib_text_clear(&word);
        fib_text_add_n(&word, next, length);
        fib_text_add_char(out, ' ');
        fib_text_add_shell_word(out, fib_text_chars(&word));
    }
    if (tied) {
        fib_text_add_char(out, ' ');
        fib_text_add_shell_word(out, fib_text_chars(&word));
    }
    fib_text_free(&word);
}

static void add_flag(const struct fib_option *option, const struct fib_value *value,
                     struct fib_text *out)
{
    switch (option->kind) {
    case FIB_OPT_SWITCH:
        if (value->i64)
            fib_text_addf(out, " --%s", option->name);
        else if (option->negation)
            fib_text_addf(out, " --%s", option->negation);
        return;
    case FIB_OPT_COUNT:
        for (int64_t i = 0; i < value->i64; i++)
            fib_text_addf(out, " --%s", option->name);
        return;
    case FIB_OPT_WORDS:
    case FIB_OPT_I64_LIST:
        add_flag_words(option->name, value->text, out);
        return;
    default:
        add_flag_value(option->name, value->text, out);
        return;
    }
}

static bool is_repeated(const struct fib_option *option)
{
    static const char spelled_out[] = "routine model zip";
    return (option->scope != FIB_SCOPE_RUN || option->needed) &&
           !fib_words_contain(spelled_out, option->name);
}

void fib_case_repro(const struct fib_case *kase, const char *program, struct fib_text *out)
{
    fib_text_add_shell_word(out, program);
    add_flag_value("routine", kase->routine->name, out);
    for (size_t i = 0; i < kase->options->count; i++) {
        const struct fib_option *option = &kase->options->rows[i];
        const struct fib_value *value = &kase->values[i];
        if (value->given && value->set && is_repeated(option))
            add_flag(option, value, out);
    }
}

/* ---- key ---- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash * UINT64_C(0x100000001b3); /* also for the end, so that "ab","c" is not "a","bc" */
}

static uint64_t hash_pair(const char *name, const char *text)
{
    const uint64_t start = UINT64_C(0xcbf29ce484222325);
    /* spread over all bits, so that sums do not cancel */
    return fib_mix64(hash_text(hash_text(start, name), text));
}

/* --use_cuda_events is another spelling of --timer events, and --timer wins. */
static const char *effective_timer(const struct fib_case *kase)
{
    const struct fib_value *timer = fib_case_value(kase, "timer");
    const struct fib_value *events = fib_case_value(kase, "use_cuda_events");
    if (timer && timer->set)
        return timer->text;
    return events && events->i64 ? "events" : "";
}

/* A flag of ours at its default does not enter the key, so that adding one leaves the keys of all
 * older results as they are. */
static bool is_default_of_ours(const struct fib_option *option, const struct fib_value *value)
{
    return option->own && (option->kind == FIB_OPT_SWITCH
                               ? value->i64 == 0
                               : option->fallback && strcmp(option->fallback, value->text) == 0);
}

static bool shapes_result(const struct fib_case *kase, const struct fib_option *option)
{
    static const char shared[] =
        "random_seed cache init power_mode enable_pdl no_cuda_graph variant";
    if (option->scope == FIB_SCOPE_ROUTINE)
        return fib_case_uses(kase, option);
    return fib_words_contain(shared, option->name);
}

void fib_case_key(const struct fib_case *kase, char key[17])
{
    /* A sum does not depend on the order of rows, so tables may be rearranged. */
    uint64_t sum = hash_pair("routine", kase->routine->name);
    sum += hash_pair("timer", effective_timer(kase));
    for (size_t i = 0; i < kase->options->count; i++) {
        const struct fib_option *option = &kase->options->rows[i];
        if (kase->values[i].set && shapes_result(kase, option) &&
            !is_default_of_ours(option, &kase->values[i]))
            sum += hash_pair(option->name, kase->values[i].text);
    }
    sum = fib_mix64(sum);
    for (int digit = 15; digit >= 0; digit--, sum >>= 4)
        key[digit] = "0123456789abcdef"[sum & 15];
    key[16] = '\0';
}

/* ---- title ---- */

void fib_case_title(const struct fib_case *kase, struct fib_text *out)
{
    fib_text_add(out, kase->routine->name);
    for (size_t i = 0; i < kase->options->count; i++) {
        const struct fib_option *option = &kase->options->rows[i];
        const struct fib_value *value = &kase->values[i];
        if (option->scope != FIB_SCOPE_ROUTINE || !value->set || !fib_case_uses(kase, option) ||
            !(option->required || value->given))
            continue;
        if (option->kind == FIB_OPT_SWITCH)
            fib_text_addf(out, " %s%s", value->i64 ? "" : "no ", option->name);
        else
            fib_text_addf(out, " %s=%s", option->name, value->text);
    }
}
