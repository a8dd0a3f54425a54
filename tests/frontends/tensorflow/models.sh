#!/bin/sh
# Compiles and runs real models where they are found: frozen graphs and SavedModels of the public set
# (../shared/models), each against its results.
#
#     models.sh TVMCC SOURCE
. "$(dirname "$0")/../agree.sh"
tvmcc=$(realpath "$1")
models=$2/../shared/models

if [ ! -d "$models/tensorflow-graphdef" ]; then
    echo "SKIP (no models at $models/tensorflow-graphdef)"
    exit 77
fi
for model in "$models"/tensorflow-graphdef/*/model.pb "$models"/tensorflow-savedmodel/*/saved_model; do
    d=$(dirname "$model")
    agree "$model" "$d/inputs.npz" "$d/outputs.npz" -Wno-dim-default --rtol=1e-3 --atol=1e-4
done
agree_end
