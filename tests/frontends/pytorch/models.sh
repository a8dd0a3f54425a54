#!/bin/sh
# Runs real modules of TorchScript where they are found (TVMCC_MODELS, or ../shared/models) against their
# results.
#
#     models.sh TVMCC SOURCE
tvmcc=$(realpath "$1")
models=${TVMCC_MODELS:-$2/../shared/models/onnx}/../torchscript
failed=0 count=0

# check MODEL NAMES OPTION..: NAMES "data=x" are those of the values, and of the inputs.
check() {
    folder=$models/$1 names=$2
    shift 2
    count=$((count + 1))
    python3 "$(dirname "$0")/renamed.py" "$folder/inputs.npz" "$work/inputs.npz" $names &&
        output=$("$tvmcc" run "$folder/model.pt" "$@" --inputs "$work/inputs.npz" --expect "$folder/outputs.npz" \
            --rtol 1e-3 --atol 1e-4 2>&1) && return
    echo "FAIL $folder"
    echo "$output" | head -20
    failed=$((failed + 1))
}

if [ ! -d "$models" ]; then
    echo "SKIP (no models at $models)"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check mtcnn-onet-traced data=x
check ultraface-slim-320-traced input=x
check silero-vad sr= --value sr=16000 -Wno-state-kept
echo "$count models, $failed failures"
[ $failed = 0 ]
