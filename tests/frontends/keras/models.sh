#!/bin/sh
# Compiles and runs real models where they are found (../shared/models/keras), each against its results.
#
#     models.sh TVMCC SOURCE
tvmcc=$(realpath "$1")
models=$2/../shared/models/keras
failed=0 count=0

if [ ! -d "$models" ]; then
    echo "SKIP (no models at $models)"
    exit 77
fi
for model in "$models"/*/model.*; do
    d=$(dirname "$model")
    count=$((count + 1))
    if ! output=$("$tvmcc" run "$model" --inputs "$d/inputs.npz" --expect "$d/outputs.npz" --rtol=1e-3 --atol=1e-4 2>&1); then
        echo "FAIL $model"
        echo "$output" | head -20
        failed=$((failed + 1))
    fi
done
echo "$count models, $failed failures"
[ $count -gt 0 ] && [ $failed = 0 ]
