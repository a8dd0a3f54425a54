#!/bin/sh
# Compiles and runs each module against the results beside it (make_ops.py).
#
#     run.sh TVMCC FOLDER
. "$(dirname "$0")/../agree.sh"
tvmcc=$(realpath "$1")
cd "$2" || exit 2

for model in *.relay; do
    name=${model%.relay}
    agree "$model" "$name.in.npz" "$name.out.npz" --rtol=1e-4 --atol=1e-5
done
# The network in an archive of Model Library Format is the same one.
a=$("$tvmcc" -E network.relay -o -) b=$("$tvmcc" -E archive.tar -o -)
[ -n "$a" ] && [ "$a" = "$b" ] || {
    echo "FAIL archive.tar"
    failed=$((failed + 1))
}
agree_end
