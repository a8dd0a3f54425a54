#!/bin/sh
# digits.sh <tvmcc> <source> <work> <mock>: the digits network for Metal on the mock library in <mock>: results, one
# commit a run, two devices, and what is said and given back where calls fail.
tvmcc=$1 model=$2/examples/digits work=$3/metal mock=$4
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 2
export LD_LIBRARY_PATH="$mock${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" MOCK_METAL_LOG="$work/log"

bad() { echo "$*"; cat out 2>/dev/null; exit 1; }
calls() { grep -c "^$1" log; }
# check <status> <text> <words of the command ..>
check() {
    status=$1 text=$2
    shift 2
    rm -f log
    "$tvmcc" run "$@" --inputs "$model/inputs.npz" --expect "$model/outputs.npz" >out 2>&1
    was=$?
    [ $was = "$status" ] || bad "status $was, not $status, of run $*"
    grep -q "$text" out || bad "no '$text' from run $*"
}

# All launches of a run are one command buffer.
check 0 agrees "$model/digits.onnx" --target=metal
[ "$(calls dispatchThreadgroups)" -gt 4 ] || bad "nothing was launched"
[ "$(calls commit)" = 1 ] && [ "$(calls computeCommandEncoder)" = 1 ] || bad "more than one command buffer"
[ "$(calls GPU)" = 0 ] || bad "something is timed"
check 0 agrees "$model/digits.onnx" --target=metal -O0
MOCK_METAL_OLD=1 check 0 agrees "$model/digits.onnx" --target=metal # without setMathMode:

# Equal bytes each time; one product for all devices.
"$tvmcc" compile "$model/digits.onnx" --target=metal --emit=so -o libdigits.so || exit 1
mkdir again
"$tvmcc" compile "$model/digits.onnx" --target=metal -fno-cache --emit=so -o again/libdigits.so || exit 1
cmp libdigits.so again/libdigits.so || exit 1
check 0 agrees ./libdigits.so --device-number 1
check 1 "no Metal device of that number" ./libdigits.so --device-number 2
MOCK_METAL_FAIL=MTLCopyAllDevices check 0 agrees ./libdigits.so --device-number 0 # the only one that is told of
MOCK_METAL_FAIL=MTLCopyAllDevices check 1 "no Metal device of that number" ./libdigits.so --device-number 1
# Of several targets, the first that has a device of that number; the CPU has none.
check 0 agrees "$model/digits.onnx" --target=metal --target=llvm --device-number 1
[ "$(calls objectAtIndex)" -ge 1 ] || bad "not the second device"
check 1 "'digits' cannot run: it opens on no device of number 2" "$model/digits.onnx" --target=metal --target=llvm --device-number 2

# Times of launches: a command buffer each, where Metal tells when they ran.
profile() { "$tvmcc" profile ./libdigits.so --repeat=3 >out 2>&1 || bad "profile"; grep -q "$1" out || bad "no '$1'"; }
rm -f log
profile "^timer: device timers$"
awk '/% .* step / && !($3 > 0) { exit 1 }' out || bad "a kernel takes no time"
[ "$(calls GPUStartTime)" = "$(calls GPUEndTime)" ] && [ "$(calls GPUStartTime)" -gt 12 ] || bad "times"
MOCK_METAL_OLD=1 profile "^timer: host clock, .* (launches cannot be timed: this system's Metal is too old)$"
MOCK_METAL_FAIL=commit "$tvmcc" profile ./libdigits.so >out 2>&1 && bad "a failing commit"
grep -q "a run on the device failed: the GPU stopped" out || bad "another error"

# Of several targets, steps are those of the one that runs.
kernels() {
    "$tvmcc" profile "$model/digits.onnx" "$@" --repeat=1 >out 2>&1 || bad "profile $*"
    grep -q "compiled for 'metal, [^;]*':" out || bad "another target"
    awk '/%/ { print $NF }' out | sort
}
kernels --target=metal >alone
OCL_ICD_VENDORS=/nonexistent kernels --target=opencl --target=metal --target=llvm >several
cmp alone several || bad "$(cat several)"

# What fails ends in a message, and all that was made until then is given back: else the mock ends the process.
refused() { MOCK_METAL_FAIL=$1 check 1 "$2" ./libdigits.so; }
refused MTLCreateSystemDefaultDevice "no Metal device"
refused newCommandQueue "no Metal command queue"
refused newBufferWithLength "no memory for [0-9]* bytes on the device"
refused newLibraryWithSource "the compiler failed: the compiler is out of order"
refused newFunctionWithName "k_.* failed: no reason given"
refused newComputePipelineState "k_.* failed: the pipeline is out of order"
refused commandBuffer "a command buffer failed"
refused computeCommandEncoder "a command buffer failed"
refused commit "a run on the device failed: the GPU stopped"

# A device whose blocks have less is refused when the model is opened, before anything is copied; another target is taken.
MOCK_METAL_THREADS=16 check 1 "cannot be opened on the device.*mock GPU 0: blocks of 'k_.* threads; the device has 16 x 16 x 16, 16 in all" ./libdigits.so
[ "$(calls commit)" = 0 ] || bad "a run began"
echo 'fn @main(%x: Tensor[(32, 64), f32], %w: Tensor[(48, 64), f32]) { nn.dense(%x, %w) }' >dense.relay
"$tvmcc" run dense.relay --target=metal >out || bad "dense"
MOCK_METAL_SHARED=1024 "$tvmcc" run dense.relay --target=metal >out 2>&1 && bad "more is shared than there is"
grep -q "share [0-9]* bytes; the device has 1024" out || bad "what is shared"
MOCK_METAL_THREADS=16 check 0 agrees "$model/digits.onnx" --target=metal --target=llvm
[ "$(calls dispatchThreadgroups)" = 0 ] || bad "the first target was taken"
"$tvmcc" doctor >out
[ "$(grep -c '^Metal .*mock GPU [01]' out)" = 2 ] || bad "doctor lists no devices"

# A kernel has 30 buffers.
{
    echo "fn @main($(seq -s ', ' -f '%%x%g: Tensor[(2,), f32]' 40)) {"
    echo "  concatenate(($(seq -s ', ' -f '%%x%g' 40)), axis=0)"
    echo "}"
} >many.relay
"$tvmcc" run many.relay --fill-mode=random --outputs many.npz >out 2>&1 || bad "run many.relay"
"$tvmcc" run many.relay --target=metal --fill-mode=random --expect many.npz >out 2>&1 || bad "many tensors"
grep -q agrees out || bad "many tensors"
echo "all as expected"
