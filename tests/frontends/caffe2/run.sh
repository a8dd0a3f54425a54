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
# The names that Detectron gives the two nets.
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cp pooling.predict_net.pb "$work/model.pb" && cp pooling.init_net.pb "$work/model_init.pb" || exit 2
agree "$work/model.pb" pooling.in.npz pooling.out.npz --rtol=1e-4 --atol=1e-5
# Weights that an option names are those that inspect tells of.
cp products.predict_net.pb "$work/alone.pb" && inspected products.predict_net.pb products.init_net.pb "$work/alone.pb"
# Images with their channels last: a transpose where they come in, one where they go out.
transposes channels_last.predict_net.pb 2
agree_end
