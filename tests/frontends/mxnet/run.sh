#!/bin/sh
# Compiles and runs each graph against the results beside it (make_ops.py).
#
#     run.sh TVMCC FOLDER
. "$(dirname "$0")/../agree.sh"
tvmcc=$(realpath "$1")
cd "$2" || exit 2

for model in *-symbol.json; do
    name=${model%-symbol.json}
    agree "$model" "$name.in.npz" "$name.out.npz" --rtol=1e-4 --atol=1e-5
done
agree_end
