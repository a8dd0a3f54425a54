#!/bin/sh
# picture.sh <tvmcc> <work> <mock>: a picture's first convolution, with the pixels of its stride as channels (fold_strides), on
# the mock libraries: an odd number of rows, a cast of the picture in the same kernel as the squares, blocks of channels behind it;
# against the CPU, in f32.
tvmcc=$1 work=$2/picture mock=$3
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 2
export LD_LIBRARY_PATH="$mock${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" TVMCC_NVRTC="$mock/libnvrtc.so.13"
export TVMCC_CACHE_DIR="$work/cache"

cat >odd.relay <<'RELAY'
fn @main(%x: Tensor[(2, 3, 131, 94), f32]) {
  %n = multiply(subtract(mod(multiply(arange(start=0, stop=9408, step=1), 37.0), 251.0), 125.0), 0.002);
  %w = reshape(%n, newshape=[64, 3, 7, 7]);
  nn.relu(nn.conv2d(%x, %w, strides=[2, 2], padding=[3, 3, 3, 3]))
}
RELAY
cat >blocks.relay <<'RELAY'
fn @main(%x: Tensor[(8, 3, 64, 96), f32]) {
  %n = multiply(subtract(mod(multiply(arange(start=0, stop=9408, step=1), 37.0), 251.0), 125.0), 0.002);
  %w = reshape(%n, newshape=[64, 3, 7, 7]);
  %v = reshape(strided_slice(%n, begin=[0], end=[2048]), newshape=[32, 64, 1, 1]);
  %0 = nn.relu(nn.conv2d(%x, %w, strides=[2, 2], padding=[3, 3, 3, 3]));
  nn.relu(nn.conv2d(nn.max_pool2d(%0, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1]), %v))
}
RELAY

for model in odd blocks; do
    device="--target=cuda --mixed-precision"
    "$tvmcc" run $model.relay --fill-mode=random --outputs out.npz >log 2>&1 || { cat log; exit 1; }
    "$tvmcc" compile $model.relay $device --print-after=fold_strides --emit=plan -o plan >log 2>&1
    grep -q 'nn.conv2d.*padding=\[2, 2, 1, 1\], kernel_size=\[4, 4\]' log || { echo "$model has its stride"; exit 1; }
    if ! "$tvmcc" run $model.relay $device --fill-mode=random --expect out.npz --rtol=1e-2 --atol=1e-2 >log 2>&1; then
        echo "$model"
        cat log
        exit 1
    fi
done
grep -q cast_transpose plan || { echo "a kernel for the cast alone"; exit 1; }
echo "all as expected"
