#!/bin/bash
# scale.sh <tvmcc> <work folder>
#
# Eight times the steps take about eight times as long to compile: the host program of 8,000 steps took
# twenty-five times as long as that of 1,000 when LLVM optimised it.
tvmcc=$1 work=$2
. "$(dirname "$0")/../lib.sh"
"$(dirname "$0")/../fresh" "$work" && cd "$work" || exit 2

# <steps>: milliseconds of processor time
spent() {
    awk -v n="$1" 'BEGIN {
        print "fn @main(%x: Tensor[(1, 1, 4, 4), f32]) {"
        for (i = 0; i < n; i++)
            printf "%%%d = nn.max_pool2d(%%%s, pool_size=[3, 3], padding=[1, 1, 1, 1]);\n", i, i ? i - 1 : "x"
        print "%" n - 1 "\n}"
    }' >"pools$1.relay"
    TIMEFORMAT='%U'
    { time "$tvmcc" -c -O2 -fno-cache -mcpu=x86-64 "pools$1.relay" -o "pools$1.o"; } 2>&1 | awk '{ print int($1 * 1000) }'
}
# Who shares the processor slows one of the two down, but not each time.
for try in 1 2 3; do
    few=$(spent 1000) many=$(spent 8000)
    [ -s pools8000.o ] || die "8,000 steps do not compile"
    [ "$many" -ge $((15 * few)) ] || exit 0
done
die "8,000 steps take $many ms, 1,000 take $few"
