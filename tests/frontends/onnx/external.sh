#!/bin/bash
# external.sh <tvmcc> <folder of models> <work folder>
#
# Data of tensors in other files: what links lead to, files of terabytes, models that protobuf cannot hold, and weights that
# no program of the machine can.
set -e
. "$(dirname "$0")/../../lib.sh"
tvmcc=$1 models=$2
enter "$3"
imports() { quiet "$tvmcc" -E "$1" -o out.relay; }

mkdir model outside blobs linked
cp "$models/ok_external.onnx" model/net.onnx
ln -s "$models/weights.bin" model/weights.bin
refused 1 "tensor 'w': its data may not lie outside the model's folder, but 'weights.bin' is a link to" \
    "$tvmcc" -E model/net.onnx -o out.relay

# a link that stays inside, a folder of links, and a folder that is one
mkdir model/data && cp "$models/weights.bin" model/data/w && ln -sf data/w model/weights.bin
imports model/net.onnx
cp model/net.onnx blobs/1 && cp "$models/weights.bin" blobs/2
ln -s ../blobs/1 linked/net.onnx && ln -s ../blobs/2 linked/weights.bin
imports linked/net.onnx
ln -s model other && imports other/net.onnx
(cd model && imports net.onnx && "$tvmcc" -E - -o out.relay <net.onnx >log 2>&1) || die "$(cat model/log)"
ln -sf ../../outside model/data/out && cp "$models/weights.bin" outside/w && ln -sf data/out/w model/weights.bin
refused 1 "may not lie outside" "$tvmcc" -E model/net.onnx -o out.relay

# what is missing: the file, the tensor, what to do
rm model/weights.bin
refused 74 "cannot read 'model/weights.bin': No such file or directory" "$tvmcc" -E model/net.onnx -o out.relay
grep -q "note: it should hold the data of tensor 'w'" log && grep -q "hint: .*beside the model" log || die "$(cat log)"

# twenty tensors at the end of a file of 7 TiB: mapped once
cp "$models/external_far.onnx" .
if truncate -s 7T far.bin 2>log; then
    printf '\0\0\200\077' | dd of=far.bin bs=1 seek=$((7 * 1024 * 1024 * 1024 * 1024 - 4)) conv=notrunc 2>log
    imports external_far.onnx
    grep -q '= \[0, 1\]' out.relay || die "$(cat out.relay)"
    rm far.bin
fi

# beyond what protobuf holds
cp "$models/ok_batch.onnx" large.onnx
if truncate -s 2G large.onnx 2>log; then
    refused 4 "the file has 2147483648 bytes, but as protobuf a model has less than 2 GiB" "$tvmcc" -E large.onnx -o out.relay
    grep -q "hint: .*save_as_external_data" log || die "$(cat log)"
    rm large.onnx
fi

# beyond what a program of 32 bits holds: said before anything is packed
cp "$models/external_large.onnx" .
if truncate -s 2400000000 large.bin 2>log; then
    refused 1 "hold at most 2147483647 bytes of weights, not 2400000000" \
        "$tvmcc" -c external_large.onnx -mtriple=riscv32-unknown-elf -o large.o
    grep -q "hint: -fweights=file" log || die "$(cat log)"
    rm large.bin
fi
