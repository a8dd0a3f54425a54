#!/bin/bash
# Models as C: their text through the C compilers of this machine, strictly, and what the programs
# compute.
#
#     run.sh TVMCC SOURCE WORK RUNTIME       RUNTIME: libtvmcc_runtime.a, for the test of states
set -e
. "$(dirname "$0")/../../lib.sh"
tvmcc=$1 source=$2 runtime=$4
digits=$source/examples/digits product=$source/tests/product quantized=$source/tests/models/quantized
enter "$3"
strict="-O1 -Wall -Wextra -pedantic -Wconversion -Wcast-qual -Wshadow -Wmissing-prototypes -Werror"

compilers=
for cc in gcc clang-19; do
    command -v $cc >/dev/null && compilers="$compilers $cc"
done
[ -n "$compilers" ] || die "no C compiler"

# Each compiler takes the text, in C99 and in what else is said.
accepted() {
    for cc in $compilers; do
        for std in c99 $2; do
            $cc -std=$std $strict -c "$1.c" -o "$1.o" 2>messages || die "$cc -std=$std $1.c: $(head -20 messages)"
        done
    done
}

echo "the file and its header are all there is"
"$tvmcc" -c "$digits/digits.onnx" --target=c
accepted digits c11
[ "$(ls -1 digits.* | tr '\n' ' ')" = "digits.c digits.h digits.o " ] || die "$(ls)"
grep -q 'include "tvmcc' digits.c digits.h && die "another header is included"
"$tvmcc" -c "$digits/digits.onnx" --target=c -o again.c
sed 's/again\.h/digits.h/g' again.c | cmp - digits.c
"$tvmcc" "$digits/digits.onnx" --target=c --emit=plan -o d.plan
"$tvmcc" "$digits/digits.onnx" --target=c --emit=id -o d.id
"$tvmcc" "$digits/digits.onnx" --target=c --emit=weights -o d.weights
"$tvmcc" d.plan d.id d.weights -o steps.c
for file in digits steps; do # a plan does not know the nodes of the model
    sed "s/$file\.h/this.h/g; s/ for '[^']*'//" $file.c >$file.text
done
cmp digits.text steps.text

echo "libm and other words of the command line"
for options in "-fno-libm" "-Os" "-O0" "-mtriple=thumbv7em-none-eabihf -mcpu=cortex-m7" "-fweights=file" \
    "-fweights=extern" "-fweights-dtype=float16"; do
    "$tvmcc" -c "$digits/digits.onnx" --target=c $options -o options.c
    accepted options
done

echo "values: floats, 16 bits, whole numbers"
agrees() {
    "$tvmcc" run "$@" >out 2>&1 || die "$*: $(cat out)"
}
for options in "-O3" "-O0" "-fweights-dtype=float16" "-fweights-dtype=bfloat16" "-ffast-math --rtol=1e-3"; do
    agrees "$digits/digits.onnx" --target=c $options --inputs "$digits/inputs.npz" --expect "$digits/outputs.npz"
done
for model in conv_u8 integer_extremes qlinear moves; do
    agrees "$quantized/$model.onnx" --target=c --inputs "$quantized/$model.in.npz" \
        --expect "$quantized/$model.out.npz"
done

echo "shape buckets, states, dimensions that a run decides"
"$tvmcc" "$product/data/rows.onnx" --shape-buckets=N=1,4,8 --entry=rows --target=c -o rows.c
"$tvmcc" "$product/data/states.onnx" --state=h_next=h --state=a_next=a --state=b_next=b --target=c -o states.c
"$tvmcc" "$source/tests/driver/symbolic.relay" --entry=net --target=c -o net.c
for cc in $compilers; do
    checks=
    echo 'int main(void) { return 0; }' >check.c
    $cc -fsanitize=address,undefined check.c -o check 2>/dev/null && ./check &&
        checks="-g -fsanitize=address,undefined -fno-sanitize-recover=all"
    for name in rows states net; do
        $cc -std=c99 $strict $checks -c $name.c -o $name.o
    done
    $cc $checks -I. -I"$source/include" "$product/rows.c" rows.o -lm -o rows
    ./rows "$product/data/rows.f32" "" || die "$cc: rows: $?"
    $cc $checks -std=c11 -I. -I"$source/include" "$source/tests/driver/symbolic.c" net.o -lm -o net
    ./net || die "$cc: dimensions: $?"
    # What links the runtime is sanitized as that is, if it is.
    [ -z "${LDFLAGS-}" ] || continue
    $cc $checks -I. -I"$source/include" "$product/states.c" states.o "$runtime" -lm -lpthread -ldl -o states
    ./states "$product/data/states.f32" || die "$cc: states: $?"
done
if [ -n "${LDFLAGS-}" ]; then
    $CC ${CFLAGS-} -I. -I"$source/include" "$product/states.c" states.c "$runtime" $LDFLAGS -lm -lpthread -ldl -o states
    ./states "$product/data/states.f32" || die "sanitized states: $?"
fi
