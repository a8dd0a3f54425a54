#!/bin/bash
# script.sh <tvmcc> <folder> <work folder>
#
# Modules of TorchScript (make_script.py) with the values that they were recorded with.  Those that are quantized may be a
# step of their scale away, where a number lies between two integers.
set -e
. "$(dirname "$0")/../../lib.sh"
tvmcc=$(realpath "$1") folder=$(realpath "$2") failed=0
enter "$3"

for model in "$folder"/*.pt; do
    step=1e-5
    dims=
    case $model in
    */quantized_*) step=0.02 ;;
    */instances.pt) dims="--dim places.0=1..8 --dim places_2.0=1..8" ;;
    esac
    "$tvmcc" run "$model" -O1 $dims -Wno-state-kept --inputs "${model%.pt}.in.npz" --expect "${model%.pt}.out.npz" \
        --rtol 1e-4 --atol $step >messages 2>&1 && continue
    echo "FAIL $model"
    head -12 messages
    failed=$((failed + 1))
done
[ $failed = 0 ] || die "$failed failures"
