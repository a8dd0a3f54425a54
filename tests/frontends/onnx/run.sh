#!/bin/sh
# Imports and runs each run_*.onnx against the results beside it.
#
#     run.sh CHECK_IMPORT FOLDER
program=$(realpath "$1")
cd "$2" || exit 2
failed=0 count=0

for model in run_*.onnx; do
    data=${model%.onnx}.npz
    case $model in
    # steps of quantization: one off at a tie is right
    run_qlinear_conv.onnx) tolerance="--atol 0.11" ;;
    *) tolerance="--atol 1e-5" ;;
    esac
    count=$((count + 1))
    if ! output=$("$program" --prefix --inputs "$data" --outputs "$data" $tolerance "$model" 2>&1); then
        echo "FAIL $model"
        echo "$output"
        failed=$((failed + 1))
    fi
done
echo "$count models, $failed failures"
[ $count -gt 0 ] && [ $failed = 0 ]
