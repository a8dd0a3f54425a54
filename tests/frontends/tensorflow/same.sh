#!/bin/bash
# same.sh <tvmcc> <folder> <work folder>
#
# One network of Keras as a SavedModel, a frozen graph, for TensorFlow Lite and as ONNX (make_same.py): the kernels and how
# often they are called are the same, whose names are hashes of what they compute, and so are the results.  The picture is
# transposed once, where it comes in.
set -e
. "$(dirname "$0")/../../lib.sh"
tvmcc=$(realpath "$1") folder=$(realpath "$2")
enter "$3"

for form in network.onnx network network.pb network.tflite; do
    "$tvmcc" "$folder/$form" -mcpu=x86-64-v3 --emit=sched -o - 2>messages | grep '^@' | sort >"$form" || die "$form: $(cat messages)"
    [ -s "$form" ] || die "$form has no kernels"
    cmp network.onnx "$form" || die "$form has other kernels: $(diff network.onnx "$form")"
    found=$("$tvmcc" -c "$folder/$form" -mcpu=x86-64-v3 --print-after=fuse_ops -o m.o 2>&1 | grep -cE 'transpose\(|dst_layout="NHWC|src_layout="NHWC')
    [ "$found" = 1 ] || die "$form: $found transposes, not 1"
    "$tvmcc" run "$folder/$form" -mcpu=x86-64-v3 --inputs "$folder/$form.in.npz" --expect "$folder/$form.out.npz" \
        --rtol 1e-4 --atol 1e-5 >messages 2>&1 || die "$form: $(cat messages)"
done
