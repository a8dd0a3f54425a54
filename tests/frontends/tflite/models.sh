#!/bin/sh
# Compiles and runs real models where they are found: the public set (TVMCC_MODELS/../tflite, or
# ../shared/models/tflite), each against its results.
#
#     models.sh TVMCC SOURCE
. "$(dirname "$0")/../agree.sh"
. "$(dirname "$0")/integers.sh"
tvmcc=$(realpath "$1")
models=$2/../shared/models/tflite

if [ ! -d "$models" ]; then
    echo "SKIP (no models at $models)"
    exit 77
fi
for d in "$models"/*/; do
    case $d in
    *int8*)
        tolerance="--rtol=0 --atol=1.001"
        float_sums "$d/model.tflite" 0
        ;;
    *) tolerance="--rtol=1e-3 --atol=1e-4" ;;
    esac
    agree "$d/model.tflite" "$d/inputs.npz" "$d/outputs.npz" $tolerance
done
agree_end
