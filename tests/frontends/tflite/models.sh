#!/bin/sh
# Compiles and runs real models where they are found: the public set (TVMCC_MODELS/../tflite, or
# ../shared/models/tflite), each against its results.
#
#     models.sh TVMCC SOURCE
tvmcc=$(realpath "$1")
models=$2/../shared/models/tflite
failed=0 count=0

if [ ! -d "$models" ]; then
    echo "SKIP (no models at $models)"
    exit 77
fi
for d in "$models"/*/; do
    case $d in
    *int8*) tolerance="--rtol=0 --atol=1.001" ;;
    *) tolerance="--rtol=1e-3 --atol=1e-4" ;;
    esac
    count=$((count + 1))
    if ! output=$("$tvmcc" run "$d/model.tflite" --inputs "$d/inputs.npz" --expect "$d/outputs.npz" $tolerance 2>&1); then
        echo "FAIL $d"
        echo "$output" | head -20
        failed=$((failed + 1))
    fi
done
echo "$count models, $failed failures"
[ $count -gt 0 ] && [ $failed = 0 ]
