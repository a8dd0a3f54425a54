#!/bin/sh
# Compiles and runs each graph against the results beside it (make_ops.py, make_functions.py).
#
#     run.sh TVMCC FOLDER
. "$(dirname "$0")/../agree.sh"
tvmcc=$(realpath "$1")
cd "$2" || exit 2

for inputs in *.in.npz; do
    name=${inputs%.in.npz}
    for model in "$name.pb" "$name.pbtxt" "$name"; do
        [ -e "$model" ] && break
    done
    agree "$model" "$inputs" "$name.out.npz" --rtol=1e-4 --atol=1e-5
done
agree saved_signatures saved_signatures/decode_in.npz saved_signatures/decode_out.npz --signature=decode --rtol=1e-4 --atol=1e-5
agree_end
