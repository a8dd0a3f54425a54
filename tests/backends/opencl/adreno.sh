#!/bin/sh
# adreno.sh <tvmcc> <source> <work>: weights as images, on an OpenCL device with images: the digits network, also in 16 bits and with
# another target behind; under oclgrind, where that is there, without a fault, and by pointers where its images are too small.
tvmcc=$1 source=$2 model=$2/examples/digits work=$3/adreno
mkdir -p "$work" && cd "$work" || exit 2
export POCL_CACHE_DIR="$3/opencl/pocl"
mkdir -p "$POCL_CACHE_DIR"

check() {
    if ! "$@" >log 2>&1; then
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

digits() {
    check "$@" --inputs "$model/inputs.npz" --expect "$model/outputs.npz"
}

digits "$tvmcc" run "$model/digits.onnx" --target="opencl -device=adreno"
digits "$tvmcc" run "$model/digits.onnx" --target="opencl -device=adreno" -O0
digits "$tvmcc" run "$model/digits.onnx" --target="opencl -device=adreno" --mixed-precision --rtol=1e-2 --atol=1e-3
"$tvmcc" compile "$model/digits.onnx" --target="opencl -device=adreno" --emit=so -o libdigits.so || exit 1
grep -q image1d_buffer_t libdigits.so || { echo "no image"; exit 1; }
digits "$tvmcc" run ./libdigits.so

# Weights of 1.1 MB, in texels of 16 bytes, of which oclgrind has 65536.
cat >large.relay <<'END'
const @w: Tensor[(1100, 256), f32] = splat(0.01)
fn @main(%x: Tensor[(1, 256), f32]) { nn.dense(%x, const @w) }
END
"$tvmcc" run large.relay --fill-mode=random --outputs large.npz || exit 1
check "$tvmcc" run large.relay --fill-mode=random --target="opencl -device=adreno" --expect large.npz
command -v oclgrind >/dev/null || { echo "no oclgrind: one part of the test was left out"; exit 0; }
watched=$source/tests/backends/watched.sh
digits "$watched" oclgrind "$tvmcc" run "$model/digits.onnx" --target="opencl -device=adreno"
"$watched" oclgrind "$tvmcc" run large.relay --fill-mode=random --target="opencl -device=adreno" >log 2>&1 && exit 1
cat log
grep -q "the weights are an image of 70400 texels, of which the device has 65536 at most" log || exit 1
check "$watched" oclgrind "$tvmcc" run large.relay --fill-mode=random --target="opencl -device=adreno" --target=opencl --expect large.npz
