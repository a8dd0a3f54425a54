#!/bin/sh
# digits.sh <tvmcc> <source> <work> <mock>: code objects of the digits network and of kernels of every rule: what is in them,
# by LLVM's tools; the same text as LLVM's linker makes of LLVM's assembly; which of several a GPU takes, on the mock of HIP.
tvmcc=$1 model=$2/examples/digits here=$2/tests/backends/rocm work=$3/rocm mock=$4
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 2
export LD_LIBRARY_PATH="$mock${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" TVMCC_CACHE_DIR="$work/cache"

bad() { echo "failed: $*"; tail -5 out 2>/dev/null; exit 1; }
tool() { command -v "$1-19" || command -v "$1" || ls /usr/lib/llvm-19/bin/"$1" 2>/dev/null; }
readelf=$(tool llvm-readelf) mc=$(tool llvm-mc) lld=$(tool ld.lld)
[ -n "$readelf" ] && [ -n "$mc" ] && [ -n "$lld" ] || bad "LLVM's tools are missing"

cat >kernels.relay <<'END'
fn @main(%x: Tensor[(1, 40, 9, 11), f32], %w: Tensor[(37, 40, 2, 2), f32], %c: Tensor[(640, 64), f32],
         %d: Tensor[(500, 64), f32], %e: Tensor[(2, 300), f16]) {
  (nn.relu(nn.conv2d(%x, %w)), nn.dense(%c, %d), nn.softmax(%e), sum(%c, axis=[0, 1]), power(%c, %c))
}
END

# Of two GPUs; equal bytes whatever the cache has.
two="rocm -mcpu=gfx90a -mcpu=gfx1100"
"$tvmcc" -c kernels.relay --target="$two" -fno-cache -o kernels.o || exit 1
"$tvmcc" -c kernels.relay --target="$two" -o again.o || exit 1
cmp kernels.o again.o || exit 1
"$tvmcc" -c kernels.relay --target="$two" -o again.o && cmp kernels.o again.o || exit 1
python3 "$here/code_objects.py" kernels.o objects || exit 1
[ "$(ls objects | wc -l)" -gt 12 ] || bad "only $(ls objects | wc -l) code objects"
for object in objects/*; do
    "$readelf" -hlS --dyn-syms --notes "$object" >out 2>&1 || bad "$object is no ELF file"
    grep -qi "warning\|error" out && bad "$object"
    grep -Eq "gfx90a|gfx1100" out && grep -q "DYN (Shared object file)" out || bad "$object: which GPU"
    for field in vgpr_spill_count sgpr_spill_count private_segment_fixed_size; do
        grep -Eq "\.$field: +0$" out || bad "$object spills: $field"
    done
    name=$(sed -n 's/^ *\.name: *//p' out | tail -1)
    grep -Eq "OBJECT +GLOBAL .* $name.kd$" out && grep -Eq "FUNC +GLOBAL .* $name$" out || bad "$object: no symbols of $name"
    grep -q "ABI Version: *2$" out && ! grep -A2 "amdhsa.version" out | grep -q -- "- [2-9]" || bad "$object is not of version 4"
    # arguments and nothing beside them
    [ "$(grep -c 'value_kind: *hidden' out)" = 0 ] || bad "$object: hidden arguments"
    args=$(grep -c '\.value_kind:' out) bytes=$(sed -n 's/^ *\.kernarg_segment_size: *//p' out)
    [ "$bytes" = $((8 * args)) ] || bad "$object: $args arguments of $bytes bytes"
done

# LLVM's linker, of LLVM's assembly of the best GPU.
"$tvmcc" compile kernels.relay --target="$two" --emit=gcn -o kernels.gcn || exit 1
python3 "$here/code_objects.py" kernels.gcn texts || exit 1
for text in texts/*; do
    name=$(basename "$text")
    "$mc" -triple=amdgcn-amd-amdhsa -mcpu=gfx1100 -mattr=+wavefrontsize64 -filetype=obj "$text" -o linked.o || bad "$text"
    "$lld" -shared linked.o -o linked || bad "$text"
    python3 "$here/code_objects.py" "objects/$name.gfx1100" linked || bad "$name is not what ld.lld makes"
done

# A product takes the code of its GPU; what has none says so.  The mock knows the kernels and cannot run them.
"$tvmcc" compile "$model/digits.onnx" --target="$two" --emit=so -o libdigits.so || exit 1
run() { "$tvmcc" run ./libdigits.so --inputs "$model/inputs.npz" --expect "$model/outputs.npz" >out 2>&1; }
for mach in 0x3f 0x41; do
    MOCK_HIP_MACH=$mach run && bad "a code object was run"
    grep -q "failed with ROCm error 719" out || bad "$mach: another error"
done
MOCK_HIP_MACH=0x4c run && bad "code of another GPU was taken"
grep -q "gfx1100: hipModuleLoadDataEx failed with ROCm error 209.*gfx90a: hipModuleLoadDataEx failed" out || bad "gfx942"
MOCK_CUDA_FAIL=hipInit run && bad "no driver, and yet a run"
grep -q "no ROCm device" out || bad "no device"
"$tvmcc" doctor >out
[ "$(grep -c '^ROCm .*mock GPU [01]' out)" = 2 ] || bad "doctor lists no devices"

# The oldest HIP, whose library has its version's name alone, and which cannot hold a stream up.
export LD_LIBRARY_PATH="$mock/old"
run && bad "a code object was run"
grep -q "failed with ROCm error 719, unspecified launch failure" out || bad "ROCm 5.2"
echo "all as expected"
