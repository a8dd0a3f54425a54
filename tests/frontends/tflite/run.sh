#!/bin/sh
# Compiles and runs each model against the results beside it (make_ops.py): run_* in floats and whole
# numbers, step_* in quantized integers, at most one step away.
#
#     run.sh TVMCC FOLDER
tvmcc=$(realpath "$1")
failed=0 count=0
cd "$2" || exit 2

for model in *.tflite; do
    name=${model%.tflite}
    case $name in
    step_*) tolerance="--rtol=0 --atol=1.001" ;;
    *) tolerance="--rtol=1e-4 --atol=1e-5" ;;
    esac
    count=$((count + 1))
    if ! output=$("$tvmcc" run "$model" --inputs "$name.in.npz" --expect "$name.out.npz" $tolerance 2>&1); then
        echo "FAIL $model"
        echo "$output"
        failed=$((failed + 1))
    fi
done
echo "$count models, $failed failures"
[ $count -gt 0 ] && [ $failed = 0 ]
