#!/usr/bin/env bash
# Quantized models against ONNX Runtime: integers equal up to a step, sums of products exactly.
#
#     quantized.sh TVMCC FOLDER [TARGET [MODEL..]]
#
# FOLDER has NAME.onnx, NAME.in.npz, NAME.out.npz (make.py).  Each model runs in floats (without the
# pass quantized_to_integer) and in integers, for the vectors of this machine, of AVX2 and without any, and
# with one and two threads, which must give the same bits; or all models, or those named, in integers on a device (77: there is none).
set -u
tvmcc=$1 folder=$2 target=${3:-} both="1 2"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0 failed=0

run() { # model options...
    local name=$1 atol=1
    shift
    [ "${name#integer}" != "$name" ] && atol=0
    for threads in $both; do
        count=$((count + 1))
        if ! "$tvmcc" run "$folder/$name.onnx" --inputs "$folder/$name.in.npz" --expect "$folder/$name.out.npz" \
            --atol $atol --rtol 0 --threads $threads --output "$work/$threads.npz" "$@" >"$work/log" 2>&1; then
            echo "FAIL $name $*"
            cat "$work/log"
            failed=$((failed + 1))
            return
        fi
    done
    if [ "$both" = "1 2" ] && ! cmp -s "$work/1.npz" "$work/2.npz"; then
        echo "FAIL $name $*: one and two threads give other bits"
        failed=$((failed + 1))
    fi
}

names=$(cd "$folder" && ls ./*.onnx | sed 's|^./||; s/\.onnx$//')
if [ -n "$target" ]; then
    shift 3
    both=1
    [ $# -gt 0 ] || set -- $names
    for name in "$@"; do
        run "$name" -O3 --target="$target"
        grep -q 'cannot run: no ' "$work/log" && { echo "SKIP (no device)"; exit 77; }
        "$tvmcc" compile "$folder/$name.onnx" --target="$target" --print-after=quantized_to_integer --emit=plan -o "$work/plan" 2>&1 |
            grep -q 'out_dtype="i32"' || { echo "FAIL $name $target: nothing is multiplied in integers"; failed=$((failed + 1)); }
    done
    names=
fi
for name in $names; do
    run "$name" -fno-pass=quantized_to_integer
    run "$name"
    run "$name" -O3 -mcpu=native
    [ "$(uname -m)" = x86_64 ] && run "$name" -mcpu=x86-64
    grep -qw avx2 /proc/cpuinfo && run "$name" -mcpu=haswell
done
echo "$count runs, $failed failures"
[ $count -gt 0 ] && [ $failed = 0 ]
