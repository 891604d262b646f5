#!/bin/sh
# Every header compiles alone, as C17; those of library glue need the toolkit named by
# FIB_CUDA_INCLUDE and are left out without it, all others need none. Usage: check_headers.sh ROOT CC...
cd "$1" || exit 1
shift
bad=0
for header in core/*.h gpu/*.h routines/*.h backends/backends.h backends/*_lib.h; do
    [ -e "$header" ] || continue
    toolkit=
    if grep -qE '^#include <(cuda|cublas|cudnn|nccl|cupti|nvml)' "$header"; then
        [ -n "$FIB_CUDA_INCLUDE" ] || continue
        toolkit="-isystem $FIB_CUDA_INCLUDE"
    fi
    if ! echo "#include \"$header\"" | "$@" -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -I. \
        $toolkit -fsyntax-only -x c -; then
        echo "does not compile alone: $header"
        bad=1
    fi
done
exit $bad
