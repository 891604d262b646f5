#!/bin/sh
# Every header compiles alone, as C17; those of library glue need the toolkit named by
# FIB_CUDA_INCLUDE and are left out without it, all others need none. Usage: check_headers.sh ROOT CC...
cd "$1" || exit 1
shift
bad=0
for header in include/*.h core/*.h gpu/*.h routines/*.h backends/backends.h backends/*_lib.h; do
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
# What plug-ins include is also C99 and C++, and needs no folder of ours.
while read -r compiler kind standard; do
    command -v "$compiler" >/dev/null || continue
    if ! echo '#include "fib_plugin.h"' | "$compiler" -std="$standard" -Wall -Wextra -Werror \
        -pedantic -Iinclude -fsyntax-only -x "$kind" -; then
        echo "include/fib_plugin.h is not $standard"
        bad=1
    fi
done <<'TABLE'
cc c c99
c++ c++ c++11
c++ c++ c++20
TABLE
exit $bad
