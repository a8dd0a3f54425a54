#!/bin/bash
# Products ask which CPU runs them (docs/abi.md): code for newer ones gives TVMCC_E_CPU on older ones, under
# qemu, unless it was told not to ask.
#
#     cpu.sh TVMCC SOURCE WORK
tvmcc=$1 root=$2 model=$2/examples/digits/digits.onnx
. "$(dirname "$0")/../lib.sh"
enter "$3"
CC=${CC:-cc}

# build NAME OPTION..
build() {
    name=$1
    shift
    quiet "$tvmcc" "$model" -mtriple=x86_64-linux-gnu "$@" --entry=digits --emit=o,h -o digits
    [ "$(uname -m)" != x86_64 ] || $CC -O1 -static -I. -I"$root/include" "$root/tests/product/cpu.c" \
        digits.o -lm -o "$name" || die "$name: cc"
}
arena() {
    sed -n 's/^#define DIGITS_ARENA_SHARED_BYTES //p' digits.h
}

echo "the code itself"
build baseline
bytes=$(arena)
nm digits.o | grep -q digits__which && die "the baseline asks"
build v2 -mcpu=x86-64-v2
nm digits.o | grep -q digits__which || die "x86-64-v2 does not ask"
[ "$(arena)" = "$((bytes + 64))" ] || die "no place for the note in an arena of $(arena), without $bytes"
quiet "$tvmcc" audit digits.o --entry=digits
build unasked -mcpu=x86-64-v3 -fno-cpu-check
nm digits.o | grep -q digits__which && die "-fno-cpu-check asks"
"$tvmcc" "$model" -mtriple=aarch64-linux-gnu -mattr=+dotprod --entry=digits -c -o arm.o || die "aarch64"
nm arm.o | grep -q digits__which && die "aarch64 asks"
"$tvmcc" "$model" -mtriple=x86_64-pc-windows-msvc -mcpu=haswell --entry=digits --emit=s -o win.s ||
    die "windows"
# What runs before the answer is code for any CPU: 128-bit registers, nothing in VEX's encoding.
for f in digits_run digits_run_ex digits_info digits__which digits__noted; do
    sed -n "/^$f:/,/\.Lfunc_end\|seh_endproc\|^[a-zA-Z_][a-z_A-Z0-9.]*:/{/^$f:/p;/^[[:space:]]v[a-z]/p;/ymm/p}" win.s >body
    [ "$(cat body)" = "$f:" ] || { cat body; die "$f is for newer CPUs, or not there"; }
done

[ "$(uname -m)" = x86_64 ] || { echo "SKIP (runs on x86-64)"; exit 0; }
build v3 -mcpu=x86-64-v3
build haswell -mcpu=haswell
build vnni -mcpu=cascadelake
build attr -mattr=+avx2,+fma
build native -mcpu=native
[ "$(./native)" = "0 0 0 ok" ] || die "this machine is not what -mcpu=native compiles for: $(./native)"
[ "$(./baseline)" = "0 0 0 ok" ] || die "baseline: $(./baseline)"
if ! grep -q avx512fp16 /proc/cpuinfo; then
    "$tvmcc" "$model" -mcpu=sapphirerapids --entry=digits --emit=so -o newer.so || die "newer.so"
    "$tvmcc" run newer.so -i "$root/examples/digits/inputs.npz" 2>err && die "newer.so runs"
    grep -q "this CPU has not all that 'digits' was compiled for: .*sapphirerapids" err ||
        { cat err; die "no word about the CPU"; }
fi
qemu=$(command -v qemu-x86_64-static || command -v qemu-x86_64) || {
    echo "all agree; SKIP (no qemu-x86_64 to be other CPUs)"
    exit 0
}
for row in baseline:core2duo:0 v2:core2duo:-6 v2:Nehalem:0 v3:Nehalem:-6 v3:SandyBridge:-6 v3:Haswell:0 \
    v3:Haswell,-fma:-6 v3:Haswell,-bmi2:-6 v3:Haswell,-xsave:-6 haswell:qemu64:-6 haswell:max:0 \
    attr:Haswell,-bmi2:0 attr:Haswell,-avx2:-6 vnni:Haswell:-6; do
    product=${row%%:*} code=${row##*:} cpu=${row#*:}
    out=$("$qemu" -cpu "${cpu%:*}" "./$product" 2>err)
    [ "$out" = "$code $code $code ok" ] || { cat err; die "$row: $out"; }
done
# Without the question it is the CPU that refuses.
"$qemu" -cpu Nehalem ./unasked >log 2>&1 && die "unasked runs on a Nehalem"
grep -q 'Illegal instruction\|signal 4' log || { cat log; die "unasked"; }
echo "all agree"
