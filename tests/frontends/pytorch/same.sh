#!/bin/bash
# same.sh <tvmcc> <folder> <work folder>
#
# One network as TorchScript, as a program of torch.export and as ONNX of both exporters (make_same.py): the kernels and how
# often they are called are the same, whose names are hashes of what they compute, and so are the results.
set -e
. "$(dirname "$0")/../../lib.sh"
fuzz=$(realpath "$(dirname "$0")/../../fuzz") tvmcc=$(realpath "$1") folder=$(realpath "$2")
enter "$3"

for model in "$folder"/*.pt2; do
    name=$(basename "$model" .pt2)
    for ending in onnx dynamo.onnx pt2 pt; do
        file=$folder/$name.$ending
        shape=$(python3 -c "import sys; sys.path.insert(0, '$fuzz'); import mutated; print(*mutated.shapes('$file'))")
        "$tvmcc" "$file" $shape -mcpu=x86-64-v3 --emit=sched -o - 2>messages |
            grep '^@' | sort >"$name.$ending" || die "$file: $(cat messages)"
        cmp "$name.onnx" "$name.$ending" || die "$file has other kernels: $(diff "$name.onnx" "$name.$ending")"
        "$tvmcc" run "$file" -mcpu=x86-64-v3 --inputs "$folder/$name.in.npz" --expect "$folder/$name.out.npz" \
            --rtol 1e-4 --atol 1e-5 >messages 2>&1 || die "$file: $(cat messages)"
    done
    [ -s "$name.onnx" ] || die "$model has no kernels"
done
