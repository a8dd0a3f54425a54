#!/bin/sh
# Compiles and runs real models where they are found: frozen graphs and SavedModels of the public set
# (../shared/models), each against its results.
#
#     models.sh TVMCC SOURCE
tvmcc=$(realpath "$1")
models=$2/../shared/models
failed=0 count=0

if [ ! -d "$models/tensorflow-graphdef" ]; then
    echo "SKIP (no models at $models/tensorflow-graphdef)"
    exit 77
fi
for model in "$models"/tensorflow-graphdef/*/model.pb "$models"/tensorflow-savedmodel/*/saved_model; do
    d=$(dirname "$model")
    count=$((count + 1))
    if ! output=$("$tvmcc" run "$model" --inputs "$d/inputs.npz" --expect "$d/outputs.npz" -Wno-dim-default \
        --rtol=1e-3 --atol=1e-4 2>&1); then
        echo "FAIL $d"
        echo "$output" | head -20
        failed=$((failed + 1))
    fi
done
echo "$count models, $failed failures"
[ $count -gt 0 ] && [ $failed = 0 ]
