/* Growing text, numbers to and from text independent of the locale, shell quoting. */
#ifndef FIB_CORE_TEXT_H
#define FIB_CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing, always NUL-terminated string. Zero-initialise; release with fib_text_free(). */
struct fib_text {
    char *chars; /* never NULL after the first add; use fib_text_chars() to read */
    size_t length, capacity;
};

void fib_text_free(struct fib_text *text);
void fib_text_clear(struct fib_text *text); /* empties, keeps the memory */
const char *fib_text_chars(const struct fib_text *text); /* "" when nothing was added */
void fib_text_add(struct fib_text *text, const char *chars);
void fib_text_add_n(struct fib_text *text, const char *chars, size_t length);
void fib_text_add_char(struct fib_text *text, char c);
void fib_text_addf(struct fib_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds spaces until the text is `column` display columns wide since its last newline. */
void fib_text_pad(struct fib_text *text, size_t column);
/* Shortest decimal that reads back to the same double, always with a point for the decimal mark
 * and at least one digit after it when the value is integral ("1.0", "0.0034567", "1e-06", "inf",
 * "nan"), as Python's repr does. */
void fib_text_add_f64(struct fib_text *text, double value);
/* One word quoted for a POSIX shell, unquoted when it needs no quotes. Newlines survive. */
void fib_text_add_shell_word(struct fib_text *text, const char *word);
/* RFC 4180 cell: quoted only when it holds a comma, quote, CR, LF or leading/trailing space. */
void fib_text_add_csv_cell(struct fib_text *text, const char *cell);

/* Whole text must be a number; no surrounding space; "1e3" is not an integer.
 * Returns false and leaves *out alone otherwise (also on overflow). The decimal mark is always a
 * point. */
bool fib_parse_i64(const char *chars, int64_t *out);
bool fib_parse_f64(const char *chars, double *out); /* also inf and nan: callers check */

/* Levenshtein distance with transpositions counted as one, for "did you mean". */
size_t fib_edit_distance(const char *a, const char *b);
/* True when the space-separated list holds exactly this word. list may be NULL (false). */
bool fib_words_contain(const char *list, const char *word);
/* Walks a space-separated list: returns the start of the next word and its length, or NULL. */
const char *fib_words_next(const char *list, size_t *length);

/* A time with a unit that suits its size ("18.31 us"), `digits` significant digits (1..9). */
void fib_text_add_duration(struct fib_text *text, double time_ms, int digits);
/* Bytes with a binary unit ("1.5 GiB"). */
void fib_text_add_bytes(struct fib_text *text, double bytes);

#endif
