#!/bin/sh
# Compiles and runs real models where they are found (../shared/models/caffe2), each against its results.
#
#     models.sh TVMCC SOURCE
. "$(dirname "$0")/../agree.sh"
tvmcc=$(realpath "$1")
models=$2/../shared/models/caffe2

if [ ! -d "$models" ]; then
    echo "SKIP (no models at $models)"
    exit 77
fi
for model in "$models"/*/predict_net.pb; do
    d=$(dirname "$model")
    agree "$model" "$d/inputs.npz" "$d/outputs.npz" --rtol=1e-3 --atol=1e-4
done
agree_end
