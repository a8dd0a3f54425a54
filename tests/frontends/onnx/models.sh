#!/bin/sh
# Imports real models where they are found: the public set (TVMCC_MODELS, or ../shared/models/onnx)
# with results compared for the small ones, and the benchmark models (TVMCC_BENCH_MODELS).
#
#     models.sh CHECK_IMPORT SOURCE
program=$(realpath "$1")
models=${TVMCC_MODELS:-$2/../shared/models/onnx}
failed=0 count=0

check() {
    count=$((count + 1))
    if output=$("$program" "$@" 2>&1); then
        return
    fi
    echo "FAIL $*"
    echo "$output" | head -20
    failed=$((failed + 1))
}

if [ ! -d "$models" ]; then
    echo "SKIP (no models at $models)"
    exit 77
fi
d=$models/mnist-onnx-mlir
check "$d/model.onnx" --inputs "$d/inputs.npz" --outputs "$d/outputs.npz"
d=$models/silero-vad-16k-op15
check --shape input=1,576 "$d/model.onnx" --inputs "$d/inputs.npz" --outputs "$d/outputs.npz"
check --dim T=16 "$models/stories260k-prefill/model.onnx"
check "$models/ultraface-slim-320/model.onnx"
check "$models/ultraface-slim-320-qdq-int8/model.onnx"
for model in "${TVMCC_BENCH_MODELS:-/nonexistent}"/*.onnx; do
    [ -f "$model" ] && check "$model"
done
echo "$count models, $failed failures"
[ $failed = 0 ]
