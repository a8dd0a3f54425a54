#!/bin/bash
# objects.sh TVMCC SOURCE
#
# An object of the example for every kind of machine: it is made (so its audit passed: what it
# exports, writes and calls), asks for no more than it should, and is the same when made again.
set -u
tvmcc=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
die() { echo "FAILED: $*"; failed=1; }
nm=$(command -v llvm-nm-19 llvm-nm | head -1)

object() { # triple, allowed undefined symbols (a pattern of egrep), options
    local triple=$1 allowed=$2 file=$work/$1.o
    shift 2
    if ! "$tvmcc" -c "$source/examples/digits/digits.onnx" -mtriple="$triple" "$@" -o "$file" \
        -Wno-baseline-cpu 2>"$work/log"; then
        die "$triple $*: $(cat "$work/log")"
        return
    fi
    "$tvmcc" -c "$source/examples/digits/digits.onnx" -mtriple="$triple" "$@" -o "$work/again.o" \
        -Wno-baseline-cpu -j1
    cmp -s "$file" "$work/again.o" || die "$triple $*: other bytes the second time"
    [ -n "$nm" ] || return
    local undefined
    undefined=$("$nm" -u "$file" | awk '{ print $2 }' | grep -vxE "$allowed" | tr '\n' ' ')
    [ -z "$undefined" ] || die "$triple $*: undefined $undefined"
    "$nm" "$file" | grep -qE ' [RDTS] _?digits_weights$' || die "$triple $*: no weights in it"
}

soft='__aeabi_f(add|sub|mul|div|cmp..)|__aeabi_uidiv'
object x86_64-linux-gnu 'mem(cpy|set)'
for level in 2 3 4; do object x86_64-linux-gnu 'mem(cpy|set)' -mcpu=x86-64-v$level; done
object aarch64-linux-gnu ''
object aarch64-linux-gnu '' -mcpu=cortex-a53
object aarch64-linux-android29 ''
object armv7a-linux-gnueabihf __aeabi_uidiv
object armv7a-linux-gnueabihf '' -mcpu=cortex-a7
object armv7a-linux-gnueabi __aeabi_uidiv
object arm-linux-gnueabi "$soft"
object armv7a-linux-androideabi21 __aeabi_uidiv
object riscv64-linux-gnu ''
object riscv64-linux-gnu '' -mcpu=spacemit-x60
object wasm32-wasi '__stack_pointer|__indirect_function_table'
object wasm32-unknown-unknown '__stack_pointer|__indirect_function_table' -mattr=+simd128
object arm64-apple-macos13 ''
object x86_64-apple-macos13 ''
object x86_64-pc-windows-msvc _fltused
object aarch64-pc-windows-msvc ''
object thumbv7em-none-eabihf '' -mcpu=cortex-m4 -fno-libm -fthreads=none
object thumbv7em-none-eabi '' -mcpu=cortex-m7 -fno-libm -fthreads=none
object thumbv7em-none-eabi "$soft" -fno-libm -fthreads=none
object thumbv6m-none-eabi "$soft" -fno-libm -fthreads=none

# NEON is there where the schedules reckon with it.
for options in "-mtriple=armv7a-linux-gnueabihf" "-mtriple=armv7a-linux-androideabi21" \
    "-mtriple=armv7a-linux-gnueabihf -mcpu=cortex-a7" "-mtriple=armv8a-linux-gnueabihf"; do
    # shellcheck disable=SC2086
    "$tvmcc" -S "$source/examples/digits/digits.onnx" $options -o "$work/digits.s" -Wno-baseline-cpu
    grep -qE 'v(mla|fma|mul)\.f32[[:space:]]q' "$work/digits.s" || die "$options: no vectors"
done

# What needs libm without a polynomial is named together with its kernel.
cat >"$work/sine.relay" <<'END'
fn @main(%x: Tensor[(4), f32]) { sin(%x) }
END
"$tvmcc" -c "$work/sine.relay" -x relay -fno-libm -mtriple=thumbv7em-none-eabi -o "$work/sine.o" \
    -Wno-baseline-cpu 2>"$work/log" && die "sin without libm was accepted"
grep -q "without libm, @sin.* has nothing for 'sin' of f32 \[E0601\]" "$work/log" || die "$(cat "$work/log")"
exit $failed
