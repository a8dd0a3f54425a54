#!/bin/sh
# The models of the benchmark writer (real architectures, random weights), at all levels, against
# ONNX Runtime's outputs.
#
#     bench.sh TVMCC [NAME]...     all models unless named
#
# The writer is ../shared/bench/make_models.py; Python with numpy, onnx and onnxruntime is made in
# build/python from PyPI unless PYTHON names one.  Skipped, saying so, where one cannot be had.
tvmcc=$(realpath "$1") || exit 2
shift
cd "$(dirname "$0")/../.." || exit 2
. scripts/lib/python.sh
writer=../shared/bench/make_models.py
models=build/bench-models

if [ ! -f "$writer" ]; then
    echo "SKIP (no $writer)"
    exit 0
fi
if ! need_python tests/graphs/requirements.txt; then
    echo "SKIP (python3 with onnx and onnxruntime cannot be had: build/python.log)"
    exit 0
fi
"$PYTHON" "$writer" "$models" "$@" || exit
"$PYTHON" - "$models" <<'PY' || exit
import glob, sys
import numpy as np
for path in glob.glob(sys.argv[1] + "/*.npz"):
    if not path.endswith((".in.npz", ".out.npz")):
        both = np.load(path)
        for part in "in.", "out.":
            np.savez(f"{path[:-3]}{part}npz",
                     **{k[len(part):]: both[k] for k in both.files if k.startswith(part)})
PY
if [ $# -eq 0 ]; then
    set -- "$models"/*.onnx
else
    for name; do
        shift
        set -- "$@" "$models/$name.onnx"
    done
fi
exec tests/models/run.sh "$tvmcc" all "$@"
