#!/bin/bash
# runtime.sh TVMCC SOURCE
#
# The runtime library and a threaded program for every machine whose C library and emulator are
# installed: the digits demo with a pool of two threads, all pictures right.
set -u
tvmcc=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
failed=0
die() { echo "FAILED: $*"; failed=1; }

for triple in aarch64-linux-gnu arm-linux-gnueabihf arm-linux-gnueabi riscv64-linux-gnu; do
    if ! command -v clang-19 ld.lld-19 qemu-${triple%%-*}-static >/dev/null || [ ! -e /usr/$triple/lib/libc.a ]; then
        echo "SKIP ($triple: no compiler, C library or emulator)"
        continue
    fi
    atomic=
    [ $triple != arm-linux-gnueabi ] || atomic="-latomic -Wno-atomic-alignment"
    mkdir $triple && "$tvmcc" -c "$source/examples/digits/digits.onnx" -mtriple=$triple -o $triple/digits.o \
        -Wno-baseline-cpu || die "$triple: compile"
    cc=(clang-19 --target=$triple -std=c11 -O1 -Wall -Wextra -D_GNU_SOURCE -I"$source/include" -I$triple)
    for file in "$source"/runtime/*.c "$source"/runtime/device/*.c; do
        object=$triple/$(basename "$file" .c).o
        # shellcheck disable=SC2086
        "${cc[@]}" ${atomic#-latomic} -Werror -c "$file" -o "$object" || die "$triple: $file"
    done
    # shellcheck disable=SC2086
    "${cc[@]}" "-DSAMPLES=\"$source/examples/digits/samples\"" "-DOBJECT=\"$triple/digits.o\"" -static -fuse-ld=lld \
        "$source/examples/digits/main.c" $triple/digits.o $triple/thread.o -o $triple/demo -lm -lpthread $atomic ||
        die "$triple: link"
    qemu-${triple%%-*}-static $triple/demo >log || die "$triple: $(cat log)"
    grep -q "with 2 threads" log && echo "ok   $triple"
done
exit $failed
