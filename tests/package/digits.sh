#!/bin/bash
# digits.sh <cmake> <build of tvmcc> <source> <work folder>
#
# examples/digits with the real compiler, as a user would: install, configure, build, run, verify;
# then the other products of the same model, and that equal input gives equal bytes.
set -e
cmake=$1 build=$2 source=$3 work=$4
. "$(dirname "$0")/../lib.sh"

"$(dirname "$0")/../fresh" "$work" && cd "$work" || exit 2
export CTEST_OUTPUT_ON_FAILURE=1
quiet "$cmake" --install "$build" --prefix "$work/prefix"
tvmcc=$work/prefix/bin/tvmcc

# The example: CMake project, all ten pictures right, the product verified.
cp -r "$source/examples/digits" example
quiet "$cmake" -S example -B example/build -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release
quiet "$cmake" --build example/build
(cd example/build && quiet ctest)
quiet "$cmake" --build example/build
grep -q "no work to do" log || { cat log; die "a second build has work to do"; }

# Same input, same bytes: another folder, umask, time zone and number of jobs.
mkdir one two
(cd one && cp ../example/digits.onnx . && quiet "$tvmcc" digits.onnx --emit=o,h,json,a,tar.gz,tar.zst,zip -o digits -j1)
(cd two && umask 077 && cp ../example/digits.onnx . &&
    TZ=Asia/Tokyo LC_ALL=tr_TR.UTF-8 quiet "$tvmcc" "$PWD/digits.onnx" --emit=o,h,json,a,tar.gz,tar.zst,zip -o digits -j2)
for file in one/digits.*; do
    cmp "$file" "two/${file#one/}" || die "$file differs"
done

# An archive is read by ordinary tools and by the compiler.
mkdir unpacked && tar xzf one/digits.tar.gz -C unpacked
(cd unpacked/* && quiet sha256sum -c SHA256SUMS)
quiet "$tvmcc" example/digits.onnx -o digits.tar
for product in digits.tar unpacked; do
    quiet "$tvmcc" run "$product" --inputs example/inputs.npz --expect example/outputs.npz --rtol 1e-4
done

# Weights in a file, and a shared library.
quiet "$tvmcc" example/digits.onnx -fweights=file -o digits_file.tar
quiet "$tvmcc" run digits_file.tar --inputs example/inputs.npz --expect example/outputs.npz --rtol 1e-4

# Another machine: the demo linked for aarch64, run by an emulator.
if command -v qemu-aarch64-static clang-19 ld.lld-19 >/dev/null && [ -d /usr/aarch64-linux-gnu/lib ]; then
    mkdir arm
    quiet "$tvmcc" example/digits.onnx --target="llvm -mtriple=aarch64-linux-gnu" --emit=o,h -o arm/digits
    quiet clang-19 --target=aarch64-linux-gnu -fuse-ld=lld -static -O1 -D_GNU_SOURCE -Iarm -Iprefix/include \
        "-DSAMPLES=\"$work/example/samples\"" "-DOBJECT=\"arm/digits.o\"" \
        example/main.c arm/digits.o "$source/runtime/thread.c" -o arm/demo -lm -lpthread
    quiet qemu-aarch64-static arm/demo
else
    echo "SKIP (no aarch64 emulator or C library)"
fi
cd / && rm -rf "$work"
