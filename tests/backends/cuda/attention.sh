#!/bin/sh
# attention.sh <tvmcc> <work> <mock>: attention by instructions of warps, on the mock libraries: heads behind rows, rows and
# keys over the edges, a mask, columns that are no power of two or no multiple of 8, keys that lie the other way round;
# in f16 and bf16, against the CPU, in f32; for a GPU of one core, where products decide.
tvmcc=$1 work=$2/attention mock=$3
machine=$(cd "$(dirname "$0")/.." && pwd)/one_core.machine
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 2
export LD_LIBRARY_PATH="$mock${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" TVMCC_NVRTC="$mock/libnvrtc.so.13" MOCK_CUDA_ARCH=80
export TVMCC_CACHE_DIR="$work/cache"

cat >heads.relay <<'RELAY'
fn @main(%q: Tensor[(2, 96, 3, 64), f32], %k: Tensor[(2, 300, 3, 64), f32], %v: Tensor[(2, 300, 3, 64), f32],
         %m: Tensor[(2, 1, 1, 300), f32]) {
  %0 = transpose(%q, axes=[0, 2, 1, 3]);
  %1 = transpose(%k, axes=[0, 2, 3, 1]);
  %2 = transpose(%v, axes=[0, 2, 1, 3]);
  %3 = add(multiply(nn.batch_matmul(%0, %1, transpose_b=false), 0.125), %m);
  transpose(nn.batch_matmul(nn.softmax(%3), %2, transpose_b=false), axes=[0, 2, 1, 3])
}
RELAY
cat >edges.relay <<'RELAY'
fn @main(%q: Tensor[(2, 40, 32), f32], %k: Tensor[(2, 75, 32), f32], %v: Tensor[(2, 75, 20), f32]) {
  nn.batch_matmul(nn.softmax(multiply(nn.batch_matmul(%q, %k), 0.25)), %v, transpose_b=false)
}
RELAY
cat >turned.relay <<'RELAY'
fn @main(%q: Tensor[(2, 64, 80), f32], %k: Tensor[(2, 80, 96), f32], %v: Tensor[(2, 96, 80), f32]) {
  %0 = nn.softmax(multiply(nn.batch_matmul(%q, %k, transpose_b=false), 0.125));
  nn.batch_matmul(%0, %v, transpose_b=false)
}
RELAY

for model in heads edges turned; do
    "$tvmcc" run $model.relay --fill-mode=random --outputs out.npz >log 2>&1 || { cat log; exit 1; }
    for type in float16 bfloat16; do
        device="--machine=$machine --mixed-precision --mixed-precision-calculation-type=$type"
        "$tvmcc" compile $model.relay --target="cuda -arch=sm_80" $device --emit=cu -o kernels.cu || exit 1
        grep -q attention kernels.cu && grep -q "mma.sync" kernels.cu ||
            { echo "$model in $type has no attention by warps"; exit 1; }
        if ! "$tvmcc" run $model.relay --target="cuda -arch=sm_80" $device --fill-mode=random --expect out.npz --rtol=1e-2 >log 2>&1; then
            echo "$model, $type"
            cat log
            exit 1
        fi
    done
done
echo "all as expected"
