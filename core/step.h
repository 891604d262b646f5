/* The steps of a case, for blame and for the account of its time. */
#ifndef FIB_CORE_STEP_H
#define FIB_CORE_STEP_H

/* What a case is doing. With the backend whose turn it is: who is to blame if the process ends. */
enum fib_step {
    FIB_STEP_BEGIN = 0, /* choosing backends, nothing has run */
    FIB_STEP_FILL,      /* memory and inputs */
    FIB_STEP_PREPARE,
    FIB_STEP_CHECK,     /* first calls and their results */
    FIB_STEP_TIME,
    FIB_STEP_CHECK_AGAIN,
    FIB_STEP_RELEASE
};
enum { FIB_STEP_COUNT = FIB_STEP_RELEASE + 1 };

#endif
