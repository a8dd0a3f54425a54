#!/bin/bash
# macs.sh <tvmcc> <work folder>
#
# <NAME>_MACS of the header and "macs" of the metadata are the model's own products, whatever
# algorithm, -O, loop or step computes them.
set -e
tvmcc=$1 work=$2
. "$(dirname "$0")/../lib.sh"
enter "$work"
cpu="-mcpu=znver4"

# count <expected> <model> <option>...
count() {
    local want=$1 model=$2 header json
    shift 2
    quiet "$tvmcc" "$model" --entry=net -mtriple=x86_64-linux-gnu $cpu "$@" --emit=h,json,plan -o net
    header=$(sed -n 's/^#define NET_MACS //p' net.h) json=$(sed -n 's/^  "macs": \([0-9]*\).*/\1/p' net.json)
    [ "$header" = "$want" ] || die "$model $*: the header counts $header, the model has $want"
    [ "$json" = "$want" ] || die "$model $*: the metadata count $json, the model has $want"
}
plan_has() { grep -aq -- "$1" net.plan || die "the test does not reach '$1'"; }

# Two 3x3 convolutions: N*K*C*9*H*W each.
net() { # <batch>
    cat <<END
const @a: Tensor[(32, 16, 3, 3), f32] = splat(0.5)
const @b: Tensor[(32, 32, 3, 3), f32] = splat(0.5)
fn @main(%x: Tensor[($1, 16, 96, 96), f32]) {
  %0 = nn.relu(nn.conv2d(%x, const @a, padding=[1, 1, 1, 1]));
  nn.global_avg_pool2d(add(nn.conv2d(%0, const @b, padding=[1, 1, 1, 1]), %0))
}
END
}
for batch in 1 8; do
    net $batch >conv$batch.relay
    macs=$((batch * 32 * (16 + 32) * 9 * 96 * 96))
    for option in -O0 -O1 -O2 -O3 -fno-winograd -fpass=strassen -fno-pass=batch_loop; do
        count $macs conv$batch.relay $option
    done
    count $macs conv$batch.relay
    plan_has winograd
done
plan_has 'for %round in (%tid[*]4)' # two pictures at a time, rounds divided
cpu= count $macs conv8.relay --cpu-variants=x86-64,x86-64-v3

# In steps: the number goes through the plan.
quiet "$tvmcc" conv8.relay --entry=net -mtriple=x86_64-linux-gnu $cpu --emit=plan,id,weights -o step
quiet "$tvmcc" step.plan step.id --emit=h -o step.h
grep -qx "#define NET_MACS $macs" step.h || die "a header of a plan: $(grep MACS step.h)"

# one <expected> <parameters> <expression>: the same at -O0 and -O3.
one() {
    printf 'fn @main(%s) {\n  %s\n}\n' "$2" "$3" >one.relay
    count "$1" one.relay -O0
    count "$1" one.relay -O3
}
x='%x: Tensor[(2, 8, 10, 12), f32]'
one $((2 * 8 * 5 * 6 * 9)) "$x, %w: Tensor[(8, 1, 3, 3), f32]" \
    'nn.conv2d(%x, %w, padding=[1, 1, 1, 1], strides=[2, 2], groups=8, channels=8)'
one $((2 * 8 * 10 * 12 * 4 * 3 * 3)) "$x, %w: Tensor[(8, 4, 3, 3), f32]" \
    'nn.conv2d_transpose(%x, %w, strides=[2, 2], channels=4)'
one $((3 * 6 * 18 * 4 * 3)) '%x: Tensor[(3, 4, 20), f32], %w: Tensor[(6, 4, 3), f32]' 'nn.conv1d(%x, %w)'
one $((5 * 7 * 9)) '%x: Tensor[(5, 9), f32], %w: Tensor[(7, 9), f32]' 'nn.dense(%x, %w)'
one $((5 * 7 * 9)) '%x: Tensor[(9, 5), f32], %w: Tensor[(9, 7), f32]' 'nn.matmul(%x, %w, transpose_a=true)'
one $((3 * 5 * 7 * 9)) '%x: Tensor[(3, 5, 9), f32], %w: Tensor[(1, 7, 9), f32]' 'nn.batch_matmul(%x, %w)'
one $((4 * (5 * 9 * 6 + 5 * 6 * 3))) \
    '%q: Tensor[(4, 5, 9), f32], %k: Tensor[(4, 9, 6), f32], %v: Tensor[(4, 6, 3), f32]' \
    'nn.attention(%q, %k, %v, axes_k=[0, 2, 1])'
rnn() { # <operator> <gates> [<parameter> <operand>]
    one $((7 * 2 * 2 * $2 * 16 * (5 + 16))) \
        "%x: Tensor[(7, 2, 5), f32], %w: Tensor[(2, $(($2 * 16)), 5), f32], %r: Tensor[(2, $(($2 * 16)), 16), f32], \
%b: Tensor[(2, $(($2 * 2 * 16))), f32], %h: Tensor[(2, 2, 16), f32]$3" \
        "%0 = $1(%x, %w, %r, %b, %h$4, direction=\"bidirectional\"); %0.0"
}
rnn nn.lstm 4 ', %c: Tensor[(2, 2, 16), f32]' ', %c'
rnn nn.gru 3
rnn nn.rnn 1
one $((2 * 8 * 9 * 11 * 8 * 2 * 2)) '%x: Tensor[(2, 8, 10, 12), u8], %w: Tensor[(8, 8, 2, 2), i8]' \
    'nn.conv2d(%x, %w, out_dtype="i32", pad_value=3)'

# Means, sums and what is made of constants are no products of the model.
one 0 "$x" 'nn.softmax(mean(%x, axis=[2, 3]))'
printf '%s\n' 'const @a: Tensor[(5, 9), f32] = splat(0.5)' 'const @b: Tensor[(7, 9), f32] = splat(0.5)' \
    'fn @main(%x: Tensor[(5, 7), f32]) {' '  add(%x, nn.dense(const @a, const @b))' '}' >constant.relay
count 0 constant.relay -O0
count 0 constant.relay -O3
