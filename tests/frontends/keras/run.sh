#!/bin/sh
# Compiles and runs each model against the results beside it (make_layers.py).
#
#     run.sh TVMCC FOLDER
tvmcc=$(realpath "$1")
failed=0 count=0
cd "$2" || exit 2

fail() {
    echo "FAIL $1"
    failed=$((failed + 1))
}
for model in *.keras *.h5; do
    name=${model%.*}
    case $name in # 16-bit floats
    *_half_* | *_brain_*) tolerance="--rtol=2e-2 --atol=4e-3" ;;
    *) tolerance="--rtol=1e-4 --atol=1e-5" ;;
    esac
    count=$((count + 1))
    output=$("$tvmcc" run "$model" --inputs "$name.in.npz" --expect "$name.out.npz" $tolerance 2>&1) || {
        fail "$model"
        echo "$output" | grep -v agrees
    }
done
# The same with a batch that the run decides.
for model in new_sequential_keras.keras:picture new_activations_keras.keras:x old_sequential_h5.h5:picture; do
    file=${model%:*} name=${file%.*} dims=
    for input in $(echo "${model#*:}" | tr , ' '); do
        dims="$dims --dim $input.0=1..4"
    done
    count=$((count + 1))
    output=$("$tvmcc" run "$file" $dims --inputs "$name.in.npz" --expect "$name.out.npz" --rtol=1e-4 --atol=1e-5 2>&1) || {
        fail "$file, any batch"
        echo "$output"
    }
done
# Between convolutions images stay as these have them: a transpose where a picture comes in, one where a result goes out.
transposes() { # model, how many
    found=$("$tvmcc" -c "$1" -mcpu=haswell --print-after=fuse_ops -o /dev/null 2>&1 |
        grep -cE 'transpose\(|layout_transform\(.*NHWC')
    [ "$found" = "$2" ] || fail "$1: $found transposes, not $2"
}
transposes new_sequential_keras.keras 2
transposes new_nested_keras.keras 3
echo "$count models, $failed failures"
[ $count -gt 2 ] && [ $failed = 0 ]
