#!/bin/sh
# digits.sh <tvmcc> <source> <work>: the digits network on a Vulkan device, from the model and from the shared library
# made of it; kernels that share memory, that get more buffers than push constants hold, and that have more blocks
# than a launch along one axis.  SPIR-V is the same each time, and valid (spirv-val, where it is installed).
tvmcc=$1 model=$2/examples/digits work=$3/vulkan
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 2

bad() { echo "$*"; cat log 2>/dev/null; exit 1; }
check() {
    if ! "$tvmcc" run "$@" --inputs "$model/inputs.npz" --expect "$model/outputs.npz" >log 2>&1; then
        if grep -q "cannot run: no " log; then
            echo "SKIP (no Vulkan device)"
            exit 77
        fi
        bad "run $*"
    fi
    grep -q agrees log || bad "run $*"
}
valid() {
    "$tvmcc" compile "$1" --target=vulkan --emit=spvasm -o kernels.spvasm || exit 1
    command -v spirv-val >/dev/null || return 0
    spirv-as --preserve-numeric-ids --target-env spv1.5 kernels.spvasm -o kernels.spv &&
        spirv-val --target-env vulkan1.2 kernels.spv || bad "$1: not valid"
}

cat >dense.relay <<'RELAY'
fn @main(%x: Tensor[(32, 64), f32], %w: Tensor[(48, 64), f32], %b: Tensor[(48,), f32]) {
  nn.relu(nn.bias_add(nn.dense(%x, %w), %b))
}
RELAY
cat >conv.relay <<'RELAY'
fn @main(%x: Tensor[(2, 6, 19, 17), f32], %w: Tensor[(10, 3, 3, 5), f32], %v: Tensor[(9, 10, 1, 1), f32]) {
  nn.conv2d(nn.relu(nn.conv2d(%x, %w, padding=[2, 4, 2, 4], strides=[2, 1], dilation=[2, 2], groups=2)), %v)
}
RELAY
cat >rows.relay <<'RELAY'
fn @main(%x: Tensor[(3, 300), f32], %g: Tensor[(300), f32], %b: Tensor[(300), f32]) {
  (nn.softmax(%x), nn.layer_norm(%x, %g, %b, axis=-1), argmax(%x, axis=1), sum(%x, axis=[0, 1]))
}
RELAY
cat >halves.relay <<'RELAY'
fn @main(%x: Tensor[(5, 70), f16], %y: Tensor[(70), i8], %z: Tensor[(70), bool]) {
  (exp(add(%x, cast(%y, dtype=f16))), where(%z, %y, negative(%y)), logical_not(%z), cast(%x, dtype=i16))
}
RELAY
{
    echo "fn @main($(seq -s ', ' -f '%%x%g: Tensor[(2,), f32]' 120)) {"
    echo "  concatenate(($(seq -s ', ' -f '%%x%g' 120)), axis=0)"
    echo "}"
} >many.relay
echo 'fn @main(%x: Tensor[(700), f32], %y: Tensor[(700), f32]) { (divide(%x, %y), mod(%x, %y)) }' >quotients.relay
echo 'fn @main(%x: Tensor[(20000, 1000), i8]) { nn.relu(%x) }' >large.relay

valid "$model/digits.onnx"
for kernel in dense conv rows halves quotients many large; do
    valid $kernel.relay
    cp kernels.spvasm first
    "$tvmcc" compile $kernel.relay --target=vulkan --emit=spvasm -fno-cache -o kernels.spvasm || exit 1
    cmp first kernels.spvasm || bad "$kernel: not the same again"
done
check "$model/digits.onnx" --target=vulkan
check "$model/digits.onnx" --target=vulkan -O0
"$tvmcc" compile "$model/digits.onnx" --target=vulkan --emit=so -o libdigits.so || exit 1
check ./libdigits.so
"$tvmcc" profile "$model/digits.onnx" --target=vulkan --repeat=3 >log 2>&1 || bad "profile"
grep -q "^timer: device timers$" log || bad "no timers"
awk '/% .*(conv2d|dense|pool|softmax)/ { n++ } !($3 > 0) && n && !/timer/ { exit 1 } END { exit n != 6 }' log || bad "times"
for kernel in dense conv rows halves quotients many large; do
    "$tvmcc" run $kernel.relay --fill-mode=random --outputs $kernel.npz >log 2>&1 || bad "$kernel"
    "$tvmcc" run $kernel.relay --fill-mode=random --target=vulkan --expect $kernel.npz >log 2>&1 || bad "$kernel"
    grep -q agrees log || bad "$kernel"
done
"$tvmcc" run libdigits.so --device-number 99 --inputs "$model/inputs.npz" >log 2>&1 && bad "a device of number 99"
grep -q "no Vulkan device of that number" log || bad "a device of number 99"
echo "all as expected"
