#!/bin/bash
# sizes.sh <tvmcc> <folder> <work folder>
#
# Models whose dimensions a run decides (make_sizes.py, and make_counted.py by its values): each is compiled for all sizes within the bounds, and run at several.
# Of TensorFlow: .pb.
set -e
. "$(dirname "$0")/../../lib.sh"
tvmcc=$1 folder=$2
enter "$3"

while read -r name sizes dims; do
    model=$folder/$name.onnx
    [ -e "$model" ] || model=$folder/$name.pb
    for options in "-O0" "-O3 -mcpu=x86-64-v3"; do
        k=0
        while [ $k -lt "$sizes" ]; do
            "$tvmcc" run "$model" $dims $options --inputs "$folder/$name.$k.in.npz" \
                --expect "$folder/$name.$k.out.npz" --rtol 1e-4 --atol 1e-4 >messages 2>&1 ||
                die "$name, size $k, $options: $(cat messages)"
            k=$((k + 1))
        done
    done
done <"$folder/cases.txt"
