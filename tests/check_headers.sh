#!/bin/sh
# Every header compiles alone, as C17, with no toolkit. Usage: check_headers.sh ROOT CC...
cd "$1" || exit 1
shift
bad=0
for header in core/*.h routines/*.h backends/backends.h backends/*_lib.h; do
    [ -e "$header" ] || continue
    if ! echo "#include \"$header\"" | "$@" -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -I. \
        -fsyntax-only -x c -; then
        echo "does not compile alone: $header"
        bad=1
    fi
done
exit $bad
