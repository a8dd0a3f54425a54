#!/usr/bin/env bash
# Real models on a device, against the outputs that their own framework gave.
#
#     device.sh TVMCC TARGET
#
# The models are those of ../shared/models/onnx (skipped, saying so, where that is absent), at -O0 and -O3; the largest
# error of an output must be at most 1e-3 of its largest value.  Models with integer operators are judged by the mean
# error: engines round differently.
set -u
tvmcc=$1 target=$2 status=0
models=$(cd "$(dirname "$0")/../.." && pwd)/../shared/models/onnx
[ -d "$models" ] || { echo "SKIP (no ../shared/models)"; exit 0; }

for folder in "$models"/*/; do
    name=$(basename "$folder")
    options=(--target="$target" --inputs "$folder/inputs.npz" --expect "$folder/outputs.npz" -Wno-schedule-refused)
    "$tvmcc" inspect "$folder/model.onnx" 2>/dev/null | grep -q ' qnn\.' && options+=(--mean)
    for level in 0 3; do
        case $target,$name,$level in
        vulkan*,silero*,0) # one thread runs its recurrent layer
            echo "SKIP ($name -O0: Mesa's CPU ends the loops of a thread after 65535 rounds)"
            continue ;;
        esac
        if said=$("$tvmcc" run "$folder/model.onnx" -O$level "${options[@]}" 2>&1); then
            echo "ok   $name -O$level"
        else
            echo "FAIL $name -O$level"
            echo "$said"
            status=1
        fi
    done
done
exit $status
