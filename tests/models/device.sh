#!/usr/bin/env bash
# Real models on a device, against the outputs that their own framework gave.
#
#     device.sh TVMCC TARGET [FORMAT..]
#
# The models are those of TVMCC_SHARED or ../shared, of all formats or of those named (skipped, saying so, where that is
# absent), at -O0 and -O3 or the LEVELS given.  ONNX's: the largest error of an output must be at most 1e-3 of its largest value, the mean error
# where a model has integer operators, which engines round differently.  The others by tests/frontends/<format>/models.*, which run
# them on the CPU, too.  WORDS: more options, behind all others; TOLERANCE: those that are about --expect, or `none`: other results
# are fine.  RUN: words in the place of `tvmcc` that run a model, such as what watches its kernels (watched.sh, races.sh).
set -u
tvmcc=$(realpath "$1") target=$2 status=0
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
shared=${TVMCC_SHARED:-$root/../shared}
[ -d "$shared/models" ] || { echo "SKIP (no $shared/models)"; exit 0; }
[ $# -gt 0 ] || set -- onnx caffe2 coreml darknet keras mxnet tensorflow tflite pytorch torch-export
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/source" && ln -s "$(realpath "$shared")" "$work/shared" # models.* look beside the sources

# What compiles and runs, on the device at that level; all else is as it was.
driver() {
    cat >"$work/tvmcc" <<END
#!/bin/sh
[ "\$1" = run ] || exec "$tvmcc" "\$@"
case " \$* " in *" --expect"[=\ ]*) tolerance="${TOLERANCE:-}" ;; *) tolerance= ;; esac
case "$target-O$1 \$2" in
vulkan*-O0\ *silero*) # one thread runs its recurrent layer
    echo "SKIP (\$2 -O0: Mesa's CPU ends the loops of a thread after 65535 rounds)" >&2
    exit 0 ;;
esac
[ "\$tolerance" != none ] || tolerance=
${RUN:-"$tvmcc"} "\$@" --target="$target" -O$1 -Wno-schedule-refused ${WORDS:-} \$tolerance
result=\$?
[ \$result = 7 ] && [ "${TOLERANCE:-}" = none ] || exit \$result
END
    chmod +x "$work/tvmcc"
}

# run FOLDER OPTION..
run() {
    "$work/tvmcc" run "$1"/model.* --inputs "$1/inputs.npz" --expect "$1/outputs.npz" "${@:2}"
}

onnx() {
    local options folder failed=0
    for folder in "$shared"/models/onnx/*/; do
        options=()
        "$tvmcc" inspect "$folder/model.onnx" 2>/dev/null | grep -q ' qnn\.' && options=(--mean)
        run "$folder" "${options[@]}" || failed=1
    done
    return $failed
}

torch_export() {
    local folder failed=0
    for folder in "$shared"/models/torch-export/*/; do
        run "$folder" --rtol=1e-3 --atol=1e-4 || failed=1
    done
    return $failed
}

for level in ${LEVELS:-0 3}; do
    driver $level
    for format; do
        case $format in
        onnx) onnx ;;
        torch-export) torch_export ;;
        darknet) python3 "$root/tests/frontends/darknet/models.py" "$work/tvmcc" "$work/source" ;;
        *) TVMCC_MODELS=$shared/models/onnx sh "$root/tests/frontends/$format/models.sh" "$work/tvmcc" "$work/source" ;;
        esac >"$work/log" 2>&1
        result=$?
        grep SKIP "$work/log"
        if [ $result = 0 ]; then
            echo "ok   $format -O$level"
        else
            echo "FAIL $format -O$level"
            cat "$work/log"
            status=1
        fi
    done
done
exit $status
