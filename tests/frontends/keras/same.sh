#!/bin/bash
# same.sh <tvmcc> <folder> <work folder>
#
# One network as .keras, .h5, .tflite and ONNX, some as SavedModel and .pb, too (make_same.py): the kernels and how often they are called are the
# same, whose names are hashes of what they compute, and so are the results.  Recurrent layers are loops over their steps in all forms
# but .keras and .h5.
set -e
. "$(dirname "$0")/../../lib.sh"
tvmcc=$(realpath "$1") folder=$(realpath "$2")
enter "$3"

# The weights of an archive may lie where a file of HDF5 could begin: it is an archive all the same.
python3 - "$folder/rows.keras" placed.keras <<'END'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as old, zipfile.ZipFile(sys.argv[2], "w") as new:
    names = ["config.json", "model.weights.h5"]
    text = old.read(names[0])
    text += b" " * (8192 - sum(30 + len(n) for n in names) - len(text))
    new.writestr(zipfile.ZipInfo(names[0]), text)
    new.writestr(zipfile.ZipInfo(names[1]), old.read(names[1]))
    new.writestr(zipfile.ZipInfo("metadata.json"), old.read("metadata.json"))
END
[ "$(dd if=placed.keras bs=1 skip=8193 count=3 2>/dev/null)" = HDF ] || die "the weights are not where they should be"
quiet "$tvmcc" run placed.keras -mcpu=x86-64-v3 --inputs "$folder/rows.in.npz" --expect "$folder/rows.out.npz"

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
