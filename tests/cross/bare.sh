#!/bin/bash
# bare.sh TVMCC SOURCE
#
# examples/bare-metal on emulated Cortex-M4 and M7 boards, floats passed both ways: all ten digits
# right, nothing of libm or of an operating system in the program, figures of its size.  The model as
# an object, and as C that clang compiles without any C library.
set -u
tvmcc=$(realpath "$1") source=$(realpath "$2")
for tool in qemu-system-arm clang-19 ld.lld-19 llvm-nm-19 make; do
    command -v $tool >/dev/null || { echo "SKIP (no $tool)"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$source/examples/bare-metal" "$work/app" && cd "$work/app" || exit 2
failed=0
die() { echo "FAILED: $*"; failed=1; }

board() { # cpu, float ABI, machine, form of the model
    local options=(TVMCC="$tvmcc -Wno-baseline-cpu" INCLUDE="$source/include" SAMPLES="$source/examples/digits/samples"
        CPU=$1 FLOAT=$2 MACHINE=$3 MODEL=$4)
    make -s clean
    if ! timeout 60 make -s "${options[@]}" run >log 2>&1; then
        die "$*: $(cat log)"
        return
    fi
    for i in 0 1 2 3 4 5 6 7 8 9; do grep -q "^picture $i, sure by" log || die "$*: no picture $i: $(cat log)"; done
    grep -q "^all right$" log || die "$*: $(cat log)"
    llvm-nm-19 -u digits.o | awk '{ print $2 }' | grep -vxE 'mem(cpy|set|move)' && die "$*: undefined symbols"
    llvm-nm-19 digits.o | grep -E '(__meet|__phases|__region)' && die "$*: code for threads"
    echo "ok   $*: $(awk '/digits.o/ { printf "object %d bytes", $4 } /app.elf/ { printf ", program %d and %d of memory", $1 + $2, $3 }' log)"
}

mkdir -p ../digits && cp "$source/examples/digits/digits.onnx" ../digits
board cortex-m4 hard mps2-an386 o
board cortex-m4 softfp mps2-an386 o
board cortex-m7 hard mps2-an500 o
board cortex-m7 softfp mps2-an500 o
board cortex-m4 hard mps2-an386 c
board cortex-m7 softfp mps2-an500 c
exit $failed
