#!/bin/sh
# digits.sh <tvmcc> <source> <work> <mock>: the digits network for CUDA on the mock libraries in <mock>: results, one
# replay a run, several architectures in one product, the cache, and what is said and given back where calls fail.
tvmcc=$1 model=$2/examples/digits work=$3/cuda mock=$4
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 2
export LD_LIBRARY_PATH="$mock${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" TVMCC_NVRTC="$mock/libnvrtc.so.13"
export TVMCC_CACHE_DIR="$work/cache" MOCK_CUDA_LOG="$work/log"

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

# Each kernel is compiled once, and nothing is launched beside the recording.
check 0 agrees "$model/digits.onnx" --target=cuda
[ "$(calls 'cuEvent\|cuLaunchHostFunc')" = 0 ] || bad "something is timed"
[ "$(calls nvrtcCompileProgram)" -gt 4 ] || bad "nothing was compiled"
[ "$(calls cuGraphLaunch)" = 1 ] && [ "$(calls cuStreamEndCapture)" = 1 ] || bad "no replay"
[ "$(calls cuModuleLoadDataEx)" = "$(calls cuModuleUnload)" ] || bad "modules are left"
check 0 agrees "$model/digits.onnx" --target=cuda
[ "$(calls nvrtcCompileProgram)" = 0 ] || bad "the cache is not used"
check 0 agrees "$model/digits.onnx" --target=cuda -O0

# In 16 bits, by instructions of warps where a sum has enough steps.
check 0 agrees "$model/digits.onnx" --target=cuda --mixed-precision --rtol 1e-2
check 0 agrees "$model/digits.onnx" --target=cuda --mixed-precision --rtol 1e-2 --mixed-precision-calculation-type=bfloat16
cat >product.relay <<EOF
fn @main(%x: Tensor[(1, 40, 9, 11), f32], %w: Tensor[(37, 40, 2, 2), f32], %a: Tensor[(70, 96), i8],
         %b: Tensor[(50, 96), i8], %c: Tensor[(640, 64), f32], %d: Tensor[(500, 64), f32]) {
  (nn.relu(nn.conv2d(%x, %w)), nn.dense(%a, %b), nn.dense(%c, %d))
}
EOF
"$tvmcc" compile product.relay --target=cuda --mixed-precision --emit=cu -o product.cu || exit 1
for call in mma_f16 mma_s8 async_copy; do
    grep -q "$call(&" product.cu || bad "no $call"
done
"$tvmcc" run product.relay -mcpu=x86-64 --outputs product.npz || exit 1
"$tvmcc" run product.relay --target=cuda --mixed-precision --expect product.npz --rtol 2e-3 >out || bad "wrong"

# Few cores make large tiles.
printf 'tvmcc-machine 1\narch gpu\nunits 2\nunit_wait 2000\n' >few.machine

# Sums that go through shared memory, since slow caches make parts of sectors dear: lines of pixels of any length, edges in
# rows and columns.
cat >stored.relay <<EOF
fn @main(%x: Tensor[(5, 32, 9, 11), f32], %w: Tensor[(48, 32, 1, 1), f32], %r: Tensor[(5, 48, 9, 11), f32],
         %y: Tensor[(2, 16, 14, 14), f32], %v: Tensor[(70, 16, 3, 3), f32], %q: Tensor[(2, 70, 14, 14), f32],
         %e: Tensor[(70, 64), f32], %f: Tensor[(50, 64), f32], %g: Tensor[(70, 50), f32]) {
  (cast(nn.relu(add(nn.conv2d(%x, %w), %r)), dtype="f16"), cast(add(nn.conv2d(%y, %v, padding=[1, 1, 1, 1]), %q), dtype="f16"),
   cast(add(nn.dense(%e, %f), %g), dtype="f16"))
}
EOF
"$tvmcc" run stored.relay -mcpu=x86-64 --outputs stored.npz || exit 1
printf 'tvmcc-machine 1\narch gpu\nunit_rate 1\n' >slow.machine
printf 'tvmcc-machine 1\narch gpu\nunits 2\nunit_rate 4\nunit_wait 100\n' >both.machine
for tiles in slow both; do
    "$tvmcc" compile stored.relay --target=cuda --machine=$tiles.machine --mixed-precision --emit=sched -o stored.sched || exit 1
    [ "$(grep -c '\.save shared' stored.sched)" -ge 2 ] || bad "sums are stored as they are"
    "$tvmcc" run stored.relay --target=cuda --machine=$tiles.machine --mixed-precision --expect stored.npz --rtol 2e-3 >out || bad "wrong"
done

# A kernel that shares more than it may declare: it is granted the memory when it is loaded, its launches give it.
echo 'fn @main(%x: Tensor[(512, 128), f32], %w: Tensor[(384, 128), f32]) { nn.dense(%x, %w) }' >wide.relay
"$tvmcc" compile wide.relay --target=cuda --machine=few.machine --mixed-precision --emit=cu -o wide.cu || exit 1
grep -q "given_memory + 0" wide.cu || bad "it declares all that it shares"
"$tvmcc" run wide.relay -mcpu=x86-64 --outputs wide.npz || exit 1
rm -f log
"$tvmcc" run wide.relay --target=cuda --machine=few.machine --mixed-precision --expect wide.npz --rtol 2e-3 >out || bad "wrong"
[ "$(calls cuFuncSetAttribute)" = 1 ] || bad "the memory is not granted once"
MOCK_CUDA_FAIL=cuFuncSetAttribute "$tvmcc" run wide.relay --target=cuda --machine=few.machine --mixed-precision >out 2>&1 && bad "granted"
grep -q "CUDA error 2, out of memory" out || bad "no reason"

# Machine code for two generations and PTX for later ones; equal bytes whatever the cache has.
two="cuda -arch=sm_80 -arch=sm_90"
"$tvmcc" compile "$model/digits.onnx" --target="$two" --emit=so -o libdigits.so || exit 1
mkdir again
"$tvmcc" compile "$model/digits.onnx" --target="$two" -fno-cache --emit=so -o again/libdigits.so || exit 1
cmp libdigits.so again/libdigits.so || exit 1
for gpu in 80 86 90 120; do
    MOCK_CUDA_ARCH=$gpu check 0 agrees ./libdigits.so
done
MOCK_CUDA_ARCH=75 check 1 "no kernel image is available for execution on the device" ./libdigits.so

# What fails ends in a message, and all that was made until then is given back: else the mock ends the process.
for call in cuMemAlloc_v2 cuModuleLoadDataEx cuModuleGetFunction cuStreamBeginCapture_v2 cuStreamEndCapture \
    cuGraphInstantiateWithFlags cuLaunchKernel cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuGraphLaunch \
    cuStreamSynchronize; do
    MOCK_CUDA_FAIL=$call check 1 "CUDA error 2, out of memory" ./libdigits.so
done
MOCK_CUDA_FAIL=cuStreamCreate check 1 "the device gives no stream" ./libdigits.so
MOCK_CUDA_FAIL=cuDevicePrimaryCtxRetain check 1 "the device gives no context" ./libdigits.so
MOCK_CUDA_FAIL=cuInit check 1 "no CUDA device" ./libdigits.so
MOCK_CUDA_FAIL=cuMemAllocHost_v2 check 0 agrees ./libdigits.so # without staging memory copies wait
check 0 agrees ./libdigits.so --device-number 1
check 1 "no device of that number" ./libdigits.so --device-number 2
check 2 "is a number from 0, not '-1'" ./libdigits.so --device-number=-1
"$tvmcc" doctor >out
[ "$(grep -c '^CUDA .*mock GPU [01] of sm_80' out)" = 2 ] || bad "doctor lists no devices"
MOCK_CUDA_ARCH=86 "$tvmcc" compile "$model/digits.onnx" --target="cuda -arch=native" --emit=plan -o - | grep -q '^target "cuda -arch=sm_86' ||
    bad "-arch=native"

# The tensors of a run in the device's memory, which is given back (the mock says what was not).
"$tvmcc" bench ./libdigits.so --device-memory --repeat=2 >out 2>&1 || bad "--device-memory"
grep -q "^digits, .* ms min" out || bad "--device-memory"

# A kernel has 512 arguments, an offset beside each tensor.
{
    echo "fn @main($(seq -s ', ' -f '%%x%g: Tensor[(2,), f32]' 300)) {"
    echo "  concatenate(($(seq -s ', ' -f '%%x%g' 300)), axis=0)"
    echo "}"
} >many.relay
"$tvmcc" run many.relay --fill-mode=random --outputs many.npz >out 2>&1 || bad "run many.relay"
"$tvmcc" run many.relay --target=cuda --fill-mode=random --expect many.npz >out 2>&1 || bad "many tensors"
grep -q agrees out || bad "many tensors"
for target in nvptx rocm; do
    "$tvmcc" -c many.relay --target=$target -o many.o || bad "many tensors, $target"
done

# Times of launches are the device's; a driver that cannot tell them leaves the host's.
profile() { rm -f log; "$tvmcc" profile ./libdigits.so --repeat=3 "$@" >out 2>&1 || bad "profile $*"; }
has() { grep -q "$1" out || bad "no '$1'"; }
profile
has "^timer: device timers$" && has "a GPU of sm_80 makes 19491.8 GFLOP/s and reads 1555.0 GB/s"
[ "$(calls cuEventDestroy_v2)" = "$(calls cuEventCreate)" ] && [ "$(calls cuEventCreate)" -gt 4 ] || bad "events"
awk '/% .* step / && !($3 > 0) { exit 1 }' out || bad "a kernel takes no time"
profile --json
has '"timer": "device timers"'
LD_LIBRARY_PATH="$mock/old:$LD_LIBRARY_PATH" profile
has "^timer: host clock, launch and wait included (launches cannot be timed: the driver's library is too old)$"
grep -q "GFLOP/s and" out && bad "a peak without timers"
LD_LIBRARY_PATH="$mock/old:$LD_LIBRARY_PATH" profile --json
has '"timer": "host clock"' && has '"peak_gflops": null, "gbytes": null'
for call in cuEventCreate cuEventRecord cuEventElapsedTime cuLaunchHostFunc; do
    MOCK_CUDA_FAIL=$call "$tvmcc" profile ./libdigits.so >out 2>&1 && bad "$call does not fail"
    has "$call failed with CUDA error 2, out of memory"
done

# Compilers that are not there, that know no such GPU; nvcc.
compile() { "$tvmcc" -c "$model/digits.onnx" -fno-cache --target="$1" -o d.o >out 2>&1; }
compile "cuda -arch=sm_61" && bad "sm_61 is compiled"
grep -q "NVRTC 13.0 makes no code for 'sm_61'" out && grep -q "it knows sm_75, sm_80" out || bad "sm_61"
TVMCC_NVRTC=/nothing compile cuda
[ $? = 9 ] && grep -q "'/nothing', which is neither NVRTC nor nvcc \[E0801\]" out || bad "no NVRTC"
cat >nvcc <<'SH'
#!/bin/sh
echo "$*" >>"${0%/*}/nvcc.log"
while [ "$1" != -o ]; do shift; done
echo "made by nvcc" >"$2"
SH
chmod +x nvcc
TVMCC_NVRTC="$work/nvcc" compile cuda || bad "nvcc"
grep -q "^-cubin -arch=sm_80 -fmad=false --std=c++17 -o" nvcc.log || bad "$(cat nvcc.log)"
grep -q "^-ptx -arch=compute_80 " nvcc.log && grep -q "made by nvcc" d.o || bad "no code of nvcc"
echo "all as expected"
