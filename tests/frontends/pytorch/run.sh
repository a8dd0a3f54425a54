#!/bin/sh
# Imports and runs each run_*.pt2 against PyTorch's results beside it.
#
#     run.sh CHECK_IMPORT FOLDER
program=$(realpath "$1")
cd "$2" || exit 2
failed=0 count=0

for model in run_*.pt2; do
    data=${model%.pt2}.npz
    count=$((count + 1))
    if ! output=$("$program" --prefix --inputs "$data" --outputs "$data" --atol 1e-5 "$model" 2>&1); then
        echo "FAIL $model"
        echo "$output"
        failed=$((failed + 1))
    fi
done
echo "$count models, $failed failures"
[ $count -gt 0 ] && [ $failed = 0 ]
