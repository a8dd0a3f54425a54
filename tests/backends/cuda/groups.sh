#!/bin/sh
# groups.sh <tvmcc> <source> <work> <mock>: products by instructions of four warps, on the mock libraries, which find the
# sides' numbers in shared memory as PTX says they lie: rows and columns over the edges, a batch, one side of which passes
# registers, convolutions of channels in blocks, bf16; against the CPU, in f32.
tvmcc=$1 figures=$2/tests/backends/four_warps.machine work=$3/groups mock=$4
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 2
export LD_LIBRARY_PATH="$mock${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" TVMCC_NVRTC="$mock/libnvrtc.so.13" MOCK_CUDA_ARCH=90
export TVMCC_CACHE_DIR="$work/cache"

cat >dense.relay <<'RELAY'
fn @main(%x: Tensor[(250, 192), f32], %w: Tensor[(500, 192), f32], %b: Tensor[(500,), f32]) {
  nn.relu(nn.bias_add(nn.dense(%x, %w), %b))
}
RELAY
cat >batch.relay <<'RELAY'
fn @main(%x: Tensor[(2, 120, 128), f32], %y: Tensor[(2, 128, 250), f32]) {
  nn.batch_matmul(%x, %y, transpose_b=false)
}
RELAY
cat >convolution.relay <<'RELAY'
fn @main(%x: Tensor[(2, 64, 11, 13), f32]) {
  %n = multiply(subtract(mod(multiply(arange(start=0, stop=147456, step=1), 37.0), 251.0), 125.0), 0.002);
  %w = reshape(strided_slice(%n, begin=[0], end=[73728]), newshape=[128, 64, 3, 3]);
  %v = reshape(%n, newshape=[128, 128, 3, 3]);
  %0 = nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1]));
  add(nn.conv2d(%0, %v, padding=[1, 1, 1, 1]), %0)
}
RELAY

for model in dense batch convolution; do
    "$tvmcc" run $model.relay --fill-mode=random --outputs out.npz >log 2>&1 || { cat log; exit 1; }
    for type in float16 bfloat16; do
        device="--mixed-precision --mixed-precision-calculation-type=$type --machine=$figures"
        "$tvmcc" compile $model.relay --target="cuda -arch=sm_90a" $device --emit=cu -o kernels.cu || exit 1
        grep -q "wgmma.mma_async" kernels.cu || { echo "$model in $type has no product by four warps"; exit 1; }
        if ! "$tvmcc" run $model.relay --target="cuda -arch=sm_90a" $device --fill-mode=random --expect out.npz --rtol=1e-2 >log 2>&1; then
            echo "$model, $type"
            cat log
            exit 1
        fi
    done
done
echo "all as expected"
