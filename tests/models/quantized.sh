#!/usr/bin/env bash
# Quantized models against ONNX Runtime: integers equal up to a step, sums of products exactly.
#
#     quantized.sh TVMCC FOLDER
#
# FOLDER has NAME.onnx, NAME.in.npz, NAME.out.npz (make.py).  Each model runs in floats (without the
# pass quantized_to_integer) and in integers, for the vectors of this machine, of AVX2 and without any, and
# with one and two threads, which must give the same bits.
set -u
tvmcc=$1 folder=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0 failed=0

run() { # model options...
    local name=$1 atol=1
    shift
    [ "${name#integer}" != "$name" ] && atol=0
    for threads in 1 2; do
        count=$((count + 1))
        if ! "$tvmcc" run "$folder/$name.onnx" --inputs "$folder/$name.in.npz" --expect "$folder/$name.out.npz" \
            --atol $atol --rtol 0 --threads $threads --output "$work/$threads.npz" "$@" >"$work/log" 2>&1; then
            echo "FAIL $name $*"
            cat "$work/log"
            failed=$((failed + 1))
            return
        fi
    done
    if ! cmp -s "$work/1.npz" "$work/2.npz"; then
        echo "FAIL $name $*: one and two threads give other bits"
        failed=$((failed + 1))
    fi
}

for model in "$folder"/*.onnx; do
    name=$(basename "$model" .onnx)
    run "$name" -fno-pass=quantized_to_integer
    run "$name"
    run "$name" -O3 -mcpu=native
    [ "$(uname -m)" = x86_64 ] && run "$name" -mcpu=x86-64
    grep -qw avx2 /proc/cpuinfo && run "$name" -mcpu=haswell
done
echo "$count runs, $failed failures"
[ $count -gt 0 ] && [ $failed = 0 ]
