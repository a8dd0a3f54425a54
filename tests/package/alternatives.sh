#!/bin/bash
# alternatives.sh <build of tvmcc> <work folder> <source>
#
# CPU_VARIANTS, SHAPE_BUCKETS, OUTPUTS and STATE through CMake, with shards; the same through a manifest.
set -e
here=$(cd "$(dirname "$0")" && pwd)
source=$3
. "$here/lib.sh"
[ "$(uname -m)" = x86_64 ] || skip "the variants are levels of x86-64"
data=$source/tests/product/data

mkdir app
cat >app/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.23)
project(app C)
find_package(Tvmcc REQUIRED)
enable_testing()
add_tvm_model(rows MODEL $data/rows.onnx SHAPE_BUCKETS N=8,1,4 CPU_VARIANTS x86-64-v2 x86-64-v3
    HOST_TARGET x86_64-linux-gnu SHARDS 2)
add_executable(run $source/tests/product/rows.c)
target_link_libraries(run PRIVATE rows m)
add_test(NAME run COMMAND run $data/rows.f32 "")
add_tvm_model(states MODEL $data/states.onnx STATE h_next=h a_next=a b_next=b OUTPUTS h_next a_next b_next y)
END
configure app app/build -G Ninja -DCMAKE_BUILD_TYPE=Release
quiet "$cmake" --build app/build
quiet "$cmake" --build app/build
grep -q "no work to do" log || { cat log; die "a second build has work to do"; }
(cd app/build && quiet "${cmake%cmake}ctest")
refuse "no CPU variant" "add_tvm_model(a MODEL $data/rows.onnx CPU_VARIANTS x86-64-v2 v3)" -G Ninja
refuse "no dimension" "add_tvm_model(a MODEL $data/rows.onnx SHAPE_BUCKETS K=1,2)" -G Ninja

cat >manifest.yaml <<END
schema: tvm-manifest/1
hosts: {server: {triple: x86_64-linux-gnu, variants: [x86-64-v2, x86-64-v3]}}
targets: {cpu: {kind: llvm}}
pairs: {server: {host: server, target: cpu}}
models:
  rows:
    source: {path: $data/rows.onnx}
    dims: {N: {buckets: [1, 4, 8]}}
    pairs: [server]
  classifier:
    source: {path: $data/classifier.onnx}
    inputs: {data: {image: {channels: BGR, mean: [103.939, 116.779, 123.68], std: [57.375, 57.12, 58.395]}}}
    outputs: {features: {}, logits: {add: softmax}}
    pairs: [server]
END
quiet "$build/bin/tvmcc" build -m manifest.yaml
find . -name '*.h' -path '*rows*' | xargs grep -l "ROWS_BUCKETS 3" | grep -q . || die "no buckets in the header of a manifest's model"
find . -name '*.h' -path '*classifier*' | xargs grep -l "CLASSIFIER_OUT_LOGITS_SOFTMAX_BYTES" | grep -q . || die "no softmax in the header of a manifest's model"
find . -name '*.h' -path '*classifier*' | xargs grep -l 'CLASSIFIER_IN_DATA_DTYPE "uint8"' | grep -q . || die "no picture in the header of a manifest's model"
echo "all agree"
