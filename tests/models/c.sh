#!/usr/bin/env bash
# Real models and recorded graphs as C (`--target=c`): through the compilers of this machine, and for
# other machines under emulators.
#
#     c.sh TVMCC [TRIPLE]...
#
# The models are those of ../shared/models/onnx (skipped, saying so, where that is absent), the quantized
# ones and the recorded graphs those of the tests.  A triple whose C library or emulator is not installed
# is skipped.
set -u
tvmcc=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- aarch64-linux-gnu arm-linux-gnueabihf arm-linux-gnueabi riscv64-linux-gnu wasm32-wasi
root=$(cd "$(dirname "$0")/../.." && pwd)
models=$root/../shared/models/onnx quantized=$root/tests/models/quantized
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work
passed=0 failed=0

check() { # model, inputs, outputs, options
    local model=$1 in=$2 out=$3 options=()
    shift 3
    case $model in *int8/*) options=(--mean) ;; esac # engines round differently
    if "$tvmcc" run "$model" --target=c --inputs "$in" --expect "$out" "${options[@]}" "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        echo "FAIL $model $*"
        cat "$work/log"
        failed=$((failed + 1))
    fi
}

shared() { # options
    for folder in "$models"/*/; do
        [ -e "$folder/model.onnx" ] && check "$folder/model.onnx" "$folder/inputs.npz" "$folder/outputs.npz" "$@"
    done
}

[ -d "$models" ] || echo "SKIP (no ../shared/models)"
for cc in gcc clang-19; do
    command -v $cc >/dev/null || { echo "SKIP (no $cc)"; continue; }
    shared --cc=$cc -O3
    shared --cc=$cc -O0
    for model in "$quantized"/*.onnx; do
        check "$model" "${model%.onnx}.in.npz" "${model%.onnx}.out.npz" --cc=$cc --mean
    done
done
for triple; do
    case $triple in
    wasm32*) need=/usr/include/wasm32-wasi/stdio.h emulator=node ;;
    *) need=/usr/$triple/lib/libc.a emulator=qemu-${triple%%-*}-static ;;
    esac
    if [ ! -e "$need" ] || ! command -v $emulator >/dev/null; then
        echo "SKIP ($triple: no C library or no $emulator)"
        continue
    fi
    check "$root/examples/digits/digits.onnx" "$root/examples/digits/inputs.npz" \
        "$root/examples/digits/outputs.npz" -mtriple=$triple
    check "$quantized/integer_extremes.onnx" "$quantized/integer_extremes.in.npz" \
        "$quantized/integer_extremes.out.npz" -mtriple=$triple
    shared -mtriple=$triple
done
echo "$passed passed, $failed failed"

printf '#!/bin/sh\nexec "%s" "$@" --target=c\n' "$tvmcc" >"$work/tvmcc"
chmod +x "$work/tvmcc"
python3 "$root/tests/graphs/replay.py" "$work/tvmcc" || failed=1
[ $failed -eq 0 ]
