#!/bin/sh
# launches.sh <tvmcc> <source> <work>: how many launches networks take on a device, and how much of the text that is
# shipped for it is blanks, at most a tenth.  Padding, activations, residual
# sums and transpositions take none of their own; with mixed precision neither do casts.  ResNet-50 is written here, with weights that are all alike; the
# face detector, of 36 kernels on CPUs, is one of ../shared (skipped, saying so, where that is absent).
tvmcc=$1 model=$2/../shared/models/onnx/ultraface-slim-320/model.onnx work=$3/launches
mkdir -p "$work" && cd "$work" || exit 2

at_most() { # limit, file
    n=$("$tvmcc" "$2" --target=opencl --emit=tir -o - | grep -c '  launch @')
    echo "$2: $n launches, at most $1"
    [ "$n" -gt 0 ] && [ "$n" -le "$1" ] || exit 1
    "$tvmcc" -c "$2" --target=opencl -fweights=file -o net.o || exit 1
    tr '\0' '\1' <net.o | LC_ALL=C awk 'BEGIN { RS = "\1" } /^#pragma OPENCL FP_CONTRACT/ { print; exit }' >text
    all=$(wc -c <text) ink=$(tr -d ' \t\n' <text | wc -c)
    echo "$2: $((all - ink)) blanks of $all"
    [ "$ink" -gt 10000 ] && [ $(((all - ink) * 10)) -le "$all" ] || exit 1
}

# A layer of a transformer: three products, attention, a product, a norm, two products, a norm; and one before it.
{
    for w in q:0.01 k:0.02 v:0.03 o:0.04; do echo "const @${w%:*}: Tensor[(256, 256), f32] = splat(${w#*:})"; done
    echo 'const @n: Tensor[(256), f32] = splat(0.5)'
    echo 'const @f: Tensor[(1024, 256), f32] = splat(0.01)'
    echo 'const @g: Tensor[(256, 1024), f32] = splat(0.01)'
    echo 'fn @main(%x: Tensor[(1, 64, 256), f32]) {'
    echo '  %0 = nn.layer_norm(%x, const @n, const @n);'
    for w in q k v; do
        echo "  %$w = transpose(reshape(nn.bias_add(nn.dense(%0, const @$w), const @n, axis=2), newshape=[1, 64, 4, 64]), axes=[0, 2, 1, 3]);"
    done | sed 's/%q/%1/; s/%k/%2/; s/%v/%3/'
    echo '  %4 = nn.softmax(multiply(nn.batch_matmul(%1, %2), 0.125));'
    echo '  %5 = transpose(nn.batch_matmul(%4, %3, transpose_b=false), axes=[0, 2, 1, 3]);'
    echo '  %6 = add(nn.dense(reshape(%5, newshape=[1, 64, 256]), const @o), %0);'
    echo '  %7 = nn.layer_norm(%6, const @n, const @n);'
    echo '  %8 = add(nn.dense(sigmoid(nn.dense(%7, const @f)), const @g), %7);'
    echo '  nn.layer_norm(%8, const @n, const @n)'
    echo '}'
} >layer.relay
n=$("$tvmcc" layer.relay --mixed-precision --target=opencl --emit=tir -o - | grep -c '  launch @')
echo "layer.relay, mixed precision: $n launches, at most 10"
[ "$n" -gt 0 ] && [ "$n" -le 10 ] || exit 1

# conv(x, in, out, kernel, stride, what is done with it)
awk '
function conv(x, i, o, k, s) {
    n++
    w = w sprintf("const @w%d: Tensor[(%d, %d, %d, %d), f32] = splat(0.01)\n", n, o, i, k, k)
    p = int(k / 2)
    return sprintf("nn.conv2d(%s, const @w%d, strides=[%d, %d], padding=[%d, %d, %d, %d])", x, n, s, s, p, p, p, p)
}
function let(e) { b = b sprintf("  %%%d = %s;\n", v, e); return "%" v++ }
BEGIN {
    x = let("nn.relu(" conv("%x", 3, 64, 7, 2) ")")
    x = let("nn.max_pool2d(" x ", pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])")
    i = 64
    split("3 4 6 3", blocks); split("64 128 256 512", width)
    for (stage = 1; stage <= 4; stage++)
        for (k = 1; k <= blocks[stage]; k++) {
            m = width[stage]; s = k == 1 && stage > 1 ? 2 : 1
            y = let("nn.relu(" conv(x, i, m, 1, 1) ")")
            y = let("nn.relu(" conv(y, m, m, 3, s) ")")
            short = k == 1 ? let(conv(x, i, 4 * m, 1, s)) : x
            x = let("nn.relu(add(" conv(y, m, 4 * m, 1, 1) ", " short "))")
            i = 4 * m
        }
    x = let("reshape(nn.global_avg_pool2d(" x "), newshape=[1, 2048])")
    w = w "const @dense: Tensor[(1000, 2048), f32] = splat(0.01)\n"
    print w "fn @main(%x: Tensor[(1, 3, 224, 224), f32]) {\n" b "  nn.softmax(nn.dense(" x ", const @dense))\n}"
}' </dev/null >resnet50.relay
at_most 60 resnet50.relay
if [ -f "$model" ]; then
    at_most 40 "$model"
else
    echo "SKIP (no ../shared/models)"
fi
