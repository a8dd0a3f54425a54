#!/bin/bash
# symbolic.sh <tvmcc> <include folder> <work folder>
#
# Models with dimensions that a run decides: a program calls one at every size within the bounds and beyond them,
# `tvmcc run` takes the sizes from the values; at -O0 and -O3, in one object and for several CPUs, with threads.
set -e
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
tvmcc=$1 include=$2
enter "$3"
cp "$here/symbolic.relay" net.relay

for options in "-O0" "-O3 -mcpu=x86-64" "-O3 --cpu-variants=x86-64,x86-64-v3"; do
    "$tvmcc" -c net.relay $options -o net.o 2>messages || die "$options: $(cat messages)"
    cc -std=c11 -Wall -Wextra -Werror -I. -I"$include" "$here/symbolic.c" net.o -lm -o prog
    ./prog || die "$options: the program says so"
    c++ -x c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I. -I"$include" net.h
done
"$tvmcc" net.relay --emit=plan -o a.plan -mcpu=x86-64
"$tvmcc" a.plan --emit=plan -o b.plan
cmp a.plan b.plan
grep -q "float32 \[N\*2, 4\], N in 1..64" net.h || die "the header does not say the bounds: $(grep -n float32 net.h)"
if "$tvmcc" run net.relay >messages 2>&1; then die "ran without a size"; fi
grep -q "the size of input 'x' is for the run to say" messages || die "$(cat messages)"
if "$tvmcc" -c net.relay --target=opencl -o d.o >messages 2>&1; then die "compiled for a device"; fi
grep -q "for CPUs only yet" messages || die "$(cat messages)"
