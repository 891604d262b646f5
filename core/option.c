/* Options: finding a flag by its spelling, parsing one value, saying what is allowed. */
#include "core/option.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "core/memory.h"
#include "core/suggest.h"
#include "core/text.h"

/* ---- finding a flag ---- */

struct match {
    const struct fib_option *option;
    bool negated;
    size_t count;
    struct fib_text names; /* candidates, for the sentence about an ambiguous prefix */
};

/* '-' and '_' are the same. Returns true when `flag` is `name` or, unless `exact`, its start. */
static bool spells(const char *flag, const char *name, bool exact)
{
    for (; *flag; flag++, name++) {
        const char c = *flag == '-' ? '_' : *flag;
        if (c != *name)
            return false;
    }
    return !exact || *name == '\0';
}

static void add_match(struct match *match, const struct fib_option *option, bool negated)
{
    match->option = option;
    match->negated = negated;
    match->count++;
    if (match->count <= 8)
        fib_text_addf(&match->names, "%s--%s", match->count == 1 ? "" : ", ",
                      negated ? option->negation : option->name);
}

static void find_matches(const struct fib_option_set *set, const char *flag, bool exact,
                         bool reference_only, struct match *match)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct fib_option *option = &set->rows[i];
        if (reference_only && option->own)
            continue;
        if (spells(flag, option->name, exact))
            add_match(match, option, false);
        if (option->negation && spells(flag, option->negation, exact))
            add_match(match, option, true);
    }
}

static void fail_unknown(const struct fib_option_set *set, const char *flag, const char *where,
                         struct fib_error *err)
{
    if (!err)
        return; /* a caller that only probes does not pay for a suggestion */
    struct fib_suggest suggest = fib_suggest_start(flag);
    for (size_t i = 0; i < set->count; i++) {
        fib_suggest_try(&suggest, set->rows[i].name);
        if (set->rows[i].negation)
            fib_suggest_try(&suggest, set->rows[i].negation);
    }
    struct fib_arena *arena = fib_arena_create();
    fib_fail(err, FIB_ERR_USAGE, "unknown flag --%s%s%s%s", fib_shown(flag, arena),
             where ? " for " : "", where ? where : "", fib_suggest_clause(&suggest, "--", arena));
    fib_arena_free(&arena);
}

const struct fib_option *fib_option_find(const struct fib_option_set *set, const char *flag,
                                         const char *where, bool *negated, struct fib_error *err)
{
    struct match match = {0};
    if (*flag) {
        find_matches(set, flag, true, false, &match);
        if (match.count == 0)
            find_matches(set, flag, false, true, &match);
        if (match.count == 0)
            find_matches(set, flag, false, false, &match);
    }
    if (match.count == 0)
        fail_unknown(set, flag, where, err);
    else if (match.count > 1)
        fib_fail(err, FIB_ERR_USAGE, "--%s is ambiguous%s%s: it may be %s%s", flag,
                 where ? " for " : "", where ? where : "", fib_text_chars(&match.names),
                 match.count > 8 ? ", ..." : "");
    fib_text_free(&match.names);
    *negated = match.negated;
    return match.count == 1 ? match.option : NULL;
}

int fib_option_index(const struct fib_option_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(set->rows[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* ---- what is allowed ---- */

static bool i64_bounded(const struct fib_option *option)
{
    return option->min != 0 || option->max != 0;
}

static bool f64_bounded(const struct fib_option *option)
{
    return option->min_f64 != 0 || option->max_f64 != 0;
}

static void add_i64_range(const struct fib_option *option, struct fib_text *out)
{
    const long long min = option->min, max = option->max;
    if (option->max == INT64_MAX)
        fib_text_addf(out, ">= %lld", min);
    else if (option->min == INT64_MIN)
        fib_text_addf(out, "<= %lld", max);
    else
        fib_text_addf(out, "%lld .. %lld", min, max);
}

static void add_f64_range(const struct fib_option *option, struct fib_text *out)
{
    fib_text_add_f64(out, option->min_f64);
    fib_text_add(out, " .. ");
    fib_text_add_f64(out, option->max_f64);
}

static void add_choices(const char *choices, struct fib_text *out)
{
    size_t length = 0;
    const char *separator = "";
    for (const char *word = choices; word && (word = fib_words_next(word, &length));
         word += length) {
        fib_text_add(out, separator);
        fib_text_add_n(out, word, length);
        separator = " | ";
    }
}

static void add_allowed(const struct fib_option *option, struct fib_text *out)
{
    switch (option->kind) {
    case FIB_OPT_I64:
    case FIB_OPT_I64_LIST:
        if (i64_bounded(option))
            add_i64_range(option, out);
        else
            fib_text_add(out, "any integer");
        break;
    case FIB_OPT_F64:
        if (f64_bounded(option))
            add_f64_range(option, out);
        else
            fib_text_add(out, "any finite number");
        break;
    case FIB_OPT_CHOICE:
    case FIB_OPT_DTYPE:
        add_choices(option->choices, out);
        break;
    case FIB_OPT_TEXT:
        fib_text_add(out, "any text");
        break;
    case FIB_OPT_WORDS:
        fib_text_add(out, "one or more words");
        break;
    case FIB_OPT_SWITCH:
        fib_text_add(out, "no value");
        break;
    case FIB_OPT_COUNT:
        fib_text_add(out, "no value, may be repeated");
        break;
    }
}

const char *fib_option_allowed(const struct fib_option *option, struct fib_arena *arena)
{
    struct fib_text text = {0};
    add_allowed(option, &text);
    const char *allowed = fib_arena_strdup(arena, fib_text_chars(&text));
    fib_text_free(&text);
    return allowed;
}

/* ---- values ---- */

static enum fib_status fail_value(const struct fib_option *option, const char *text,
                                  const char *rule, struct fib_arena *arena, struct fib_error *err)
{
    return fib_fail(err, FIB_ERR_USAGE, "--%s %s: must be %s", option->name, fib_shown(text, arena),
                    rule);
}

static bool all_digits(const char *text)
{
    if (*text == '-' || *text == '+')
        text++;
    return *text && text[strspn(text, "0123456789")] == '\0';
}

/* "an integer, 1 .. 8" when the text is none, "1 .. 8" when it is one outside. */
static enum fib_status fail_i64(const struct fib_option *option, const char *text,
                                struct fib_arena *arena, struct fib_error *err)
{
    const bool bounded = i64_bounded(option);
    const char *range = bounded ? fib_option_allowed(option, arena) : "";
    double number = 0;
    if (all_digits(text))
        return fail_value(option, text, bounded ? range : "an integer that fits 64 bits", arena,
                          err);
    const bool scientific = strpbrk(text, "eE") && fib_parse_f64(text, &number);
    const char *rule =
        fib_arena_printf(arena, "an integer%s%s%s", scientific ? " written in digits" : "",
                         bounded ? ", " : "", range);
    return fail_value(option, text, rule, arena, err);
}

static enum fib_status parse_i64(const struct fib_option *option, const char *text,
                                 struct fib_arena *arena, struct fib_value *value,
                                 struct fib_error *err)
{
    int64_t number = 0;
    if (!fib_parse_i64(text, &number))
        return fail_i64(option, text, arena, err);
    if (i64_bounded(option) && (number < option->min || number > option->max))
        return fail_i64(option, text, arena, err);
    value->i64 = number;
    value->f64 = (double)number;
    value->text = fib_arena_printf(arena, "%lld", (long long)number);
    return FIB_OK;
}

static enum fib_status parse_f64(const struct fib_option *option, const char *text,
                                 struct fib_arena *arena, struct fib_value *value,
                                 struct fib_error *err)
{
    double number = 0;
    const bool is_number = fib_parse_f64(text, &number);
    const char *kind = !is_number ? "a number" : "a finite number";
    const bool bounded = f64_bounded(option);
    const char *range = bounded ? fib_option_allowed(option, arena) : "";
    if (!is_number || !isfinite(number))
        return fail_value(option, text,
                          fib_arena_printf(arena, "%s%s%s", kind, bounded ? ", " : "", range),
                          arena, err);
    if (bounded && (number < option->min_f64 || number > option->max_f64))
        return fail_value(option, text, range, arena, err);
    struct fib_text canonical = {0};
    fib_text_add_f64(&canonical, number);
    value->f64 = number;
    value->text = fib_arena_strdup(arena, fib_text_chars(&canonical));
    fib_text_free(&canonical);
    return FIB_OK;
}

static bool same_choice(const struct fib_option *option, const char *text, const char *choice,
                        size_t length)
{
    if (strlen(text) != length)
        return false;
    return option->fold_case ? strncasecmp(text, choice, length) == 0
                             : strncmp(text, choice, length) == 0;
}

static enum fib_status parse_choice(const struct fib_option *option, const char *text,
                                    struct fib_arena *arena, struct fib_value *value,
                                    struct fib_error *err)
{
    size_t length = 0;
    for (const char *word = option->choices; word && (word = fib_words_next(word, &length));
         word += length) {
        if (!same_choice(option, text, word, length))
            continue;
        value->text = fib_arena_strndup(arena, word, length);
        enum fib_dtype dtype = FIB_DTYPE_COUNT;
        if (option->kind == FIB_OPT_DTYPE && !fib_dtype_parse(value->text, &dtype))
            return fib_fail(err, FIB_ERR_INTERNAL, "--%s: choice %s is no number format",
                            option->name, value->text);
        value->i64 = (int64_t)dtype;
        return FIB_OK;
    }
    struct fib_suggest suggest = fib_suggest_start(text);
    fib_suggest_try_words(&suggest, option->choices);
    return fail_value(option, text,
                      fib_arena_printf(arena, "%s%s", fib_option_allowed(option, arena),
                                       fib_suggest_clause(&suggest, "", arena)),
                      arena, err);
}

/* Words are separated by blanks or commas; each integer of a list obeys the row's range. */
static enum fib_status parse_words(const struct fib_option *option, const char *text,
                                   struct fib_arena *arena, struct fib_value *value,
                                   struct fib_error *err)
{
    static const char separators[] = ", \t\r\n\v\f";
    struct fib_text joined = {0};
    enum fib_status st = FIB_OK;
    for (const char *p = text + strspn(text, separators); *p; p += strspn(p, separators)) {
        const size_t length = strcspn(p, separators);
        const char *word = fib_arena_strndup(arena, p, length);
        p += length;
        if (option->kind == FIB_OPT_I64_LIST) {
            st = parse_i64(option, word, arena, value, err);
            if (st != FIB_OK)
                goto out;
            word = value->text;
        }
        if (joined.length)
            fib_text_add_char(&joined, ' ');
        fib_text_add(&joined, word);
    }
    if (joined.length == 0) {
        st = fib_fail(err, FIB_ERR_USAGE, "--%s needs at least one %s", option->name,
                      option->kind == FIB_OPT_I64_LIST ? "integer" : "word");
        goto out;
    }
    value->text = fib_arena_strdup(arena, fib_text_chars(&joined));
out:
    fib_text_free(&joined);
    return st;
}

static enum fib_status parse_switch(const struct fib_option *option, const char *text,
                                    struct fib_arena *arena, struct fib_value *value,
                                    struct fib_error *err)
{
    const bool on = strcasecmp(text, "true") == 0;
    if (!on && strcasecmp(text, "false") != 0)
        return fail_value(option, text, "True or False", arena, err);
    value->i64 = on;
    value->text = on ? "True" : "False";
    return FIB_OK;
}

static enum fib_status parse_kind(const struct fib_option *option, const char *text,
                                  struct fib_arena *arena, struct fib_value *value,
                                  struct fib_error *err)
{
    switch (option->kind) {
    case FIB_OPT_I64:
    case FIB_OPT_COUNT:
        return parse_i64(option, text, arena, value, err);
    case FIB_OPT_F64:
        return parse_f64(option, text, arena, value, err);
    case FIB_OPT_CHOICE:
    case FIB_OPT_DTYPE:
        return parse_choice(option, text, arena, value, err);
    case FIB_OPT_WORDS:
    case FIB_OPT_I64_LIST:
        return parse_words(option, text, arena, value, err);
    case FIB_OPT_SWITCH:
        return parse_switch(option, text, arena, value, err);
    case FIB_OPT_TEXT:
        value->text = fib_arena_strdup(arena, text);
        return FIB_OK;
    }
    return fib_fail(err, FIB_ERR_INTERNAL, "--%s: unknown kind of option", option->name);
}

enum fib_status fib_option_parse(const struct fib_option *option, const char *text,
                                 struct fib_arena *arena, struct fib_value *value,
                                 struct fib_error *err)
{
    struct fib_value parsed = {.given = value->given, .set = true};
    const enum fib_status st = parse_kind(option, text, arena, &parsed, err);
    if (st == FIB_OK)
        *value = parsed;
    return st;
}

void fib_option_bind(const struct fib_option *option, const struct fib_value *value, void *target)
{
    if (!option->bound || !target)
        return;
    void *field = (char *)target + option->offset;
    switch (option->kind) {
    case FIB_OPT_I64:
        *(int64_t *)field = value->set ? value->i64 : FIB_UNSET_I64;
        break;
    case FIB_OPT_COUNT:
        *(int64_t *)field = value->set ? value->i64 : 0;
        break;
    case FIB_OPT_F64:
        *(double *)field = value->set ? value->f64 : (double)NAN;
        break;
    case FIB_OPT_DTYPE:
        *(enum fib_dtype *)field = value->set ? (enum fib_dtype)value->i64 : FIB_DTYPE_COUNT;
        break;
    case FIB_OPT_SWITCH:
        *(bool *)field = value->set && value->i64 != 0;
        break;
    case FIB_OPT_CHOICE:
    case FIB_OPT_TEXT:
    case FIB_OPT_WORDS:
    case FIB_OPT_I64_LIST:
        *(const char **)field = value->set ? value->text : NULL;
        break;
    }
}
