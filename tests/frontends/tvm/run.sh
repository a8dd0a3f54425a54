#!/bin/sh
# Compiles and runs each module against the results beside it (make_ops.py).
#
#     run.sh TVMCC FOLDER
. "$(dirname "$0")/../agree.sh"
tvmcc=$(realpath "$1")
cd "$2" || exit 2

for model in *.relay; do
    name=${model%.relay}
    case $name in # integers are exact
    quantized*) tolerance="--rtol=0 --atol=0" ;;
    *) tolerance="--rtol=1e-4 --atol=1e-5" ;;
    esac
    # shellcheck disable=SC2086
    agree "$model" "$name.in.npz" "$name.out.npz" $tolerance
done
# The network in an archive of Model Library Format is the same one.
a=$("$tvmcc" -E network.relay -o -) b=$("$tvmcc" -E archive.tar -o -)
[ -n "$a" ] && [ "$a" = "$b" ] || {
    echo "FAIL archive.tar"
    failed=$((failed + 1))
}
# .. and as nodes of JSON.
agree saved.json network.in.npz network.out.npz --rtol=1e-4 --atol=1e-5
agree saved_names.json saved_names.in.npz saved_names.out.npz --rtol=1e-5 --atol=0
agree saved_programs.json saved_programs.in.npz saved_programs.out.npz --rtol=1e-4 --atol=1e-5
agree saved_functions.json saved_functions.in.npz saved_functions.out.npz --rtol=1e-4 --atol=1e-5
# The archive is a model for every command, though products are archives, too.
agree archive.tar network.in.npz network.out.npz --rtol=1e-4 --atol=1e-5
"$tvmcc" inspect archive.tar | grep -q '2 nn.conv2d' || {
    echo "FAIL inspect archive.tar"
    failed=$((failed + 1))
}
# Images with their channels last: a transpose where they come in, one where they go out.
transposes images.relay 2
agree_end
