#!/bin/bash
# c_products.sh <tvmcc> <source> <work folder>
#
# Models as C wherever objects may stand: archives in one step and packed from files, with their refusals; run from
# the file and from the archive; new weights without another build; a manifest, built, verified and built
# again; the same bytes under other conditions.
set -e
tvmcc=$1 source=$2 work=$3
. "$(dirname "$0")/../lib.sh"

"$(dirname "$0")/../fresh" "$work" && mkdir -p "$work/new" && cd "$work" || exit 2
export TVMCC_CACHE_DIR=$work/cache
cp "$source"/examples/digits/{digits.onnx,inputs.npz,outputs.npz} .
other_weights digits.onnx new/digits.onnx
golden="--inputs inputs.npz --expect outputs.npz"

# ---- archives: made at once, packed, read, run, refitted ------------------------------------------
for weights in embed file; do
    quiet "$tvmcc" digits.onnx --target=c -fweights=$weights -o old.tar
    quiet "$tvmcc" new/digits.onnx --target=c -fweights=$weights -o new/net.tar
    quiet "$tvmcc" digits.onnx --target=c -fweights=$weights --emit=c,json -o digits
    files="digits.c digits.h digits.json"
    [ $weights = embed ] || files="$files digits.weights"
    quiet "$tvmcc" pack $files -o packed.tar --verify
    [ $weights = file ] || rm -f digits.weights
    tar tf packed.tar >members
    for member in src/digits.c include/digits.h share/digits/digits.json lib/pkgconfig/digits.pc; do
        grep -q "^digits/$member$" members || die "no $member in the archive"
    done
    for product in digits.c old.tar packed.tar; do
        quiet "$tvmcc" verify $product $golden
    done
    quiet "$tvmcc" audit packed.tar
    quiet "$tvmcc" inspect packed.tar
    refused 1 "weights   changed" "$tvmcc" diff old.tar new/net.tar
    grep -q "~ src" log && die "diff: the C file as a file that tells nothing of the models"
    quiet "$tvmcc" refit old.tar new/digits.onnx -o refitted.tar
    cmp refitted.tar new/net.tar || die "$weights: other bytes than a build"
done
quiet "$tvmcc" unpack new/net.tar -C folder
quiet "$tvmcc" verify digits.c $golden -mtriple=x86_64-linux-gnu
[ "$("$tvmcc" run folder/digits 2>&1 | grep -c "^digit: f32\[1,10\]")" = 1 ] || die "an unpacked archive"

# Text says what its compiler must be told; only that of such options is taken.
if [ "$(uname -m)" = x86_64 ] && grep -q avx2 /proc/cpuinfo; then
    quiet "$tvmcc" digits.onnx --target="c -mtriple=x86_64-linux-gnu -mcpu=haswell -mattr=+avx2,+fma" -o wide.c
    grep -q "cc -std=c99 -O2 -mavx2 -mfma -c <this file>" wide.c || die "the head of the file"
    quiet "$tvmcc" verify wide.c $golden
    sed -i '0,/-mfma/s//-mfma -o stolen/' wide.c
    quiet "$tvmcc" verify wide.c $golden
    [ ! -e stolen ] || die "an option from the file"
    quiet "$tvmcc" run digits.onnx --target="c -mtriple=x86_64-linux-gnu -mcpu=haswell -mattr=+avx2,+fma" $golden
fi

# ---- TVM's layout, and what text is not ---------------------------------------------------------------
quiet "$tvmcc" digits.onnx --target=c --layout=mlf -o mlf.tar
tar tf mlf.tar | grep -q "^codegen/host/src/lib0.c$" || die "MLF without the C file"
refused 1 "needs the shared library" "$tvmcc" digits.onnx --target=c --layout=tvmc -o x.tar
refused 2 "no machine code is made" "$tvmcc" digits.onnx --target=c --max-code=64KiB -o x.tar
refused 1 "has no code yet" "$tvmcc" audit digits.c
refused 3 "this is the model 'digits' as C" "$tvmcc" inspect digits.c
quiet "$tvmcc" new/digits.onnx --target=c -o foreign.c --entry=digits
refused 1 "belongs to none of the models" "$tvmcc" pack digits.json digits.h foreign.c -o x.tar
refused 1 "no part of an archive" "$tvmcc" pack digits.json digits.h "$source/driver/main.c" -o x.tar
refused 1 "the C file of 'digits' for 'any' is not there" "$tvmcc" pack digits.json digits.h digits.weights -o x.tar
quiet "$tvmcc" digits.onnx --target=c -fweights=file -o other.c --entry=digits
refused 1 "does not include 'digits.h'" "$tvmcc" pack digits.json digits.h other.c digits.weights -o x.tar
echo "int main(void) { return 0; }" >main.c
refused 1 "no model that '--target=c' wrote" "$tvmcc" run main.c

# ---- a manifest -----------------------------------------------------------------------------------------
command -v ninja >/dev/null || exit 0
cat >manifest.yaml <<'END'
schema: tvm-manifest/1
project: {name: vision, version: "1.4.0"}
hosts: {any: any, here: {triple: x86_64-linux-gnu}}
targets: {text: {kind: c}, code: {kind: llvm}}
pairs: {text: {host: any, target: text}, code: {host: here, target: code}}
models:
  digits:
    source: digits.onnx
    pairs: [text, code]
  apart:
    source: digits.onnx
    pairs: [text]
    product: {weights: file, shards: 3}
    verify: {inputs: inputs.npz, outputs: outputs.npz}
bundles:
  release: {models: [digits, apart], pairs: [text]}
END
quiet "$tvmcc" build -C out all verify
quiet "$tvmcc" build -C out all
grep -q "no work to do" log || { cat log; die "a second build has work to do"; }
quiet "$tvmcc" unpack out/vision-1.4.0-release-text.tar.zst -C folder
(cd folder/vision-1.4.0-release-text && sha256sum -c --quiet SHA256SUMS) || die "SHA256SUMS"
quiet "$tvmcc" digits.onnx --target=c -o at-once.c --entry=digits
sed 's/at-once.h/digits.h/' at-once.c | cmp - out/text/digits/digits.c || die "other text than in one step"
quiet "$tvmcc" repro -m manifest.yaml
