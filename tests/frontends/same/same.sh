#!/bin/bash
# same.sh <tvmcc> <folder> <work folder>
#
# One network as ONNX and in the formats of TVM, Core ML, MXNet and Caffe2 (make_same.py): the kernels and how often they
# are called are the same, whose names are hashes of what they compute, and so are the results.  With channels last the
# input is moved once, and nothing else is.
set -e
. "$(dirname "$0")/../../lib.sh"
tvmcc=$(realpath "$1") folder=$(realpath "$2")
enter "$3"

kernels() {
    "$tvmcc" "$folder/$1" -mcpu=x86-64-v3 --emit=sched -o - 2>messages | grep '^@' | sort >kernels || die "$1: $(cat messages)"
}

run() { # the results, without their name
    "$tvmcc" run "$folder/$1" -mcpu=x86-64-v3 --fill-mode=ones 2>messages | grep '^ ' >results || die "$1: $(cat messages)"
}

for model in "$folder"/*.onnx; do
    name=$(basename "$model" .onnx)
    kernels "$name.onnx"
    mv kernels expected
    [ -s expected ] || die "$model has no kernels"
    run "$name.onnx"
    mv results values
    for file in "$name-symbol.json" "$name.predict_net.pb" "$name.mlmodel" "$name.mlpackage" "$name.relay" "$name.nodes.json"; do
        kernels "$file"
        cmp expected kernels || die "$file has other kernels: $(diff expected kernels)"
        run "$file"
        cmp values results || die "$file has other results: $(diff values results)"
    done
    kernels "$name.nhwc.relay"
    moved=$(grep -c transpose kernels || true)
    run "$name.nhwc.relay"
    cmp values results || die "$name.nhwc.relay has other results: $(diff values results)"
    [ "$moved" = 1 ] || die "$name.nhwc.relay moves $moved times: $(cat kernels)"
done
