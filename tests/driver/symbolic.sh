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

# Sizes that do not go together, or are beyond the bounds: which one, by name; of a product all.
sizes() { # <rows of x> <rows of y>
    printf 'outputs "x", "y", "v"\n\nfn @main(%%a: Tensor[(%s, 16), f32], %%b: Tensor[(%s, 4), f32], ' $1 $2 >sizes.relay
    echo '%c: Tensor[(8, 16), f32]) { (nn.relu(%a), nn.relu(%b), nn.relu(%c)) }' >>sizes.relay
    quiet "$tvmcc" run sizes.relay -o $1x$2.npz
}
for pair in "3 6" "3 5" "64 6" "60 128"; do sizes $pair; done
quiet "$tvmcc" run net.relay --inputs 3x6.npz
refused 1 "3x5.npz: error: dimension 0 of input 'y' is 5, but N*2 is 6 (N = 3)" "$tvmcc" run net.relay --inputs 3x5.npz
refused 1 "dimension 0 of input 'y' is 6, but N*2 is 128 (N = 64)" "$tvmcc" bench net.relay --inputs 64x6.npz
sed 's/1\.\.64/1..8/' net.relay >few.relay
quiet "$tvmcc" few.relay -mcpu=x86-64 -o few.so
refused 1 "status -4: a shape that was not compiled; 'x' is f32[3,16], 'y' is f32[5,4]" "$tvmcc" run few.so --inputs 3x5.npz
sed 's/(N, 16)/(N*2+1, 16)/; s/(2\*N, 4)/(N, 4)/' net.relay >odd.relay
refused 1 "dimension 0 of input 'x' is 64, which is no N*2+1 with N in 1..64" "$tvmcc" run odd.relay --inputs 64x6.npz
