#!/bin/bash
# open.sh <tvmcc> <include folder> <work folder>
#
# A dimension without an upper bound: a program asks for the bytes of the arena and calls the model at many sizes and with
# sizes that cannot be; at -O0 and -O3, as an object, for several CPUs, as C; `tvmcc run` makes the memory itself.
set -e
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
tvmcc=$1 include=$2
enter "$3"
cp "$here/open.relay" net.relay

for options in "-O0" "-O3 -mcpu=x86-64" "-O3 --cpu-variants=x86-64,x86-64-v3"; do
    quiet "$tvmcc" -c net.relay $options -o net.o
    cc -std=c11 -Wall -Wextra -Werror -I. -I"$include" "$here/open.c" net.o -lm -o prog
    ./prog || die "$options: the program says so"
    c++ -x c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I. -I"$include" net.h
done
mkdir c
quiet "$tvmcc" net.relay --target=c -o c/net.c
cc -std=c11 -O2 -Ic -I"$include" "$here/open.c" c/net.c -lm -o prog
./prog || die "as C: the program says so"

quiet "$tvmcc" net.relay --emit=plan -o a.plan -mcpu=x86-64
quiet "$tvmcc" a.plan --emit=plan -o b.plan
same a.plan b.plan
grep -q '^arena "(T\*T' a.plan || die "the arena is no form: $(grep ^arena a.plan)"
sed 's/^arena "[^"]*"/arena 64/' a.plan >wrong.plan
refused 4 "a form if a dimension has no upper bound" "$tvmcc" wrong.plan --emit=plan -o b.plan
grep -q "float32 \[T, 16\], T in 2\.\. " net.h || die "the header does not say the bound: $(grep -n float32 net.h)"
if grep -qE "_MAX|ARENA_BYTES|DEFINE_ARENA" net.h; then die "the header says a largest size"; fi

rows() { # <rows>
    echo "fn @main(%a: Tensor[($1, 16), f32]) { nn.relu(%a) }" >rows.relay
    { echo 'outputs "x"'; echo; cat rows.relay; } >named.relay
    quiet "$tvmcc" run named.relay -o rows$1.npz
}
quiet "$tvmcc" net.relay -o net.so
quiet "$tvmcc" net.relay -o net.tar
for n in 2 33 700; do
    rows $n
    sed "s/2147483647/$n/" net.relay >bounded.relay
    quiet "$tvmcc" run bounded.relay --inputs rows$n.npz -o out.npz
    for product in net.relay net.so net.tar; do
        quiet "$tvmcc" run $product --inputs rows$n.npz --expect out.npz --rtol=1e-5
    done
done
rows 1
refused 1 "dimension 0 of input 'x' is 1, which is no T with T in 2.." "$tvmcc" run net.relay --inputs rows1.npz
refused 1 "status -4: a shape that was not compiled; 'x' is f32[1,16]" "$tvmcc" run net.so --inputs rows1.npz

refused 3 "has no upper bound, which a model with shape buckets needs" "$tvmcc" -c \
    "$here/../frontends/onnx/models/dim_several.onnx" --dim '*=1..' --shape-buckets=batch=1,2 -o x.o
refused 1 "OneHot 'y': values of the run decide dimension 2 of output 'y', which has no upper bound" "$tvmcc" -c \
    "$here/../frontends/onnx/counted/coded.onnx" --dim '*=1..' -o x.o

# What values decide has a form as its bound: more than that is no size, and results need its room.
cat >counts.relay <<'END'
dim T in 1..2147483647
dim K in 0..T

fn @main(%x: Tensor[(T, 8), f32], %n: Tensor[(1), i64]) -> Tensor[(K, 8), f32] {
  let %k = bind_dims(%n, dims=[K]);
  %0 = strided_slice(%x, begin=[0], end=[K], axes=[0]);
  tanh(%0)
}
END
quiet "$tvmcc" -E counts.relay -o again.relay
same counts.relay again.relay
quiet "$tvmcc" counts.relay --emit=plan -o a.plan -mcpu=x86-64
quiet "$tvmcc" a.plan --emit=plan -o b.plan
same a.plan b.plan
grep -q '^bound K in 0..T cell 0' a.plan || die "the bound is no form: $(grep ^bound a.plan)"
given() { # <rows> <count>
    { echo 'outputs "x", "n"'; echo "const @x: Tensor[($1, 8), f32] = splat(0.5)"; echo "const @n: Tensor[(1), i64] = [$2]"
      echo "fn @main() { (const @x, const @n) }"; } >given.relay
    quiet "$tvmcc" run given.relay -o given.npz
}
given 5 5
quiet "$tvmcc" run counts.relay --inputs given.npz -o out.npz
given 5 6
refused 1 "values of the run ask for a size beyond its bounds, or for sizes that do not go together: K in 0..T" "$tvmcc" run counts.relay --inputs given.npz -o out.npz
