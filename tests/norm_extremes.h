/* Values that norm kernels find hard, on the host as on a device. */
#ifndef FIB_TESTS_NORM_EXTREMES_H
#define FIB_TESTS_NORM_EXTREMES_H

#include <stdint.h>

/* Row 0 large, row 1 tiny, row 2 zeros, row 3 one huge element among small ones, row 4 large with a
 * tiny spread, row 5 constant (but not so large that eps is lost: then the result would be the
 * weight itself, often a tie between two codes). */
static inline double norm_extreme(int64_t row, int64_t col)
{
    switch (row) {
    case 0:
        return col % 2 ? 3e4 : -2.5e4;
    case 1:
        return col % 3 ? 1e-6 : -3e-6;
    case 2:
        return 0.0;
    case 3:
        return col == 5 ? 6e4 : 1e-3;
    case 4:
        return col == 5 ? 30208 : 30080;
    default:
        return 0.01;
    }
}

#endif
