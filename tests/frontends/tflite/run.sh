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
# Between convolutions images stay as these have them: one transpose where the picture comes in, one
# each where rows of columns and all cells go out in the model's order.
transposes=$("$tvmcc" -c run_between_convs.tflite -mcpu=haswell --print-after=fuse_ops -o /dev/null 2>&1 |
    grep -cE 'transpose\(|layout_transform\(.*NHWC')
if [ "$transposes" != 3 ]; then
    echo "FAIL run_between_convs.tflite: $transposes transposes, not 3"
    failed=$((failed + 1))
fi
echo "$count models, $failed failures"
[ $count -gt 0 ] && [ $failed = 0 ]
