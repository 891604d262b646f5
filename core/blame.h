/* Which backends of a case have their row, and who pays when the worker does not come back. One per
 * case, in the parent; it survives the workers that the case uses up. */
#ifndef FIB_CORE_BLAME_H
#define FIB_CORE_BLAME_H

#include "core/runner.h"
#include "core/text.h"

/* One cache state of the case. */
struct fib_blame_state {
    char **labels; /* as the worker named them last */
    size_t count;
    bool begun;
    struct fib_text done; /* words: labels with a row, from whatever run */
};

struct fib_blame {
    const struct fib_runner *runner; /* callbacks and the device from afar */
    const struct fib_case *kase;
    int64_t index;
    bool both;     /* two states, cold first */
    bool hot;      /* the state that runs or comes next */
    bool in_group; /* the present worker has begun that state and not ended it */
    bool open;     /* rows were given since the last end of a group */
    size_t row_count;
    struct fib_blame_state states[2]; /* cold, hot */
};

/* How a case went wrong. */
struct fib_blame_end {
    enum fib_result_status status;
    int arm, step;    /* the worker's mark: may hold anything */
    const char *what; /* "worker ended by signal 11 (segmentation fault)" */
};

void fib_blame_begin(struct fib_blame *blame, const struct fib_runner *runner,
                     const struct fib_case *kase, int64_t index);
void fib_blame_free(struct fib_blame *blame);
/* A worker begins the case, again perhaps. */
void fib_blame_start(struct fib_blame *blame);
/* It begins a cache state: asks the runner's begin_group what has its row already. */
void fib_blame_group(struct fib_blame *blame, const struct fib_group *group);
/* Has backend `i` of the group just begun its row? */
bool fib_blame_is_done(const struct fib_blame *blame, size_t i);
/* A record of this backend arrived; false when nobody could have sent it. */
bool fib_blame_note(struct fib_blame *blame, const char *label);
/* The state is complete; hands on to the runner's end_group. */
enum fib_status fib_blame_end_group(struct fib_blame *blame, struct fib_error *err);
/* The worker is gone: a row for the backend that was at work, or, when none was, for all that have
 * none. */
enum fib_status fib_blame_book(struct fib_blame *blame, const struct fib_blame_end *end,
                               struct fib_error *err);
/* Every backend in every state has its row. */
bool fib_blame_is_complete(const struct fib_blame *blame);

#endif
