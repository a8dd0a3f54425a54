#!/bin/bash
# same.sh <tvmcc> <folder> <work folder>
#
# One network as .keras, .h5, .tflite and ONNX, some as SavedModel and .pb, too (make_same.py): the kernels and how often they are called are the
# same, whose names are hashes of what they compute, and so are the results.  Recurrent layers are loops over their steps in all forms
# but .keras and .h5; tf2onnx writes them otherwise, so that network has no ONNX form.
set -e
. "$(dirname "$0")/../../lib.sh"
tvmcc=$(realpath "$1") folder=$(realpath "$2")
enter "$3"

for model in "$folder"/*.keras; do
    name=$(basename "$model" .keras)
    for ending in keras h5 tflite onnx saved pb; do
        file=$folder/$name.$ending
        [ -e "$file" ] || continue
        "$tvmcc" "$file" -mcpu=x86-64-v3 --emit=sched -o - 2>messages | grep '^@' | sort >"$name.$ending" ||
            die "$file: $(cat messages)"
        cmp "$name.keras" "$name.$ending" || die "$file has other kernels: $(diff "$name.keras" "$name.$ending")"
    done
    for ending in keras h5; do # the others have names of their own
        "$tvmcc" run "$folder/$name.$ending" -mcpu=x86-64-v3 --inputs "$folder/$name.in.npz" --expect "$folder/$name.out.npz" \
            --rtol 1e-4 --atol 1e-5 >messages 2>&1 || die "$folder/$name.$ending: $(cat messages)"
    done
    [ -s "$name.keras" ] || die "$model has no kernels"
done
