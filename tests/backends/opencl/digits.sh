#!/bin/sh
# digits.sh <tvmcc> <source> <work>: the digits network on an OpenCL device, from the model and from
# the shared library made of it, at -O0 (one thread a nest that no loop can share) and at -O2.
tvmcc=$1 model=$2/examples/digits work=$3/opencl
mkdir -p "$work" && cd "$work" || exit 2
export POCL_CACHE_DIR="$work/pocl"
mkdir -p "$POCL_CACHE_DIR"

check() {
    if ! "$tvmcc" run "$@" --inputs "$model/inputs.npz" --expect "$model/outputs.npz" >log 2>&1; then
        if grep -q "cannot run: no " log; then
            echo "SKIP (no OpenCL device)"
            exit 77
        fi
        cat log
        exit 1
    fi
    cat log
    grep -q "agrees" log || exit 1
}

check "$model/digits.onnx" --target=opencl
check "$model/digits.onnx" --target=opencl -O0
# Memory shared by a block of threads, against the CPU.
cat >dense.relay <<'RELAY'
fn @main(%x: Tensor[(32, 64), f32], %w: Tensor[(48, 64), f32], %b: Tensor[(48,), f32]) {
  nn.relu(nn.bias_add(nn.dense(%x, %w), %b))
}
RELAY
cat >batch.relay <<'RELAY'
fn @main(%x: Tensor[(3, 32, 48), f32], %y: Tensor[(3, 64, 48), f32], %z: Tensor[(64, 16), f32]) {
  (nn.relu(nn.batch_matmul(%x, %y)), nn.matmul(reshape(nn.batch_matmul(%x, %y), newshape=[96, 64]), %z))
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
for kernel in dense batch conv rows; do
    "$tvmcc" run $kernel.relay --fill-mode=random --outputs $kernel.npz || exit 1
    "$tvmcc" run $kernel.relay --fill-mode=random --target=opencl --expect $kernel.npz | grep agrees || exit 1
done

"$tvmcc" compile "$model/digits.onnx" --target=opencl --emit=so -o libdigits.so || exit 1
check ./libdigits.so
"$tvmcc" profile "$model/digits.onnx" --target=opencl --repeat=3 --html page.html >log || exit 1
grep -q "6 steps, device timers" page.html || { echo "the page tells no timer"; exit 1; }
grep -q "^timer: device timers$" log || { cat log; exit 1; }
awk '/% .* conv2d/ && !($3 > 0) { exit 1 }' log || { cat log; exit 1; }
grep -q "GFLOP/s and" log && { echo "a device that nobody knows has a peak"; exit 1; }
for f in digits_open digits_close digits_run_ex; do
    grep -q "$f" libdigits.so || { echo "no $f"; exit 1; }
done

# A device whose blocks have less is refused when the model is opened, or the next target is taken (the variable is PoCL's).
export POCL_MAX_WORK_GROUP_SIZE=4
if "$tvmcc" doctor | grep -q "^OpenCL .*pthread"; then
    "$tvmcc" run ./libdigits.so >log 2>&1 && { echo "more threads than there are"; exit 1; }
    grep -q "cannot be opened on the device: .*blocks of 'k_.* threads; the device has .*, 4 in all" log || { cat log; exit 1; }
    check "$model/digits.onnx" --target=opencl --target=llvm
fi
