#!/bin/sh
# sizes.sh <tvmcc> <work> <target>: models whose sizes a run decides, by its inputs or by what it computes, on a device,
# against the same models on the CPU: rows of a product, softmax and a sum over them, both dimensions of a matrix, more
# cells than a block has threads, and none at all; scratch of threads that is as large as a run says; tiles of products,
# convolutions and attention, from which rows hang.
tvmcc=$1 work=$2/sizes_$3 target=$3
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 2
export POCL_CACHE_DIR="$work/pocl" MESA_SHADER_CACHE_DIR="$work/mesa" TVMCC_CACHE_DIR="$work/cache"
mkdir -p "$POCL_CACHE_DIR"

cat >rows.relay <<'RELAY'
dim N in 0..150000
fn @main(%output0: Tensor[(N, 24), f32]) {
  nn.softmax(nn.dense(%output0, ones(shape=[40, 24])))
}
RELAY
cat >both.relay <<'RELAY'
dim N in 0..96
dim M in 1..24
fn @main(%output0: Tensor[(N, M), f32]) {
  %0 = nn.softmax(nn.matmul(%output0, transpose(%output0)), axis=-1);
  (%0, sum(%output0, axis=[0]), tanh(transpose(%output0)), nn.matmul(%0, %output0), argsort(%output0, axis=0), cumsum(%output0, axis=1))
}
RELAY
cat >counted.relay <<'RELAY'
dim N in 0..96
dim K in 0..96
fn @main(%output0: Tensor[(N, 24), f32]) {
  %0 = sum(%output0, axis=[1]);
  let %k = bind_dims(reshape(sum(cast(greater(%0, 0.0), dtype="i64"), axis=[0], keepdims=true), newshape=[1]), dims=[K]);
  exp(strided_slice(%output0, begin=[0], end=[K], axes=[0]))
}
RELAY

cat >tiles.relay <<'RELAY'
dim N in 1..96
fn @main(%output0: Tensor[(N, 24), f32]) {
  %n = multiply(subtract(mod(multiply(arange(start=0, stop=3456, step=1), 37.0), 251.0), 125.0), 0.004);
  %w = reshape(strided_slice(%n, begin=[0], end=[1152]), newshape=[48, 24]);
  %k = reshape(strided_slice(%n, begin=[0], end=[864]), newshape=[16, 6, 3, 3]);
  %0 = nn.relu(nn.dense(%output0, %w));
  %1 = nn.relu(nn.conv2d(reshape(%output0, newshape=[N, 6, 2, 2]), %k, padding=[1, 1, 1, 1]));
  %q = transpose(reshape(%output0, newshape=[1, N, 2, 12]), axes=[0, 2, 1, 3]);
  %v = tanh(%q);
  %2 = nn.softmax(multiply(nn.batch_matmul(%q, %v), 0.3));
  (%0, %1, nn.batch_matmul(%2, %v, transpose_b=false),
   nn.layer_norm(%0, ones(shape=[48]), zeros(shape=[48])))
}
RELAY

for n in 1 13 64 96; do
    echo "fn @main(%x: Tensor[($n, 24), f32]) { %x }" >made.relay
    "$tvmcc" run made.relay --fill-mode=random --outputs in_$n.npz >log 2>&1 || { cat log; exit 1; }
done
echo "fn @main(%x: Tensor[(70000, 24), f32]) { %x }" >made.relay
"$tvmcc" run made.relay --fill-mode=random --outputs in_70000.npz >log 2>&1 || { cat log; exit 1; }
for model in rows both counted tiles; do
    "$tvmcc" compile $model.relay -mcpu=x86-64 --emit=so -o lib$model.so || exit 1
    "$tvmcc" compile $model.relay --target="$target" --emit=so -o libdevice_$model.so -Wno-schedule-refused || exit 1
    for n in 1 13 64 96 70000; do
        [ $n = 70000 ] && [ $model != rows ] && continue
        "$tvmcc" run ./lib$model.so --inputs in_$n.npz --outputs out.npz >log 2>&1 || { cat log; exit 1; }
        if ! "$tvmcc" run ./libdevice_$model.so --inputs in_$n.npz --expect out.npz >log 2>&1; then
            grep -q "cannot run: no \|there is none\|cannot be opened.*no " log && { echo "SKIP (no device)"; exit 77; }
            echo "$model, $n rows"
            cat log
            exit 1
        fi
        grep -q agrees log || { cat log; exit 1; }
    done
done
echo "all as expected"
