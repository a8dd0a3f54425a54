#!/bin/bash
# script.sh <tvmcc> <folder> <work folder>
#
# Modules of TorchScript (make_script.py) with the values that they were recorded with.
set -e
. "$(dirname "$0")/../../lib.sh"
tvmcc=$(realpath "$1") folder=$(realpath "$2") failed=0
enter "$3"

for model in "$folder"/*.pt; do
    "$tvmcc" run "$model" -O1 -Wno-state-kept --inputs "${model%.pt}.in.npz" --expect "${model%.pt}.out.npz" \
        --rtol 1e-4 --atol 1e-5 >messages 2>&1 && continue
    echo "FAIL $model"
    head -12 messages
    failed=$((failed + 1))
done
[ $failed = 0 ] || die "$failed failures"
