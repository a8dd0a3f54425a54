#!/bin/sh
# mixed.sh <tvmcc> <work> <target>: models of which some kernels are the device's and some those of the CPU that drives it,
# against the same models on the CPU alone: chosen by cost, and as Relay text says; branches, loops that hand on values of
# either side, parts of one memory, memory that is overwritten; f64 where the device has none; as a shared library and for several targets.
tvmcc=$1 work=$2/mixed_$3 target=$3
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 2
export POCL_CACHE_DIR="$work/pocl" MESA_SHADER_CACHE_DIR="$work/mesa"
mkdir -p "$POCL_CACHE_DIR"
bad() { echo "$*"; cat log 2>/dev/null; exit 1; }

cat >chosen.relay <<'RELAY'
const @w: Tensor[(1024, 1024), f32] = splat(0.001)
fn @main(%x: Tensor[(256, 1024), f32]) {
  %0 = nn.relu(nn.dense(%x, const @w));
  %1 = nn.dense(multiply(%x, %0), const @w);
  %2 = sort(%1, axis=1);
  (%2, nn.dense(add(%2, %x), const @w))
}
RELAY
cat >sides.relay <<'RELAY'
fn @main(%x: Tensor[(4, 30), f32], %c: Tensor[(), bool]) {
  %0 = fn primitive (%a: Tensor[(4, 30), f32]) { tanh(%a) }(%x);
  %1 = fn primitive host (%a: Tensor[(4, 30), f32]) { sort(%a, axis=1) }(%0);
  %2 = fn primitive (%a: Tensor[(4, 30), f32], %b: Tensor[(4, 30), f32]) { add(%a, %b) }(%0, %1);
  %3 = fn primitive host (%a: Tensor[(4, 30), f32], %b: Tensor[(120), f32]) {
    multiply(%a, reshape(%b, newshape=[4, 30]))
  }(%2, reshape(%1, newshape=[120]));
  %4 = if %c {
    fn primitive host (%a: Tensor[(4, 30), f32]) { exp(%a) }(%3)
  } else {
    fn primitive (%a: Tensor[(4, 30), f32]) { negative(%a) }(%3)
  };
  (%1, %2, %4, fn primitive (%a: Tensor[(4, 30), f32]) { nn.relu(%a) }(%4), %x)
}
RELAY
cat >loop.relay <<'RELAY'
fn @rounds(%i: Tensor[(), i32], %s: Tensor[(8), f32], %t: Tensor[(8), f32], %x: Tensor[(8), f32])
    -> (Tensor[(8), f32], Tensor[(8), f32]) {
  if fn primitive host (%a: Tensor[(), i32]) { less(%a, 5) }(%i) {
    %0 = fn primitive (%a: Tensor[(8), f32], %b: Tensor[(8), f32]) { add(multiply(%a, 0.5), %b) }(%s, %x);
    %1 = fn primitive host (%a: Tensor[(8), f32], %b: Tensor[(8), f32]) { subtract(%a, %b) }(%t, %0);
    @rounds(fn primitive host (%a: Tensor[(), i32]) { add(%a, 1) }(%i), %1, %0, %x)
  } else {
    (%s, %t)
  }
}
fn @main(%x: Tensor[(8), f32]) { @rounds(0, %x, %x, %x) }
RELAY
cat >doubles.relay <<'RELAY'
fn @rounds(%i: Tensor[(), i32], %s: Tensor[(8), f64], %t: Tensor[(5, 8), f64], %x: Tensor[(8), f32])
    -> (Tensor[(8), f64], Tensor[(5, 8), f64]) {
  if less(%i, 5) {
    %0 = add(multiply(%s, cast(0.5, dtype=f64)), cast(nn.relu(%x), dtype=f64));
    @rounds(add(%i, 1), %0, update_slice(%t, exp(%0), %i), %x)
  } else {
    (%s, %t)
  }
}
fn @main(%x: Tensor[(8), f32], %c: Tensor[(), bool]) {
  %0 = cast(%x, dtype=f64);
  %1 = @rounds(0, %0, broadcast_to(reshape(%0, newshape=[1, 8]), shape=[5, 8]), %x);
  (%1.0, %1.1, nn.relu(%x), if %c { %0 } else { %1.0 })
}
RELAY

sorts=-fno-pass=network # a sort is one thread's on a device
for model in chosen sides loop doubles; do
    pass=-fno-pass=plan_devices target=$3 # the text says it
    [ $model = chosen ] && pass=$sorts
    [ $model = doubles ] && pass=-O0 target="$3 -supports_float64=0"
    "$tvmcc" run $model.relay --fill-mode=random -mcpu=x86-64 --outputs $model.npz >log 2>&1 || bad $model
    if ! "$tvmcc" run $model.relay --fill-mode=random --target="$target" $pass --expect $model.npz >log 2>&1; then
        grep -q "cannot run: no " log && { echo "SKIP (no device)"; exit 77; }
        bad "$model on $target"
    fi
    grep -q agrees log || bad "$model on $target"
    "$tvmcc" compile $model.relay --target="$target" $pass --emit=plan -o - >plan || exit 1
    grep -q "^here " plan || bad "$model: nothing is the host's"
    grep -q " launch @" plan || bad "$model: nothing is the device's"
done
target=$3
"$tvmcc" compile chosen.relay --target="$target" $sorts --emit=so -o libchosen.so || exit 1
"$tvmcc" run ./libchosen.so --fill-mode=random --expect chosen.npz >log 2>&1 || bad "a shared library"
"$tvmcc" profile ./libchosen.so --repeat 1 >log 2>&1 || bad "profile"
grep -q "^timer: device timers, of the host's kernels the host clock$" log || bad "timers"
"$tvmcc" profile loop.relay --target="$target" -fno-pass=plan_devices --repeat 2 >log 2>&1 || bad "profile of a loop"
awk '$NF ~ /^multiply_add/ && $3 > 0 { n++ } END { exit n != 1 }' log || bad "rounds of a loop"
"$tvmcc" compile chosen.relay --target="$target" $sorts --target="llvm -mcpu=x86-64" --entry=any --emit=so -o libany.so || exit 1
"$tvmcc" run ./libany.so --fill-mode=random --expect chosen.npz >log 2>&1 || bad "several targets"
"$tvmcc" compile chosen.relay --target="$target" $sorts --explain -o chosen.o >log 2>&1 || bad "explain"
grep -q "kernel on the host: .* on the device, without copies" log || bad "explain"
"$tvmcc" compile chosen.relay --target="$target" $sorts -fno-pass=plan_devices --emit=plan -o - >plan || exit 1
grep -q "^here " plan && bad "-fno-pass=plan_devices"
echo "all as expected"
