/* Six ways to look fast, and for each the honest code that is nearest to it. CHEAT names the deed,
 * HONEST chooses the twin: the same bookkeeping without the lie. */
#include <pthread.h>
#include <time.h>

#include "tests/plugins/norm.h"

enum {
    CACHE, /* results are kept by the addresses of their inputs */
    ASIDE, /* the work is done by somebody whom nobody waits for */
    NOTHING,
    PINNED, /* inputs are copied once to where they stay warm */
    LATER,  /* right while it is looked at, nothing afterwards */
    REUSE   /* always the slot that it saw first */
};

enum { MOST_KEPT = 64, ASIDE_MS = 400 };

struct kept {
    const void *x;
    uint16_t *y;
};

struct state {
    struct norm norm;
    struct fib_plugin_slot first; /* its data last as long as this */
    uint16_t *x, *w;              /* copies */
    struct kept kept[MOST_KEPT];
    int call_count;
    pthread_t thread;
    int busy;
    const void *const *work; /* of the thread */
};

static int prepare(void **state, const struct fib_plugin_slot *slot, struct fib_plugin_note *note)
{
    (void)note;
    if (*state)
        return FIB_PLUGIN_OK;
    struct state *const s = calloc(1, sizeof(*s));
    s->norm = norm_of(slot->kase);
    s->first = *slot;
    s->x = malloc(norm_bytes(&s->norm));
    s->w = malloc((size_t)s->norm.cols * sizeof(s->w[0]));
    memcpy(s->x, slot->data[NORM_X], norm_bytes(&s->norm));
    memcpy(s->w, slot->data[NORM_W], (size_t)s->norm.cols * sizeof(s->w[0]));
    *state = s;
    return FIB_PLUGIN_OK;
}

static void compute(const struct state *s, const struct fib_plugin_slot *slot)
{
    norm_rows(&s->norm, slot->data[NORM_X], slot->data[NORM_W], slot->data[NORM_Y]);
}

static struct kept *find_kept(struct state *s, const void *x)
{
    for (int i = 0; i < MOST_KEPT; i++)
        if (!s->kept[i].x || s->kept[i].x == x)
            return &s->kept[i];
    return NULL;
}

static void with_cache(struct state *s, const struct fib_plugin_slot *slot)
{
    struct kept *const kept = find_kept(s, slot->data[NORM_X]);
    if (!HONEST && kept && kept->x) {
        memcpy(slot->data[NORM_Y], kept->y, norm_bytes(&s->norm));
        return;
    }
    compute(s, slot);
    if (!kept || kept->x)
        return;
    kept->x = slot->data[NORM_X];
    kept->y = malloc(norm_bytes(&s->norm));
    memcpy(kept->y, slot->data[NORM_Y], norm_bytes(&s->norm));
}

static void *work_aside(void *context)
{
    struct state *const s = context;
    const struct timespec pause = {.tv_nsec = ASIDE_MS * 1000000L};
    if (!HONEST)
        nanosleep(&pause, NULL);
    norm_rows(&s->norm, s->work[NORM_X], s->work[NORM_W], (uint16_t *)s->work[NORM_Y]);
    return NULL;
}

static void wait_aside(struct state *s)
{
    if (s->busy)
        pthread_join(s->thread, NULL);
    s->busy = 0;
}

/* A second call finds the first one still at work, and waits for that one only. */
static void aside(struct state *s, const struct fib_plugin_slot *slot)
{
    wait_aside(s);
    s->work = (const void *const *)slot->data;
    s->busy = pthread_create(&s->thread, NULL, work_aside, s) == 0;
    if (HONEST)
        wait_aside(s);
}

/* The twin copies in each call, as a kernel that stages its inputs does. */
static void from_copies(struct state *s, const struct fib_plugin_slot *slot)
{
    if (HONEST) {
        memcpy(s->x, slot->data[NORM_X], norm_bytes(&s->norm));
        memcpy(s->w, slot->data[NORM_W], (size_t)s->norm.cols * sizeof(s->w[0]));
    }
    norm_rows(&s->norm, s->x, s->w, slot->data[NORM_Y]);
}

static int enqueue(void *state, void *stream, const struct fib_plugin_slot *slot,
                   struct fib_plugin_note *note)
{
    struct state *const s = state;
    (void)stream, (void)note;
    s->call_count++;
    switch (CHEAT) {
    case CACHE:
        with_cache(s, slot);
        break;
    case ASIDE:
        aside(s, slot);
        break;
    case NOTHING:
        if (HONEST)
            compute(s, slot);
        break;
    case PINNED:
        from_copies(s, slot);
        break;
    case LATER:
        if (HONEST || s->call_count <= 2)
            compute(s, slot);
        break;
    default:
        compute(s, HONEST ? slot : &s->first);
        break;
    }
    return FIB_PLUGIN_OK;
}

static void teardown(void *state)
{
    struct state *const s = state;
    wait_aside(s);
    for (int i = 0; i < MOST_KEPT; i++)
        free(s->kept[i].y);
    free(s->x);
    free(s->w);
    free(s);
}

static const struct fib_plugin_backend backends[] = {{.routine = "rmsnorm",
                                                      .device = FIB_PLUGIN_CPU,
                                                      .ran = HONEST ? "honest" : "cheat",
                                                      .prepare = prepare,
                                                      .enqueue = enqueue,
                                                      .teardown = teardown}};

FIB_PLUGIN_EXPORT const struct fib_plugin fib_plugin_table = {
    FIB_PLUGIN_VERSION, .name = NAME, .describe = "a test's cheat", .backends = backends,
    .backend_count = 1};
