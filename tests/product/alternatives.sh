#!/bin/bash
# CPU variants and shape buckets (docs/abi.md): every level chosen, every bucket against recorded
# values, weights shared, the same bytes in one command and in steps.
#
#     alternatives.sh TVMCC SOURCE WORK
tvmcc=$1 data=$2/tests/product/data root=$2
. "$(dirname "$0")/../lib.sh"
enter "$3"
CC=${CC:-cc}

echo "what cannot be"
refused 2 "no CPU variant" "$tvmcc" "$data/rows.onnx" --cpu-variants=haswell -o x.o
refused 2 "there twice" "$tvmcc" "$data/rows.onnx" --cpu-variants=x86-64-v2,x86-64-v2 -o x.o
refused 2 "names the processors" "$tvmcc" "$data/rows.onnx" --cpu-variants=x86-64-v2 -mcpu=haswell -o x.o
refused 2 "unknown CPU 'x86-64-v2' for aarch64" "$tvmcc" "$data/rows.onnx" --cpu-variants=x86-64-v2 \
    -mtriple=aarch64-linux-gnu -o x.o
refused 2 "has buckets twice" "$tvmcc" "$data/rows.onnx" --shape-buckets=N=1 --shape-buckets=N=2 -o x.o
refused 2 "is there twice" "$tvmcc" "$data/rows.onnx" --shape-buckets=N=4,4 -o x.o
refused 2 "a dimension and its values" "$tvmcc" "$data/rows.onnx" --shape-buckets=N=0 -o x.o
refused 1 "'M'" "$tvmcc" "$data/rows.onnx" --shape-buckets=M=1,2 -o x.o

host=$("$tvmcc" -dumpmachine)
echo "buckets of one CPU ($host)"
# Tiles, and with them how weights lie, differ by row counts: on every machine two of the plans share all that they have.
shares() { # share of what the plans would take otherwise, options
    quiet "$tvmcc" "$data/rows.onnx" --shape-buckets=N=8,1,4 --entry=rows -v "${@:2}"
    grep -E "weights of 3 plans" log || die "no word about weights"
    shared=$(sed -n 's/.*weights of 3 plans: \([0-9]*\) bytes, \([0-9]*\) .*/\1 \2/p' log)
    [ "$((${shared% *}))" -lt "$((${shared#* } $1))" ] || die "too little is shared: $shared"
}
shares "/ 2" -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3 -o v3.o
shares "* 2 / 3" -mcpu=native -o rows.o
$CC -I. -I"$root/include" "$root/tests/product/rows.c" rows.o -lm -o rows || die "rows.c"
./rows "$data/rows.f32" "" || die "buckets: $?"
quiet "$tvmcc" "$data/rows.onnx" --shape-buckets=N=1,4,8 -mcpu=native --entry=rows -o again.o
same rows.o again.o
quiet "$tvmcc" "$data/rows.onnx" --shape-buckets=N=1,4,8 -mcpu=native --entry=rows -o rows.so -fweights=file
quiet "$tvmcc" "$data/rows.onnx" --shape-buckets=N=1,4,8 -mcpu=native --entry=rows -o rows.tar
for product in rows.so rows.tar; do
    for n in 1 4 3; do
        quiet "$tvmcc" run $product -i "$data/rows$n.in.npz" --expect="$data/rows$n.out.npz" --rtol=1e-5
    done
done
refused 1 "no bucket holds N=18" "$tvmcc" run rows.tar -i "$data/rows18.in.npz"
refused 1 "of the model is f32[4,3,10,12], its value here is u8[2,18,20,3]" "$tvmcc" run rows.tar -i "$data/bgr.in.npz"

quiet "$tvmcc" inspect rows.tar
grep -qF "bucket 1: N=4, arena" log || die "inspect: $(cat log)"
quiet "$tvmcc" inspect rows.tar --json
grep -qF '"buckets": [{"N": 1}, {"N": 4}, {"N": 8}]' log || die "inspect: $(cat log)"

# A transformer: what stands behind the tokens does not change what stands at them, so 48 of them may
# run in a bucket of 64.
models=$root/../shared/models/onnx
if [ -d "$models/stories260k-prefill" ]; then
    echo "buckets of a transformer"
    quiet "$tvmcc" "$models/stories260k-prefill/model.onnx" --shape-buckets=T=16,40,64 -mcpu=native \
        --entry=stories -o stories.tar
    quiet "$tvmcc" run stories.tar -i "$models/stories260k-prefill/inputs.npz" \
        --expect="$models/stories260k-prefill/outputs.npz" --rtol=1e-5
else
    echo "SKIP (no ../shared/models/onnx/stories260k-prefill)"
fi

for triple in aarch64-linux-gnu arm-linux-gnueabihf; do
    qemu=qemu-${triple%%-*}-static
    if ! command -v clang-19 ld.lld-19 "$qemu" >/dev/null || [ ! -e /usr/$triple/lib/libc.a ]; then
        echo "SKIP (buckets on $triple: no compiler, C library or emulator)"
        continue
    fi
    echo "buckets on $triple"
    mkdir -p $triple
    quiet "$tvmcc" "$data/rows.onnx" --shape-buckets=N=1,4,8 -mtriple=$triple --entry=rows -o $triple/rows.o
    clang-19 --target=$triple -static -fuse-ld=lld -I$triple -I"$root/include" \
        "$root/tests/product/rows.c" $triple/rows.o -lm -o $triple/rows || die "$triple: rows.c"
    $qemu $triple/rows "$data/rows.f32" "" || die "$triple: $?"
    for n in 1 3; do
        quiet "$tvmcc" verify $triple/rows.o -i "$data/rows$n.in.npz" --expect="$data/rows$n.out.npz" --rtol=1e-5
    done
done

set -- --cpu-variants=x86-64-v4,x86-64-v2,x86-64-v3 -mtriple=x86_64-linux-gnu
echo "all of it in steps"
for more in "" "--shape-buckets=N=1,4,8"; do
    [ -n "$more" ] || more=--dim=N=8
    quiet "$tvmcc" -c "$data/rows.onnx" "$@" "$more" --entry=rows -o one.o
    quiet "$tvmcc" "$data/rows.onnx" "$@" "$more" --entry=rows --emit=plan,id,weights -o S
    quiet "$tvmcc" S.plan --emit=plan -o again.plan
    same S.plan again.plan
    for i in 0 1 2; do quiet "$tvmcc" S.plan --shard=$i/3 -c -o net.$i.o; done
    quiet "$tvmcc" S.plan S.id --shard=host -c -o net.host.o
    quiet "$tvmcc" S.plan S.weights --shard=weights -c -o net.weights.o
    quiet "$tvmcc" net.0.o net.1.o net.2.o net.host.o net.weights.o -o librows.a
    quiet "$tvmcc" S.plan --shard=0/1 -c -o net.0.o
    quiet "$tvmcc" net.0.o net.host.o net.weights.o -o two.o
    same one.o two.o
    quiet "$tvmcc" S.plan S.id --emit=h,json -o two
    same one.h two.h
done
grep -q '"alternatives": \[' two.json || die "no alternatives in the metadata"
sed '/^tvmcc plan 1/,$!d' S.plan | awk '/^tvmcc plan 1/ { n++ } n < 9' >T.plan
refused 4 "a bucket of some CPU is missing" "$tvmcc" T.plan --emit=plan -o x.plan
sed 's/^entry "rows"/entry "other"/' T.plan | cat S.plan - >U.plan
refused 4 "different products" "$tvmcc" U.plan --emit=plan -o x.plan

[ "$(uname -m)" = x86_64 ] || { echo "all agree; SKIP (variants run on x86-64)"; exit 0; }
echo "variants, each on a CPU of its level"
cp two.o rows.o
cp two.h rows.h
$CC -I. -I"$root/include" "$root/tests/product/rows.c" rows.o -lm -o rows || die "rows.c"
if grep -q avx512vl /proc/cpuinfo; then
    ./rows "$data/rows.f32" x86-64-v4 || die "x86-64-v4: $?"
elif grep -q avx2 /proc/cpuinfo; then
    ./rows "$data/rows.f32" x86-64-v3 || die "x86-64-v3: $?"
fi
$CC -I. -I"$root/include" "$root/tests/product/rows.c" librows.a -lm -o lib || die "librows.a"
./lib "$data/rows.f32" "" || die "librows.a: $?"
qemu=$(command -v qemu-x86_64-static || command -v qemu-x86_64) || {
    echo "all agree; SKIP (no qemu-x86_64 to force the other levels)"
    exit 0
}
for pair in Nehalem:x86-64-v2 Haswell:x86-64-v3 core2duo:none; do
    "$qemu" -cpu "${pair%:*}" ./rows "$data/rows.f32" "${pair#*:}" 2>err ||
        { cat err; die "$pair: $?"; }
done
echo "all agree"
