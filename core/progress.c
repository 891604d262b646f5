/* The progress line: position, what runs now, time gone, time left by what cases really cost. */
#include "core/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/text.h"

enum { LEAST_COLUMNS = 60, USUAL_COLUMNS = 100, MOST_COLUMNS = 120 };
static const double plain_every_ms = 10000;

/* Cost of the finished cases of one routine. */
struct price {
    const char *routine;
    double sum_ms;
    size_t count;
};

struct fib_progress {
    FILE *err;
    bool tty, quiet, shown;
    size_t total, done;
    bool running; /* a case was announced and not booked yet */
    const char *const *routines;
    struct price *prices;
    size_t price_count;
    double start_ms, now_ms, last_line_ms;
};

struct fib_progress *fib_progress_create(FILE *err, bool tty, bool quiet, size_t total,
                                         double now_ms)
{
    struct fib_progress *progress = fib_zalloc(sizeof(*progress));
    *progress = (struct fib_progress){.err = err,
                                      .tty = tty,
                                      .quiet = quiet,
                                      .total = total,
                                      .start_ms = now_ms,
                                      .now_ms = now_ms,
                                      .last_line_ms = now_ms};
    return progress;
}

void fib_progress_plan(struct fib_progress *progress, const char *const *routines)
{
    progress->routines = routines;
}

static const char *routine_of(const struct fib_progress *progress, size_t index)
{
    const char *name = progress->routines ? progress->routines[index] : NULL;
    return name ? name : "";
}

static struct price *find_price(const struct fib_progress *progress, const char *routine)
{
    for (size_t i = 0; i < progress->price_count; i++)
        if (strcmp(progress->prices[i].routine, routine) == 0)
            return &progress->prices[i];
    return NULL;
}

static void book(struct fib_progress *progress, double cost_ms)
{
    const char *routine = routine_of(progress, progress->done);
    struct price *price = find_price(progress, routine);
    if (!price) {
        progress->prices =
            fib_realloc(progress->prices, (progress->price_count + 1) * sizeof(*progress->prices));
        price = &progress->prices[progress->price_count++];
        *price = (struct price){.routine = routine};
    }
    price->sum_ms += cost_ms;
    price->count++;
}

void fib_progress_tick(struct fib_progress *progress, double now_ms)
{
    if (progress->running && progress->done < progress->total) {
        book(progress, now_ms - progress->now_ms);
        progress->done++;
    }
    progress->running = false;
    progress->now_ms = now_ms;
}

double fib_progress_left_ms(const struct fib_progress *progress)
{
    double sum_ms = 0, left_ms = 0;
    size_t count = 0;
    for (size_t i = 0; i < progress->price_count; i++) {
        sum_ms += progress->prices[i].sum_ms;
        count += progress->prices[i].count;
    }
    if (count == 0)
        return NAN;
    const double usual_ms = sum_ms / (double)count;
    if (!progress->routines)
        return usual_ms * (double)(progress->total - progress->done);
    for (size_t i = progress->done; i < progress->total; i++) {
        const struct price *price = find_price(progress, routine_of(progress, i));
        left_ms += price ? price->sum_ms / (double)price->count : usual_ms;
    }
    return left_ms;
}

static void add_clock(struct fib_text *text, double time_ms)
{
    const long long seconds = llround(time_ms / 1e3);
    fib_text_addf(text, "%lld:%02lld:%02lld", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

static void add_backends(struct fib_text *text, const char *backends)
{
    const char *separator = "  ";
    for (const char *word = backends; word && *word;) {
        const size_t length = strcspn(word, " ");
        if (length > 0) {
            fib_text_add(text, separator);
            fib_text_add_n(text, word, length);
            separator = " | ";
        }
        word += length + (word[length] == ' ');
    }
}

/* A terminal that is too narrow would wrap the line, and it could not be rewritten. */
static size_t line_columns(const struct fib_progress *progress)
{
    struct winsize size = {0};
    if (!progress->tty || ioctl(fileno(progress->err), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return USUAL_COLUMNS;
    const size_t columns = size.ws_col - 1u;
    return columns < LEAST_COLUMNS  ? LEAST_COLUMNS
           : columns > MOST_COLUMNS ? MOST_COLUMNS
                                    : columns;
}

/* Adds `what`, its middle left out where it is longer than `room` columns. */
static void add_shortened(struct fib_text *text, const char *what, size_t room)
{
    const size_t length = strlen(what);
    if (length <= room) {
        fib_text_add(text, what);
        return;
    }
    const size_t kept = room > 2 ? room - 2 : 0;
    fib_text_add_n(text, what, kept - kept / 2);
    fib_text_add(text, "..");
    fib_text_add_n(text, what + length - kept / 2, kept / 2);
}

static void write_line(struct fib_progress *progress, const char *title, const char *backends)
{
    struct fib_text head = {0}, middle = {0}, tail = {0};
    fib_text_addf(&head, " %zu/%zu  ", progress->done, progress->total);
    fib_text_add(&middle, title);
    add_backends(&middle, backends);
    fib_text_add(&tail, "  ");
    add_clock(&tail, progress->now_ms - progress->start_ms);
    fib_text_add(&tail, " elapsed");
    const double left_ms = fib_progress_left_ms(progress);
    if (!isnan(left_ms)) {
        fib_text_add(&tail, ", about ");
        add_clock(&tail, left_ms);
        fib_text_add(&tail, " left");
    }
    for (size_t i = 0; i < middle.length; i++)
        if ((unsigned char)middle.chars[i] < ' ' || middle.chars[i] == 0x7f)
            middle.chars[i] = '?';
    const size_t taken = head.length + tail.length, columns = line_columns(progress);
    add_shortened(&head, fib_text_chars(&middle), columns > taken ? columns - taken : 0);
    fprintf(progress->err, "%s%s%s%s", progress->tty ? "\r" : "", fib_text_chars(&head),
            fib_text_chars(&tail), progress->tty ? "\x1b[K" : "\n");
    fflush(progress->err);
    progress->shown = progress->tty;
    progress->last_line_ms = progress->now_ms;
    fib_text_free(&head);
    fib_text_free(&middle);
    fib_text_free(&tail);
}

void fib_progress_update(struct fib_progress *progress, size_t done, const char *title,
                         const char *backends)
{
    progress->done = done < progress->total ? done : progress->total;
    progress->running = true;
    if (progress->quiet)
        return;
    if (progress->tty || progress->now_ms - progress->last_line_ms >= plain_every_ms)
        write_line(progress, title, backends);
}

void fib_progress_clear(struct fib_progress *progress)
{
    if (!progress || !progress->shown)
        return;
    fputs("\r\x1b[K", progress->err);
    fflush(progress->err);
    progress->shown = false;
}

void fib_progress_finish(struct fib_progress **progress_ptr)
{
    struct fib_progress *progress = *progress_ptr;
    if (!progress)
        return;
    fib_progress_clear(progress);
    free(progress->prices);
    free(progress);
    *progress_ptr = NULL;
}
