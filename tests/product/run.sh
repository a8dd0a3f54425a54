#!/bin/sh
# What a product does beside the model, against values of numpy and ONNX Runtime (make.py).
#
#     run.sh TVMCC SOURCE WORK RUNTIME        RUNTIME: libtvmcc_runtime.a
set -e
tvmcc=$1 data=$2/tests/product/data work=$3 runtime=$4
root=$2
"$(dirname "$0")/../fresh" "$work" || exit 2
bgr=data:nhwc,mean=103.939,116.779,123.68,std=57.375,57.12,58.395,channels=bgr
model=$data/classifier.onnx

echo "pictures, an inner tensor, softmax, argmax, top-k"
for level in 0 2 3; do
    "$tvmcc" run -O$level "$model" --input-image=$bgr --output-tensors=features,logits \
        --output-add=softmax:logits --output-add=argmax:logits --output-add=topk=3:logits \
        -i "$data/bgr.in.npz" --expect="$data/bgr.out.npz" --rtol=1e-5
    "$tvmcc" run -O$level "$model" -i "$data/planes.in.npz" --expect="$data/planes.out.npz" \
        --input-image=nchw,scale=1/255,mean=0.485,0.456,0.406,std=0.229,0.224,0.225 --rtol=1e-5
    "$tvmcc" run -O$level "$model" --input-image=float32,mean=127.5 -i "$data/floats.in.npz" \
        --expect="$data/floats.out.npz" --rtol=1e-5
done

echo "all of a picture's conversion is one kernel"
plain=$("$tvmcc" "$model" -mcpu=haswell --emit=plan -o - | grep -c ^kernel)
image=$("$tvmcc" "$model" -mcpu=haswell --input-image=$bgr --emit=plan -o - | grep -c ^kernel)
test $((image - plain)) -le 1

echo "labels of a product"
for i in zero one two three four five six seven eight nine; do echo "$i"; done >"$work/labels.txt"
"$tvmcc" "$model" -mcpu=x86-64-v2 --input-image=$bgr --labels="$work/labels.txt" --entry=net \
    -o "$work/net.tar" --epoch=0 -MD -MF "$work/net.d"
grep -q labels.txt "$work/net.d"
"$tvmcc" "$model" -mcpu=x86-64-v2 --input-image=$bgr --labels="$work/labels.txt" --entry=net \
    -o "$work/net.so"
(cd "$work" && tar xf net.tar)
want=$("$tvmcc" run "$model" --input-image=$bgr --labels="$work/labels.txt" --threads=1 \
    -i "$data/bgr.in.npz" --print-top=2)
test "$(echo "$want" | awk '{ print $1, $3 }' | tr '\n' ' ')" = "$(echo "$want" |
    awk 'BEGIN { split("zero one two three four five six seven eight nine", n, " ") }
        { print $1, n[$1 % 10 + 1] }' | tr '\n' ' ')"
case $(uname -m) in
x86_64)
    for product in net.tar net.so net; do
        got=$("$tvmcc" run "$work/$product" --threads=1 -i "$data/bgr.in.npz" --print-top=2)
        test "$(echo "$got" | awk '{ print $1, $3 }')" = "$(echo "$want" | awk '{ print $1, $3 }')"
    done ;;
esac
grep -q '"labels": \["zero", "one"' "$work/net/share/net/net.json"
grep -q '"layout": "NHWC"' "$work/net/share/net/net.json"
grep -q 'define NET_IN_DATA_LAYOUT "NHWC"' "$work/net/include/net.h"

echo "states in the memory of the inputs"
"$tvmcc" "$data/states.onnx" -mcpu=native --state=h_next=h --state=a_next=a --state=b_next=b \
    -o "$work/states.o"
${CC:-cc} ${CFLAGS-} -I"$work" -I"$root/include" "$root/tests/product/states.c" "$work/states.o" "$runtime" \
    ${LDFLAGS-} -lm -lpthread -ldl -o "$work/states"
"$work/states" "$data/states.f32"
silero=$root/../shared/models/onnx/silero-vad-16k-op15
if [ -d "$silero" ]; then
    for level in 0 3; do
        "$tvmcc" run -O$level "$silero/model.onnx" --shape='input:[1,576]' --dim=batch=1 \
            --state=stateN=state -i "$silero/inputs.npz" --expect="$silero/outputs.npz"
    done
else
    echo "SKIP (no $silero)"
fi
echo "all agree"
