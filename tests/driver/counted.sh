#!/bin/bash
# counted.sh <tvmcc> <include folder> <work folder>
#
# Models with dimensions that values of a run decide: a program calls one at many sizes, with and without threads; at
# -O0 and -O3, in one object and for several CPUs, as C.
set -e
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
tvmcc=$1 include=$2
enter "$3"
cp "$here/counted.relay" net.relay

steps=4
try() { # what the objects are made with, and they
    cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -I. -I"$include" -DSTEPS="$steps" "$here/counted.c" "${@:2}" -lm -lpthread -o prog
    ./prog || die "$1: the program says so"
}
for options in "-O0" "-O3 -mcpu=x86-64" "-O3 --cpu-variants=x86-64,x86-64-v3"; do
    "$tvmcc" -c net.relay $options -o net.o 2>messages || die "$options: $(cat messages)"
    try "$options" net.o
done
grep -q "float32 \[min(K, N), 256\], N in 1..64, K in 0..48" net.h || die "the header does not say the bounds"
"$tvmcc" net.relay --emit=plan -o a.plan -mcpu=x86-64
"$tvmcc" a.plan --emit=plan -o b.plan
cmp a.plan b.plan
"$tvmcc" -c net.relay --target=c -O1 -o net.c
steps=0 # nor does it say any
try "as C" net.c
printf 'dim K in 0..9\nfn @main(%%x: Tensor[(9), f32]) { strided_slice(%%x, begin=[0], end=[K]) }\n' >loose.relay
if "$tvmcc" -c loose.relay -o loose.o >messages 2>&1; then die "compiled with a dimension that nothing says"; fi
grep -q "dimension 'K' has no value here" messages || die "$(cat messages)"
printf 'outputs "x"\n\nfn @main(%%a: Tensor[(60, 256), f32]) { nn.relu(%%a) }\n' >ones.relay
quiet "$tvmcc" run ones.relay --fill-mode=ones -o ones.npz
refused 1 "values of the run ask for a size beyond its bounds, or for sizes that do not go together: K in 0..48" \
    "$tvmcc" run net.relay --inputs ones.npz
