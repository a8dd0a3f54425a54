#!/bin/bash
# verify.sh TVMCC SOURCE
#
# `tvmcc verify` and `tvmcc run` on every kind of product: here in a program, and for every machine
# whose C library and emulator are installed; what is said when something differs or is missing.
set -u
tvmcc=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
mkdir tmp
export TMPDIR=$work/tmp
unset TVMCC_EMULATOR
digits=$source/examples/digits
golden=(--inputs "$digits/inputs.npz" --expect "$digits/outputs.npz" --rtol 1e-4)
failed=0
die() { echo "FAILED: $*"; failed=1; }
status() { # expected status, a pattern of what is said, a command
    local want=$1 pattern=$2 got
    shift 2
    "$@" >log 2>&1
    got=$?
    [ $got = "$want" ] || die "status $got and not $want: $* $(cat log)"
    grep -qE "$pattern" log || die "$* does not say '$pattern': $(cat log)"
}
compile() { "$tvmcc" "$digits/digits.onnx" -Wno-baseline-cpu "$@" || die "compile $*"; }

machine() { # triple, suffixes of products
    local triple=$1 suffix
    shift
    for suffix in "$@"; do
        rm -rf digits digits.*
        compile -mtriple="$triple" -o digits.$suffix
        if [ $suffix = tar ] && tar xf digits.tar; then
            status 0 "'digit' agrees" "$tvmcc" verify digits "${golden[@]}"
        fi
        status 0 "'digit' agrees" "$tvmcc" verify digits.$suffix "${golden[@]}"
    done
    echo "ok   $triple: $*"
}
skip() { echo "SKIP ($1: no $2)"; }

machine "$("$tvmcc" -dumpmachine)" o a so tar tar.zst
for row in aarch64-linux-gnu:aarch64 arm-linux-gnueabihf:arm arm-linux-gnueabi:arm riscv64-linux-gnu:riscv64; do
    triple=${row%:*} qemu=qemu-${row#*:}-static
    if [ ! -e /usr/$triple/lib/libc.a ]; then skip $triple "C library"; continue; fi
    if ! command -v $qemu >/dev/null; then skip $triple $qemu; continue; fi
    case $triple in
    aarch64*) machine $triple a so tar.zst && machine aarch64-linux-android29 o tar ;;
    *) machine $triple so ;;
    esac
done
if [ -e /usr/include/wasm32-wasi/stdio.h ] && command -v node >/dev/null; then machine wasm32-wasi tar; else
    skip wasm32-wasi "wasi-libc or node"; fi

# Weights apart, under a given emulator and compiler; a model file, compiled and run at once.
rm -rf digits*
compile -fweights=file -c -o apart.o --entry=digits
cat >emulator <<'END'
#!/bin/sh
echo "$1" >>emulated
shift
exec "$@"
END
chmod +x emulator
status 0 "'digit' agrees" env TVMCC_EMULATOR="$work/emulator a" "$tvmcc" verify apart.o "${golden[@]}"
status 0 "'digit' agrees" "$tvmcc" verify apart.o "${golden[@]}" --emulator "$work/emulator b" --cc "cc -g"
[ "$(sort -u emulated | tr '\n' ' ')" = "a b " ] || die "the emulators that were called: $(cat emulated)"
status 0 '^ +[0-9]+ ' "$tvmcc" run apart.o --inputs "$digits/inputs.npz" --print-top 3
rm apart.weights
status 1 "apart.o: error: its weights file is not beside it \[E0901\]" "$tvmcc" verify apart.o "${golden[@]}"
status 0 "'digit' agrees" "$tvmcc" verify "$digits/digits.onnx" "${golden[@]}"

# What differs is named with its place; what is missing with the package that has it.
compile -o digits.o
compile -o digits.so
for product in digits.o digits.so; do
    status 7 "output 'digit', f32\[1,10\], differs by .* at \[0,[0-9]\]: it is .*, expected is " \
        "$tvmcc" verify $product --expect "$digits/outputs.npz" --inputs "$digits/inputs.npz" --rtol 1e-30
done
status 3 "does not run in this process and cannot be measured" "$tvmcc" bench digits.o
status 2 "inputs and --expect are needed" "$tvmcc" verify digits.o
status 9 "no compiler and C library for .*\[E0801\]" env PATH=/nowhere "$tvmcc" verify digits.o "${golden[@]}"
compile -c -mtriple=aarch64-linux-gnu -o arm.o
status 9 "apt-get install clang-19 lld-19 libc6-dev-arm64-cross libgcc-12-dev-arm64-cross" \
    env PATH=/nowhere "$tvmcc" verify arm.o "${golden[@]}"
status 9 "could not link" "$tvmcc" verify arm.o "${golden[@]}" --cc cc
printf 'int net_other(void) { return 1; }\n' >other.c
if command -v cc >/dev/null && cc -c other.c; then
    status 1 "other.o: error: no model is in it \[E0901\]" "$tvmcc" verify other.o "${golden[@]}"
fi
if [ -e /usr/aarch64-linux-gnu/lib/libc.a ] && command -v clang-19 ld.lld-19 >/dev/null; then
    mkdir bin
    for tool in clang-19 ld.lld-19; do ln -s "$(command -v $tool)" bin/$tool; done
    status 9 "apt-get install qemu-user-static" env PATH="$work/bin" "$tvmcc" verify arm.o "${golden[@]}"
fi
if command -v ld.lld-19 ld.lld >/dev/null; then
    compile -mtriple=aarch64-linux-android29 -o android.so
    status 3 "runs on Android only" "$tvmcc" verify android.so "${golden[@]}"
fi
[ -z "$(ls -A tmp)" ] || die "left behind: $(ls -A tmp)"
exit $failed
