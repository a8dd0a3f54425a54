#!/bin/sh
# gpu.sh <tvmcc> <source> <runtime library> <work>: the program of docs/gpu.md, made and run as the page says, on the devices that are CPUs.
tvmcc=$1 source=$2 runtime=$3 work=$4/gpu
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 2
awk '/^    #include "net.h"/ { on = 1 } on && /^[^ ]/ { exit } on { print substr($0, 5) }' "$source/docs/gpu.md" >run.c
ran=0
for target in opencl vulkan; do
    kind=TVMCC_DEVICE_$(echo $target | tr a-z A-Z)
    "$tvmcc" -c "$source/examples/digits/digits.onnx" --entry=net --target=$target -o net.o &&
        ${CC:-cc} $CFLAGS -DDEVICE="$kind" -I. -I"$source/include" run.c net.o "$runtime" $LDFLAGS -lpthread -ldl -lm -o run || exit 1
    if ! ./run >out 2>said; then
        cat said
        grep -q '^no device' said || exit 1
        continue
    fi
    # ten numbers, whose sum is 1
    awk -v t=$target '{ sum += $2 } END { print t ": " NR " numbers, sum " sum; exit !(NR == 10 && sum > 0.999 && sum < 1.001) }' out || exit 1
    ran=$((ran + 1))
done
[ $ran -gt 0 ] || exit 77
