#!/bin/sh
# products.sh <tvmcc> <source> <work>: machine code of products by the instructions of AMD's warps, of CDNA 1 to 3, RDNA 3 and 4: it
# has them, and nothing is spilled.  What they compute: backends.rocm.warps.
tvmcc=$1 many=$2/tests/backends/one_core.machine work=$3/rocm_products
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 2
export TVMCC_CACHE_DIR="$work/cache"

cat >dense.relay <<'RELAY'
fn @main(%x: Tensor[(150, 192), f32], %w: Tensor[(130, 192), f32], %b: Tensor[(130,), f32]) {
  nn.relu(nn.bias_add(nn.dense(%x, %w), %b))
}
RELAY
cat >batch.relay <<'RELAY'
fn @main(%x: Tensor[(2, 60, 64), f32], %y: Tensor[(2, 64, 75), f32]) {
  nn.batch_matmul(%x, %y, transpose_b=false)
}
RELAY
cat >convolution.relay <<'RELAY'
fn @main(%x: Tensor[(2, 32, 11, 13), f32]) {
  %n = multiply(subtract(mod(multiply(arange(start=0, stop=36864, step=1), 37.0), 251.0), 125.0), 0.002);
  %w = reshape(strided_slice(%n, begin=[0], end=[18432]), newshape=[64, 32, 3, 3]);
  %v = reshape(%n, newshape=[64, 64, 3, 3]);
  %0 = nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1]));
  add(nn.conv2d(%0, %v, padding=[1, 1, 1, 1]), %0)
}
RELAY
cat >attention.relay <<'RELAY'
fn @main(%q: Tensor[(12, 200, 32), f32], %k: Tensor[(12, 100, 32), f32], %v: Tensor[(12, 100, 32), f32]) {
  nn.batch_matmul(nn.softmax(nn.batch_matmul(%q, %k)), %v, transpose_b=false)
}
RELAY
cat >bytes.relay <<'RELAY'
fn @main(%x: Tensor[(70, 64), i8], %w: Tensor[(90, 64), i8], %y: Tensor[(1, 64, 9, 7), i8], %v: Tensor[(48, 64, 3, 3), i8]) {
  (nn.dense(%x, %w, out_dtype="i32"), nn.conv2d(%y, %v, padding=[1, 1, 1, 1], out_dtype="i32"))
}
RELAY
sed 's/i8\]/u8]/; s/y: \(.*\), i8\], %v/y: \1, u8], %v/' bytes.relay >unsigned.relay

# <model> <GPU> <instruction> <words of the compile>
check() {
    model=$1 gpu=$2 instruction=$3
    shift 3
    for machine in "" "--machine=$many"; do
        "$tvmcc" compile "$model.relay" --target="rocm -mcpu=$gpu" "$@" $machine --emit=gcn -o kernels.s >log 2>&1 ||
            { cat log; exit 1; }
        # With one core an estimate may be for threads.
        grep -q "$instruction" kernels.s || [ "$machine" ] || { echo "$model on $gpu has no $instruction"; exit 1; }
        if grep -E "spill_count: +[1-9]|private_segment_fixed_size: +[1-9]" kernels.s; then
            echo "$model on $gpu spills $machine"
            exit 1
        fi
    done
}

bf16="--mixed-precision --mixed-precision-calculation-type=bfloat16"
for model in dense batch convolution attention; do
    check $model gfx908 v_mfma_f32_16x16x16f16 --mixed-precision
    check $model gfx942 v_mfma_f32_16x16x16_f16 --mixed-precision
    check $model gfx1100 v_wmma_f32_16x16x16_f16 --mixed-precision
    [ $model = attention ] || check $model gfx1201 v_wmma_f32_16x16x16_f16 --mixed-precision
done
check dense gfx90a v_mfma_f32_16x16x16bf16_1k $bf16
check dense gfx1100 v_wmma_f32_16x16x16_bf16 $bf16
check convolution gfx1201 v_wmma_f32_16x16x16_bf16 $bf16
check bytes gfx90a v_mfma_i32_16x16x16i8
check bytes gfx942 v_mfma_i32_16x16x32_i8
for model in bytes unsigned; do
    check $model gfx1100 v_wmma_i32_16x16x16_iu8
    check $model gfx1201 v_wmma_i32_16x16x16_iu8
done

# GPUs of both kinds, and warps of 64 threads, have no such instruction in common.
for target in "rocm -mcpu=gfx90a -mcpu=gfx1100" "rocm -mcpu=gfx1100 -thread_warp_size=64"; do
    "$tvmcc" compile dense.relay --mixed-precision --target="$target" --emit=gcn -o kernels.s || exit 1
    if grep -q "v_[mw]*fma_f32_16x16\|v_wmma" kernels.s; then echo "$target: products of warps"; exit 1; fi
done
echo "all as expected"
