/* The table of one case: fastest first, digits no finer than the interval, refusals last. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/report.h"
#include "core/result.h"
#include "core/text.h"

enum { MOST_COLUMNS = 120, DEVICE_COLUMNS = 40, LEAST_NAME = 10 };
/* Above this many operations a byte a kernel is limited by arithmetic on the devices of today. */
static const double compute_intensity = 50.0;

enum column { BACKEND, RAN, TIME, INTERVAL, RATE, ROOF, VERSUS, CHECK, COLUMN_COUNT };

struct row {
    const struct fib_json *record;
    double median_ms, half_ms; /* half_ms NaN without an interval */
    int places;                /* decimals in the table's unit */
    struct fib_text cells[COLUMN_COUNT];
};

struct table {
    struct row *rows; /* timed ones, fastest first */
    size_t count;
    double per_ms; /* the table's unit */
    const char *unit;
    int places; /* the most of any row */
    bool compute, roof;
    bool giga; /* rates in thousandths: GB/s, GFLOP/s */
    size_t widths[COLUMN_COUNT];
};

static size_t display_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

/* Byte offset of display column `column`. */
static size_t offset_of(const char *text, size_t column)
{
    size_t at = 0;
    for (; text[at]; at++) {
        if (((unsigned char)text[at] & 0xc0) == 0x80)
            continue;
        if (column == 0)
            break;
        column--;
    }
    return at;
}

/* "flashinfer/fa2_paged_d128" in 15 columns: "flashin..d_d128" */
static void add_shortened(struct fib_text *out, const char *text, size_t columns)
{
    const size_t width = display_width(text);
    if (width <= columns) {
        fib_text_add(out, text);
        return;
    }
    const size_t kept = columns - 2, tail = kept / 2;
    fib_text_add_n(out, text, offset_of(text, kept - tail));
    fib_text_add(out, "..");
    fib_text_add(out, text + offset_of(text, width - tail));
}

static const char *text_of(const struct fib_json *record, const char *path)
{
    const char *text = fib_json_text(record, path);
    return text && *text ? text : "-";
}

/* ---- digits ---- */

static int whole_digits(double value)
{
    return value < 1.0 ? 1 : (int)floor(log10(value)) + 1;
}

static void choose_unit(struct table *table)
{
    static const struct {
        double per_ms, from_ms;
        const char *name;
    } units[] = {{1e-3, 1e3, "s"}, {1.0, 1.0, "ms"}, {1e3, 1e-3, "us"}, {1e6, 0.0, "ns"}};
    const double fastest = table->rows[0].median_ms;
    size_t i = 0;
    while (i < 3 && fastest < units[i].from_ms)
        i++;
    table->per_ms = units[i].per_ms;
    table->unit = units[i].name;
}

/* The last digit shown is the place of the first digit of the interval's half-width. */
static int places_of(const struct row *row, double per_ms)
{
    enum { WITHOUT_INTERVAL = 3, MOST_DIGITS = 5 };
    const int whole = whole_digits(row->median_ms * per_ms);
    const double half = row->half_ms * per_ms;
    int places = WITHOUT_INTERVAL - whole;
    if (half > 0.0)
        places = (int)fmin(-floor(log10(half)), MOST_DIGITS - whole);
    else if (half == 0.0)
        places = MOST_DIGITS - whole;
    return places > 0 ? places : 0;
}

/* The same for a ratio, and not beyond 0.1 %: verdicts do not look closer than that. */
static int ratio_places(const struct fib_json *record)
{
    enum { WITHOUT_INTERVAL = 2, MOST_PLACES = 3 };
    const double low = fib_json_f64(record, "versus.ratio_low");
    const double half = (fib_json_f64(record, "versus.ratio_high") - low) / 2.0;
    if (isnan(half))
        return WITHOUT_INTERVAL;
    return half > 0.0 ? (int)fmax(0.0, fmin(-floor(log10(half)), MOST_PLACES)) : MOST_PLACES;
}

/* Blanks stand in for the digits that other rows have after the point. */
static void add_aligned(struct fib_text *out, double value, int places, int most_places)
{
    fib_text_addf(out, "%.*f", places, value);
    if (places < most_places)
        fib_text_addf(out, "%*s", most_places - places + (places == 0), "");
}

static void add_significant(struct fib_text *out, double value, int digits)
{
    if (isnan(value)) {
        fib_text_add_char(out, '-');
        return;
    }
    int places = value > 0 ? digits - 1 - (int)floor(log10(value)) : digits - 1;
    places = places < 0 ? 0 : places > 9 ? 9 : places;
    fib_text_addf(out, "%.*f", places, value);
}

/* ---- cells ---- */

static void fill_time(const struct table *table, struct row *row)
{
    const double scale = table->per_ms;
    add_aligned(&row->cells[TIME], row->median_ms * scale, row->places, table->places);
    fib_text_addf(&row->cells[TIME], " %s", table->unit);
    if (isnan(row->half_ms)) {
        fib_text_add_char(&row->cells[INTERVAL], '-');
        return;
    }
    struct fib_text *interval = &row->cells[INTERVAL];
    const double low_ms = fib_json_f64(row->record, "time.ci_low") / 1e9;
    const double high_ms = fib_json_f64(row->record, "time.ci_high") / 1e9;
    add_aligned(interval, low_ms * scale, row->places, table->places);
    fib_text_add(interval, " .. ");
    add_aligned(interval, high_ms * scale, row->places, table->places);
    fib_text_addf(interval, " %s", table->unit);
}

static void fill_versus(const struct table *table, struct row *row)
{
    struct fib_text *cell = &row->cells[VERSUS];
    const char *verdict = fib_json_text(row->record, "versus.verdict");
    double ratio = fib_json_f64(row->record, "versus.ratio");
    if (row == table->rows) { /* the one without a better one sorts first */
        fib_text_add(cell, "fastest");
        return;
    }
    if (verdict && strcmp(verdict, "SAME") == 0) {
        fib_text_add(cell, "same");
        return;
    }
    if (isnan(ratio))
        ratio = row->median_ms / table->rows[0].median_ms;
    const int places = ratio_places(row->record);
    if (verdict && strcmp(verdict, "UNRESOLVED") == 0)
        fib_text_addf(cell, "%.*fx, open", places, ratio);
    else if (ratio >= 1.0)
        fib_text_addf(cell, "%.*fx slower", places, ratio);
    else
        fib_text_addf(cell, "%.*fx faster", places, 1.0 / ratio);
}

static void fill_check(struct row *row)
{
    struct fib_text *cell = &row->cells[CHECK];
    const double checked = fib_json_f64(row->record, "check.checked_rows");
    const double total = fib_json_f64(row->record, "check.total_rows");
    fib_text_add(cell, text_of(row->record, "status"));
    if (isnan(checked))
        return;
    if (checked < total)
        fib_text_addf(cell, " (%.0f of %.0f rows)", checked, total);
    else
        fib_text_addf(cell, " (%.0f %s)", checked, checked == 1 ? "row" : "rows");
}

/* In tera per second. */
static double rate_of(const struct table *table, const struct row *row)
{
    return fib_json_f64(row->record, table->compute ? "rate.tflops" : "rate.tb_per_sec");
}

static void fill_row(const struct table *table, struct row *row)
{
    const double roof = fib_json_f64(row->record, "rate.roof_pct");
    fib_text_add(&row->cells[BACKEND], text_of(row->record, "backend"));
    fib_text_add(&row->cells[RAN], text_of(row->record, "resolved_backend"));
    fill_time(table, row);
    add_significant(&row->cells[RATE], rate_of(table, row) * (table->giga ? 1e3 : 1.0), 3);
    if (isnan(roof))
        fib_text_add_char(&row->cells[ROOF], '-');
    else
        fib_text_addf(&row->cells[ROOF], "%.0f %%", roof);
    fill_versus(table, row);
    fill_check(row);
}

/* ---- layout ---- */

static bool is_shown(const struct table *table, int column)
{
    if (column == VERSUS)
        return table->count >= 2;
    return column != ROOF || table->roof;
}

static bool is_number(int column)
{
    return column == TIME || column == INTERVAL || column == RATE || column == ROOF;
}

static const char *heading(const struct table *table, int column)
{
    static const char *const names[COLUMN_COUNT] = {
        [BACKEND] = "backend", [RAN] = "ran",   [TIME] = "time",      [INTERVAL] = "95 % interval",
        [RATE] = "rate",       [ROOF] = "roof", [VERSUS] = "vs best", [CHECK] = "check"};
    if (column != RATE)
        return names[column];
    return table->compute ? (table->giga ? "GFLOP/s" : "TFLOP/s") : (table->giga ? "GB/s" : "TB/s");
}

static void widen(size_t *width, const char *text)
{
    const size_t needed = display_width(text);
    if (needed > *width)
        *width = needed;
}

static void measure_columns(struct table *table, const struct fib_json *const *records,
                            size_t count)
{
    for (int column = 0; column < COLUMN_COUNT; column++) {
        if (!is_shown(table, column))
            continue;
        widen(&table->widths[column], heading(table, column));
        for (size_t i = 0; i < table->count; i++)
            widen(&table->widths[column], fib_text_chars(&table->rows[i].cells[column]));
    }
    for (size_t i = 0; i < count; i++)
        widen(&table->widths[BACKEND], text_of(records[i], "backend"));

    size_t total = 0;
    for (int column = 0; column < COLUMN_COUNT; column++)
        total += is_shown(table, column) ? 2 + table->widths[column] : 0;
    while (total > MOST_COLUMNS) {
        size_t *wider =
            &table->widths[table->widths[RAN] >= table->widths[BACKEND] ? RAN : BACKEND];
        if (*wider <= LEAST_NAME)
            break;
        --*wider;
        total--;
    }
}

static void add_cell(struct fib_text *out, const struct table *table, int column, const char *text)
{
    const size_t width = table->widths[column];
    fib_text_add(out, "  ");
    if (is_number(column)) {
        for (size_t used = display_width(text); used < width; used++)
            fib_text_add_char(out, ' ');
        fib_text_add(out, text);
        return;
    }
    add_shortened(out, text, width);
    for (size_t used = display_width(text); used < width && column != CHECK; used++)
        fib_text_add_char(out, ' ');
}

static void add_refused(struct fib_text *out, const struct table *table,
                        const struct fib_json *record)
{
    add_cell(out, table, BACKEND, text_of(record, "backend"));
    fib_text_addf(out, "  %s", text_of(record, "status"));
    if (fib_json_text(record, "reason"))
        fib_text_addf(out, ": %s", text_of(record, "reason"));
    fib_text_add_char(out, '\n');
}

/* What --cache both is asked for. */
static void add_cold_over_hot(struct fib_text *out, const struct fib_json *record)
{
    const double ratio = fib_json_f64(record, "measure.cold_over_hot");
    if (!isnan(ratio))
        fib_text_addf(out, "  %s: cold takes %.2fx as long as hot\n", text_of(record, "backend"),
                      ratio);
}

static void add_flags(struct fib_text *out, const struct fib_json *record)
{
    const struct fib_json *flags = fib_json_get(record, "flags");
    const size_t count = fib_json_count(flags);
    if (count == 0)
        return;
    fib_text_addf(out, "  %s:", text_of(record, "backend"));
    for (size_t i = 0; i < count; i++)
        fib_text_addf(out, " %s", text_of(fib_json_at(flags, i), ""));
    fib_text_add_char(out, '\n');
}

/* What would close an open comparison. */
static void add_open(struct fib_text *out, const struct fib_json *record)
{
    const char *verdict = fib_json_text(record, "versus.verdict");
    const double rounds = fib_json_f64(record, "versus.rounds");
    const double needed = fib_json_f64(record, "versus.rounds_needed");
    if (!verdict || strcmp(verdict, "UNRESOLVED") != 0 || isnan(rounds))
        return;
    fib_text_addf(out, "  %s: open after %.0f round%s", text_of(record, "backend"), rounds,
                  rounds == 1 ? "" : "s");
    if (isnan(needed))
        fib_text_add(out, ", fewer than 6 decide nothing\n");
    else if (needed < FIB_MAX_ROUNDS_NEEDED)
        fib_text_addf(out, ", about %.0f would decide: -n %.0f\n", needed, needed);
    else
        fib_text_addf(out, ", too near to the margin of %g %% to be decided\n",
                      fib_json_f64(record, "versus.margin_pct"));
}

/* "NVIDIA H200, cold cache, graph, interleaved x 24 rounds" */
static void add_conditions(struct fib_text *out, const struct fib_json *record,
                           const struct fib_json *environment)
{
    const char *device = fib_json_text(record, "device.name");
    const char *cache = fib_json_text(record, "measure.cache");
    const char *timer = fib_json_text(record, "measure.timer");
    const char *interleave = fib_json_text(record, "measure.interleave");
    const double rounds = fib_json_f64(record, "measure.windows");
    add_shortened(out, device ? device : text_of(environment, "device.name"), DEVICE_COLUMNS);
    if (cache)
        fib_text_addf(out, ", %s cache", cache);
    if (timer)
        fib_text_addf(out, ", %s", timer);
    if (interleave && strcmp(interleave, "none") != 0 && !isnan(rounds))
        fib_text_addf(out, ", interleaved x %.0f rounds", rounds);
}

static void add_first_line(struct fib_text *out, const struct fib_json *record,
                           const struct fib_json *environment, size_t width)
{
    struct fib_text conditions = {0};
    add_conditions(&conditions, record, environment);
    const char *title = text_of(record, "title");
    const size_t right = display_width(fib_text_chars(&conditions));
    const size_t room =
        right + LEAST_NAME + 4 < MOST_COLUMNS ? MOST_COLUMNS - 4 - right : LEAST_NAME;
    fib_text_add(out, "  ");
    add_shortened(out, title, room);
    size_t used = 4 + (display_width(title) < room ? display_width(title) : room);
    fib_text_add(out, "  ");
    for (; used + right < width; used++)
        fib_text_add_char(out, ' ');
    fib_text_addf(out, "%s\n", fib_text_chars(&conditions));
    fib_text_free(&conditions);
}

/* ---- whole ---- */

static int fastest_first(const void *a, const void *b)
{
    const struct row *left = a, *right = b;
    /* Nothing is better than the one that was compared with nothing. */
    const bool left_best = fib_json_is_null(fib_json_get(left->record, "versus"));
    const bool right_best = fib_json_is_null(fib_json_get(right->record, "versus"));
    if (left_best != right_best)
        return left_best ? -1 : 1;
    if (left->median_ms != right->median_ms)
        return left->median_ms < right->median_ms ? -1 : 1;
    return strcmp(text_of(left->record, "backend"), text_of(right->record, "backend"));
}

static void collect(struct table *table, const struct fib_json *const *records, size_t count)
{
    table->rows = fib_zalloc_array(count, sizeof(table->rows[0]));
    for (size_t i = 0; i < count; i++) {
        if (!fib_result_measured(records[i]))
            continue;
        const double low = fib_json_f64(records[i], "time.ci_low");
        const double high = fib_json_f64(records[i], "time.ci_high");
        table->rows[table->count++] = (struct row){
            .record = records[i],
            .median_ms = fib_json_f64(records[i], "time.median") / 1e9,
            .half_ms = (high - low) / 2e9,
        };
        if (!isnan(fib_json_f64(records[i], "rate.roof_pct")))
            table->roof = true;
    }
    qsort(table->rows, table->count, sizeof(table->rows[0]), fastest_first);
}

static void fill(struct table *table)
{
    if (table->count == 0)
        return;
    const struct fib_json *first = table->rows[0].record;
    table->compute =
        fib_json_f64(first, "cost.flops") > compute_intensity * fib_json_f64(first, "cost.bytes");
    choose_unit(table);
    table->giga = rate_of(table, &table->rows[0]) < 0.5;
    for (size_t i = 0; i < table->count; i++) {
        struct row *row = &table->rows[i];
        row->places = places_of(row, table->per_ms);
        table->places = row->places > table->places ? row->places : table->places;
    }
    for (size_t i = 0; i < table->count; i++)
        fill_row(table, &table->rows[i]);
}

static void add_timed(struct fib_text *out, const struct table *table)
{
    for (int column = 0; column < COLUMN_COUNT; column++) {
        if (is_shown(table, column))
            add_cell(out, table, column, heading(table, column));
    }
    fib_text_add_char(out, '\n');
    for (size_t i = 0; i < table->count; i++) {
        for (int column = 0; column < COLUMN_COUNT; column++) {
            if (is_shown(table, column))
                add_cell(out, table, column, fib_text_chars(&table->rows[i].cells[column]));
        }
        fib_text_add_char(out, '\n');
    }
}

static void release(struct table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        for (int column = 0; column < COLUMN_COUNT; column++)
            fib_text_free(&table->rows[i].cells[column]);
    }
    free(table->rows);
}

void fib_case_table(const struct fib_json *const *records, size_t count,
                    const struct fib_json *environment, struct fib_text *out)
{
    if (count == 0)
        return;
    struct table table = {.per_ms = 1.0, .unit = "ms"};
    collect(&table, records, count);
    fill(&table);
    measure_columns(&table, records, count);

    size_t width = 0;
    for (int column = 0; column < COLUMN_COUNT; column++)
        width += is_shown(&table, column) ? 2 + table.widths[column] : 0;
    add_first_line(out, table.count > 0 ? table.rows[0].record : records[0], environment, width);
    if (table.count > 0)
        add_timed(out, &table);
    for (size_t i = 0; i < count; i++) {
        if (!fib_result_measured(records[i]))
            add_refused(out, &table, records[i]);
    }
    for (size_t i = 0; i < table.count; i++) {
        add_open(out, table.rows[i].record);
        add_cold_over_hot(out, table.rows[i].record);
        add_flags(out, table.rows[i].record);
    }
    release(&table);
}
