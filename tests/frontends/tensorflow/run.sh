#!/bin/sh
# Compiles and runs each graph against the results beside it (make_ops.py, make_functions.py).
#
#     run.sh TVMCC FOLDER
tvmcc=$(realpath "$1")
failed=0 count=0
cd "$2" || exit 2

for inputs in *.in.npz; do
    name=${inputs%.in.npz}
    for model in "$name.pb" "$name.pbtxt" "$name"; do
        [ -e "$model" ] && break
    done
    count=$((count + 1))
    if ! output=$("$tvmcc" run "$model" --inputs "$inputs" --expect "$name.out.npz" --rtol=1e-4 --atol=1e-5 2>&1); then
        echo "FAIL $model"
        echo "$output"
        failed=$((failed + 1))
    fi
done
echo "$count models, $failed failures"
[ $count -gt 0 ] && [ $failed = 0 ]
