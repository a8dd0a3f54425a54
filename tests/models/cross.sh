#!/usr/bin/env bash
# Real models compiled for other machines, run under qemu, against the outputs of their own
# framework.
#
#     cross.sh TVMCC quick|all [TRIPLE]...
#
# The models are those of ../shared/models/onnx (skipped, saying so, where that is absent); quick takes
# the two smallest.  A triple whose C library or emulator is not installed is skipped.  Beside the
# baseline of each triple stand a CPU of it, where qemu knows its instructions.
set -u
tvmcc=$(realpath "$1") mode=$2
shift 2
[ $# -gt 0 ] || set -- aarch64-linux-gnu arm-linux-gnueabihf riscv64-linux-gnu wasm32-wasi
root=$(cd "$(dirname "$0")/../.." && pwd)
models=$root/../shared/models/onnx
[ -d "$models" ] || { echo "SKIP (no ../shared/models)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work
passed=0 failed=0

check() { # model, options
    local folder=$models/$1 options=()
    shift
    case $folder in *int8) options=(--mean) ;; esac # engines round differently
    if "$tvmcc" verify "$folder/model.onnx" --inputs "$folder/inputs.npz" --expect "$folder/outputs.npz" \
        "${options[@]}" "$@" -Wno-schedule-refused -fno-cache >"$work/log" 2>&1; then
        echo "ok   ${folder##*/} $*: $(sed -n 's/.*agrees: //p' "$work/log" | head -1)"
        passed=$((passed + 1))
    else
        echo "FAIL ${folder##*/} $*"
        cat "$work/log"
        failed=$((failed + 1))
    fi
}

for triple; do
    case $triple in
    wasm32*) need=/usr/include/wasm32-wasi/stdio.h emulator=node ;;
    *) need=/usr/$triple/lib/libc.a emulator=qemu-${triple%%-*}-static ;;
    esac
    if [ ! -e "$need" ] || ! command -v $emulator >/dev/null; then
        echo "SKIP ($triple: no C library or no $emulator)"
        continue
    fi
    cpu=()
    case $triple in
    aarch64*) cpu=(-mcpu=cortex-a53) ;;
    arm*hf) cpu=(-mcpu=cortex-a7) ;;
    riscv64*) cpu=(-mattr=+m,+a,+f,+d,+c,+v --emulator "$emulator -cpu rv64,v=true,vlen=128") ;;
    wasm32*) cpu=(-mattr=+simd128) ;;
    esac
    check mnist-onnx-mlir -mtriple=$triple
    check stories260k-prefill -mtriple=$triple "${cpu[@]}"
    [ "$mode" = all ] || continue
    check mnist-onnx-mlir -mtriple=$triple "${cpu[@]}"
    for model in "$models"/*/; do
        model=$(basename "$model")
        [ $model = mnist-onnx-mlir ] || check $model -mtriple=$triple
        [ $model != ultraface-slim-320 ] || check $model -mtriple=$triple "${cpu[@]}"
    done
done

# Without libm and threads: what floats in software make of it, and objects for a Cortex-M.
if [ -e /usr/arm-linux-gnueabi/lib/libc.a ] && command -v qemu-arm-static >/dev/null; then
    bare=(-mtriple=arm-linux-gnueabi -fno-libm -fthreads=none)
    check silero-vad-16k-op15 "${bare[@]}"
    [ "$mode" != all ] || for model in mnist-onnx-mlir stories260k-prefill ultraface-slim-320 \
        ultraface-slim-320-qdq-int8; do check $model "${bare[@]}"; done
fi
if "$tvmcc" -c "$models/stories260k-prefill/model.onnx" --shape='tokens:[1,48]' -mtriple=thumbv7em-none-eabihf \
    -mcpu=cortex-m7 -fno-libm -fthreads=none -o "$work/m7.o" -Wno-schedule-refused >"$work/log" 2>&1; then
    passed=$((passed + 1))
else
    echo "FAIL stories260k-prefill for a Cortex-M7"
    cat "$work/log"
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
