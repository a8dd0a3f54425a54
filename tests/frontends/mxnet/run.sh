#!/bin/sh
# Compiles and runs each graph against the results beside it (make_ops.py, make_fused.py).
#
#     run.sh TVMCC FOLDER
. "$(dirname "$0")/../agree.sh"
tvmcc=$(realpath "$1")
cd "$2" || exit 2

for model in *-symbol.json; do
    name=${model%-symbol.json}
    case $name in # oneDNN's own rounding: a step of the values inside is 0.01
    fused) tolerance="--rtol=0 --atol=0.03" ;;
    *) tolerance="--rtol=1e-4 --atol=1e-5" ;;
    esac
    # shellcheck disable=SC2086
    agree "$model" "$name.in.npz" "$name.out.npz" $tolerance
done
# Those that a transposed convolution of groups asks for, before and behind it.
# Weights that an option names are those that inspect tells of.
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cp dense-symbol.json "$work/" && inspected dense-symbol.json dense-0000.params "$work/dense-symbol.json"
transposes convolutions-symbol.json 2
agree_end
