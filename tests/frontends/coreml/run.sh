#!/bin/sh
# Compiles and runs each model against the results beside it (make_models.py).
#
#     run.sh TVMCC FOLDER
. "$(dirname "$0")/../agree.sh"
tvmcc=$(realpath "$1")
cd "$2" || exit 2

for model in networks/*.mlmodel programs/*.mlpackage; do
    name=${model%.*}
    case $name in
    */half_*) tolerance="--rtol=1e-2 --atol=4e-3" ;;
    *) tolerance="--rtol=1e-4 --atol=1e-5" ;;
    esac
    agree "$model" "$name.in.npz" "$name.out.npz" $tolerance
done
transposes networks/picture.mlmodel 0
agree_end
