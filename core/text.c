/* Growing text and conversions that never look at the locale. */
#include "core/text.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/memory.h"

/* glibc hands out a static object for "C": nothing is allocated and nothing has to be freed. */
static locale_t c_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

void fib_text_free(struct fib_text *text)
{
    free(text->chars);
    *text = (struct fib_text){0};
}

void fib_text_clear(struct fib_text *text)
{
    text->length = 0;
    if (text->chars)
        text->chars[0] = '\0';
}

const char *fib_text_chars(const struct fib_text *text)
{
    return text->chars ? text->chars : "";
}

static void reserve(struct fib_text *text, size_t more)
{
    const size_t needed = text->length + more + 1;
    if (needed <= text->capacity)
        return;
    size_t capacity = text->capacity ? text->capacity : 64;
    while (capacity < needed)
        capacity *= 2;
    text->chars = fib_realloc(text->chars, capacity);
    text->capacity = capacity;
}

void fib_text_add_n(struct fib_text *text, const char *chars, size_t length)
{
    reserve(text, length);
    if (length > 0)
        memcpy(text->chars + text->length, chars, length);
    text->length += length;
    text->chars[text->length] = '\0';
}

void fib_text_add(struct fib_text *text, const char *chars)
{
    fib_text_add_n(text, chars, strlen(chars));
}

void fib_text_add_char(struct fib_text *text, char c)
{
    fib_text_add_n(text, &c, 1);
}

void fib_text_addf(struct fib_text *text, const char *format, ...)
{
    const locale_t before = uselocale(c_locale());
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    reserve(text, 63); /* most additions fit without a second round */
    const size_t room = text->capacity - text->length;
    const int wanted = vsnprintf(text->chars + text->length, room, format, args);
    va_end(args);
    if (wanted > 0 && (size_t)wanted >= room) {
        reserve(text, (size_t)wanted);
        vsnprintf(text->chars + text->length, (size_t)wanted + 1, format, again);
    }
    va_end(again);
    if (wanted > 0)
        text->length += (size_t)wanted;
    text->chars[text->length] = '\0';
    uselocale(before);
}

void fib_text_pad(struct fib_text *text, size_t column)
{
    size_t start = text->length;
    while (start > 0 && text->chars[start - 1] != '\n')
        start--;
    size_t width = 0;
    for (size_t i = start; i < text->length; i++) {
        /* Continuation bytes of UTF-8 take no column of their own. */
        if (((unsigned char)text->chars[i] & 0xc0) != 0x80)
            width++;
    }
    for (; width < column; width++)
        fib_text_add_char(text, ' ');
}

/* Fills "d.ddde+xx" with the fewest digits that read back to `value` (finite, not zero). Fifteen
 * digits survive decimal -> double -> decimal for normal numbers, so nothing shorter than what is
 * left of fifteen after dropping zeros needs a try; subnormals have no such guarantee. */
static void shortest_scientific(double value, char *digits, size_t size)
{
    const locale_t c = c_locale();
    const locale_t before = uselocale(c);
    for (int places = fabs(value) < DBL_MIN ? 0 : 14; places <= 16; places++) {
        snprintf(digits, size, "%.*e", places, value);
        if (strtod_l(digits, NULL, c) == value)
            break;
    }
    uselocale(before);
}

/* Digits without point and trailing zeros, and the decimal exponent of the first digit. */
static int split_scientific(const char *scientific, char *digits, size_t *digit_count)
{
    size_t count = 0;
    const char *c = scientific;
    for (; *c && *c != 'e'; c++) {
        if (*c >= '0' && *c <= '9')
            digits[count++] = *c;
    }
    while (count > 1 && digits[count - 1] == '0')
        count--;
    *digit_count = count;
    return *c == 'e' ? (int)strtol(c + 1, NULL, 10) : 0;
}

static void add_positional(struct fib_text *text, const char *digits, size_t count, int exponent)
{
    if (exponent < 0) {
        fib_text_add(text, "0.");
        for (int i = -1; i > exponent; i--)
            fib_text_add_char(text, '0');
        fib_text_add_n(text, digits, count);
        return;
    }
    const size_t whole = (size_t)exponent + 1;
    for (size_t i = 0; i < whole; i++)
        fib_text_add_char(text, i < count ? digits[i] : '0');
    fib_text_add_char(text, '.');
    if (count > whole)
        fib_text_add_n(text, digits + whole, count - whole);
    else
        fib_text_add_char(text, '0');
}

void fib_text_add_f64(struct fib_text *text, double value)
{
    if (isnan(value)) {
        fib_text_add(text, "nan");
        return;
    }
    if (signbit(value))
        fib_text_add_char(text, '-');
    if (isinf(value) || value == 0.0) {
        fib_text_add(text, isinf(value) ? "inf" : "0.0");
        return;
    }
    char scientific[40], digits[40];
    shortest_scientific(fabs(value), scientific, sizeof(scientific));
    size_t count = 0;
    const int exponent = split_scientific(scientific, digits, &count);
    if (exponent >= -4 && exponent < 16) {
        add_positional(text, digits, count, exponent);
        return;
    }
    fib_text_add_n(text, digits, 1);
    if (count > 1) {
        fib_text_add_char(text, '.');
        fib_text_add_n(text, digits + 1, count - 1);
    }
    fib_text_addf(text, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
}

void fib_text_add_shell_word(struct fib_text *text, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "@%+=:,./-_";
    if (*word && word[strspn(word, plain)] == '\0') {
        fib_text_add(text, word);
        return;
    }
    fib_text_add_char(text, '\'');
    for (const char *c = word; *c; c++) {
        if (*c == '\'')
            fib_text_add(text, "'\\''");
        else
            fib_text_add_char(text, *c);
    }
    fib_text_add_char(text, '\'');
}

void fib_text_add_csv_cell(struct fib_text *text, const char *cell)
{
    const size_t length = strlen(cell);
    const bool edge_space = length > 0 && (cell[0] == ' ' || cell[length - 1] == ' ');
    if (!edge_space && cell[strcspn(cell, ",\"\r\n")] == '\0') {
        fib_text_add(text, cell);
        return;
    }
    fib_text_add_char(text, '"');
    for (const char *c = cell; *c; c++) {
        if (*c == '"')
            fib_text_add_char(text, '"');
        fib_text_add_char(text, *c);
    }
    fib_text_add_char(text, '"');
}

bool fib_parse_i64(const char *chars, int64_t *out)
{
    const char *digits = chars + (*chars == '-' || *chars == '+');
    const size_t count = strspn(digits, "0123456789");
    if (count == 0 || digits[count] != '\0')
        return false;
    errno = 0;
    const long long value = strtoll(chars, NULL, 10);
    if (errno == ERANGE)
        return false;
    *out = value;
    return true;
}

/* digits [. digits] [e [sign] digits], or .digits; no hexadecimal, no blanks */
static bool is_decimal(const char *chars)
{
    static const char digit[] = "0123456789";
    size_t mantissa = strspn(chars, digit);
    chars += mantissa;
    if (*chars == '.') {
        chars++;
        const size_t fraction = strspn(chars, digit);
        mantissa += fraction;
        chars += fraction;
    }
    if (mantissa == 0)
        return false;
    if (*chars == 'e' || *chars == 'E') {
        chars++;
        chars += (*chars == '-' || *chars == '+');
        const size_t exponent = strspn(chars, digit);
        if (exponent == 0)
            return false;
        chars += exponent;
    }
    return *chars == '\0';
}

bool fib_parse_f64(const char *chars, double *out)
{
    const char *magnitude = chars + (*chars == '-' || *chars == '+');
    const bool word = strcasecmp(magnitude, "inf") == 0 || strcasecmp(magnitude, "nan") == 0 ||
                      strcasecmp(magnitude, "infinity") == 0;
    if (!word && !is_decimal(magnitude))
        return false;
    const double value = strtod_l(chars, NULL, c_locale());
    if (!word && isinf(value))
        return false;
    *out = value;
    return true;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t fib_edit_distance(const char *a, const char *b)
{
    enum { LONGEST = 128 };
    const size_t a_length = strlen(a), b_length = strlen(b);
    /* No flag is that long; the square of a pasted file would take seconds. */
    if (a_length > LONGEST || b_length > LONGEST)
        return a_length > b_length ? a_length : b_length;

    /* rows[0] is the row before last, rows[1] the last, rows[2] the one being made */
    size_t rows[3][LONGEST + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[1][j] = j;
    memset(rows[0], 0, sizeof(rows[0]));
    for (size_t i = 1; i <= a_length; i++) {
        rows[2][0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            const size_t replace = rows[1][j - 1] + (a[i - 1] != b[j - 1]);
            size_t best = least(replace, least(rows[1][j], rows[2][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = least(best, rows[0][j - 2] + 1);
            rows[2][j] = best;
        }
        memcpy(rows[0], rows[1], sizeof(rows[0][0]) * (b_length + 1));
        memcpy(rows[1], rows[2], sizeof(rows[0][0]) * (b_length + 1));
    }
    return rows[1][b_length];
}

const char *fib_words_next(const char *list, size_t *length)
{
    if (!list)
        return NULL;
    list += strspn(list, " ");
    if (*list == '\0')
        return NULL;
    *length = strcspn(list, " ");
    return list;
}

bool fib_words_contain(const char *list, const char *word)
{
    const size_t wanted = strlen(word);
    size_t length = 0;
    const char *next = list;
    while ((next = fib_words_next(next, &length))) {
        if (length == wanted && memcmp(next, word, length) == 0)
            return true;
        next += length;
    }
    return false;
}

/* Decimal places that show `digits` significant digits of a value >= 0. */
static int places_for(double value, int digits)
{
    const int whole = value < 1.0 ? 1 : (int)floor(log10(value)) + 1;
    return whole >= digits ? 0 : digits - whole;
}

void fib_text_add_duration(struct fib_text *text, double time_ms, int digits)
{
    static const struct {
        double per_ms;
        const char *name;
    } units[] = {{1e6, "ns"}, {1e3, "us"}, {1.0, "ms"}, {1e-3, "s"}};
    if (!isfinite(time_ms)) {
        fib_text_add(text, "-");
        return;
    }
    const size_t last = sizeof(units) / sizeof(units[0]) - 1;
    for (size_t i = 0; i <= last; i++) {
        const double value = time_ms * units[i].per_ms;
        const int places = places_for(fabs(value), digits);
        const double rounded = round(fabs(value) * pow(10, places)) / pow(10, places);
        /* 999.96 us in four digits is 1.000 ms, not 1000 us */
        if (rounded >= 1000.0 && i < last)
            continue;
        fib_text_addf(text, "%.*f %s", places_for(rounded, digits), value, units[i].name);
        return;
    }
}

void fib_text_add_bytes(struct fib_text *text, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    if (!isfinite(bytes)) {
        fib_text_add(text, "-");
        return;
    }
    size_t unit = 0;
    while (fabs(bytes) >= 1023.5 && unit < sizeof(units) / sizeof(units[0]) - 1) {
        bytes /= 1024.0;
        unit++;
    }
    const double tenths = round(bytes * 10.0) / 10.0;
    const bool whole = fabs(bytes) >= 99.95 || tenths == floor(tenths);
    fib_text_addf(text, whole ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}
