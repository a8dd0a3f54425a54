#!/bin/sh
# Compiles and runs each net against the results beside it (make_ops.py).
#
#     run.sh TVMCC FOLDER
. "$(dirname "$0")/../agree.sh"
tvmcc=$(realpath "$1")
cd "$2" || exit 2

for model in *.predict_net.pb; do
    name=${model%.predict_net.pb}
    agree "$model" "$name.in.npz" "$name.out.npz" --rtol=1e-4 --atol=1e-5
done
# Images with their channels last: a transpose where they come in, one where they go out.
transposes channels_last.predict_net.pb 2
agree_end
