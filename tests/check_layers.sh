#!/bin/sh
# Which folder may include what: the dependency rules of docs/architecture.md, kept by a machine.
# Usage: check_layers.sh SOURCE_ROOT
cd "$1" || exit 1
bad=0

# Quoted includes by folder. Generated headers have no folder.
while read -r dir allowed; do
    [ -d "$dir" ] || continue
    found=$(grep -RnE --include='*.[ch]' --include='*.cu' --include='*.cuh' \
        '^#include "' "$dir" | grep -vE "\"($allowed)\"")
    if [ -n "$found" ]; then
        echo "not allowed in $dir ($allowed):"
        echo "$found"
        bad=1
    fi
done <<'TABLE'
include   none
core      core/[a-z0-9_]+\.h|include/fib_plugin\.h
gpu       (core|gpu)/[a-z0-9_]+\.h
routines  (core|routines)/[a-z0-9_]+\.h
kernels   kernels/[a-z0-9_/]+\.(h|cuh)
backends  (core|gpu|routines|backends)/[a-z0-9_]+\.h|kernels/[a-z0-9_]+\.h|backend_rows\.h
TABLE

# Finer rules for adapters: no kernel headers outside cuda_*, no other adapter's header, and
# library glue does not know routines.
for file in backends/*.c; do
    stem=$(basename "$file" .c)
    library=${stem%%_*}
    case $stem in
    cuda_*) ;;
    *) if grep -nE '^#include "kernels/' "$file"; then
           echo "$file: only cuda_* adapters include kernel headers"; bad=1
       fi ;;
    esac
    if grep -nE '^#include "backends/' "$file" |
       grep -vE "\"backends/(${library}_(lib|plan)|backends)\.h\""; then
        echo "$file: may include only backends/${library}_lib.h and _plan.h"; bad=1
    fi
    case $stem in
    *_lib) if grep -nE '^#include "routines/' "$file"; then
               echo "$file: library glue knows no routines"; bad=1
           fi ;;
    esac
done

# Library headers stay in one place each.
check_only() {
    found=$(grep -RlE --include='*.[ch]' "^#include <$1" core gpu routines backends flashinfer_bench.c \
        2>/dev/null | grep -vE "^($2)$")
    if [ -n "$found" ]; then
        echo "<$1> may be included only by $2, not by: $found"; bad=1
    fi
}
check_only 'cjson/' 'core/json\.c'
check_only 'cblas' 'backends/openblas_(lib\.[ch]|gemm\.c)'
check_only '(cuda|cublas|cudnn|nccl|cupti|nvml)' '(gpu/.*|backends/.*_lib\.[ch])'

# core speaks of no routine and no library by name; backends compute no flops.
if grep -nwE 'rmsnorm|layernorm|bmm_fp8|mm_bf16|openblas|cublas|cublaslt|cudnn|flashinfer' \
    core/*.[ch] | grep -vE ':[0-9]+: *(/\*|\*|//)|/\*.*(rmsnorm|mm_bf16|openblas)'; then
    echo "core names a routine or a library"; bad=1
fi
if grep -nE '\.flops|traffic_bytes|->cost' backends/*.c; then
    echo "a backend computes or reads work: that is the routine's row"; bad=1
fi
# The oracle and the cpu backend share nothing.
if grep -nE '^#include "routines/.*_reference\.h"' backends/*.c; then
    echo "a backend includes the oracle"; bad=1
fi
# Nothing but main ends the process (the bookkeeping allocator, the second Ctrl-C and the worker,
# and the process that looks at a plug-in, which have no main to return to, apart).
if grep -nE '\b(_?exit|abort)\(' core/*.c gpu/*.c routines/*.c backends/*.c |
   grep -vE '^core/(memory|interrupt|json|worker|plugin_probe)\.c:'; then
    echo "only main ends the process"; bad=1
fi
# No variable at file level that changes.
if grep -nE '^static [^(]*(=|;)' core/*.c gpu/*.c routines/*.c backends/*.c |
   grep -vE 'const |^[^:]*:[0-9]+:static (inline|void|bool|int|enum|struct [a-z_]+ \*?)[^=;]*\('; then
    echo "a file-level variable that is not const"; bad=1
fi
exit $bad
