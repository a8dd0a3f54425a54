#!/bin/bash
# sizes.sh <tvmcc> <folder> <work folder>
#
# Programs whose dimensions a run decides, with the bounds that they say: compiled for all sizes, and
# run at those that make_ops.py recorded.
set -e
. "$(dirname "$0")/../../lib.sh"
. "$(dirname "$0")/../agree.sh"
tvmcc=$1 folder=$2
enter "$3"

for model in "$folder"/*.pt2; do
    for options in "-O0" "-O3 -mcpu=x86-64-v3"; do
        for k in 0 1; do
            "$tvmcc" run "$model" $options --inputs "${model%.pt2}.$k.in.npz" \
                --expect "${model%.pt2}.$k.out.npz" --rtol 1e-4 --atol 1e-4 >messages 2>&1 ||
                die "$model, size $k, $options: $(cat messages)"
        done
    done
done
transposes "$folder/resnet.pt2" 0
[ $failed = 0 ]
