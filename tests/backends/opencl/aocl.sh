#!/bin/sh
# aocl.sh <tvmcc> <source> <work> <aoc>: FPGAs and their emulator by the compiler's mock: how it is called, the cache, what
# is said where it is not there or fails; and, on the OpenCL device here, what its programs compute.
tvmcc=$1 model=$2/examples/digits work="$3/aocl it's \$odd" aoc=$4
rm -rf "$work" && mkdir -p "$work/bin" "$work/cl" "$work/tmp" && cd "$work" || exit 2
export TMPDIR="$work/tmp" POCL_CACHE_DIR="$work/cl" TVMCC_CACHE_DIR="$work/cache" MOCK_AOC_LOG="$work/log"
unset TVMCC_AOC INTELFPGAOCLSDKROOT

bad() { echo "$*"; cat out 2>/dev/null; exit 1; }
has() { grep -q -e "$1" out || bad "no '$1'"; }
compile() { "$tvmcc" -c "$model/digits.onnx" -o d.o "$@" >out 2>&1; }
calls() { grep -c . log 2>/dev/null; }

# There is none, or none where it should be; the text needs none.
if ! command -v aoc >/dev/null; then
    for target in aocl aocl_sw_emu; do
        compile --target=$target
        [ $? = 9 ] || bad "$target without a compiler"
        has "and there is no 'aoc' \[E0801\]"
        has "hint: install Intel's FPGA SDK for OpenCL"
    done
    "$tvmcc" doctor >out || bad "doctor"
    has "^for aocl  *-  its compiler: install Intel's FPGA SDK"
fi
TVMCC_AOC="$work/bin" compile --target=aocl_sw_emu
[ $? = 9 ] || bad "a folder is a compiler"
has "TVMCC_AOC is '$work/bin', which is no program \[E0801\]"
has "hint: it names the compiler alone"
"$tvmcc" compile "$model/digits.onnx" --target=aocl_sw_emu --emit=cl -o digits.cl || exit 1
[ "$(grep -c __kernel digits.cl)" -gt 4 ] || bad "no kernels in the text"
[ "$(grep -c __kernel digits.cl)" = "$(grep -c '^__attribute__((reqd_work_group_size([0-9]*, [0-9]*, [0-9]*)))$' digits.cl)" ] || bad "groups have no size"
compile --target=cuda --emit=cl && bad "CUDA has a .cl"
has "hint: say --target=opencl"

# How it is called, wherever it is found; nothing of what it writes or says comes among our files or products.
ln -s "$aoc" bin/aoc
export MOCK_AOC_PACK=1
PATH="$work/bin:$PATH" compile --target=aocl_sw_emu || bad "of PATH"
PATH="bin:$PATH" compile --target=aocl -fno-cache || bad "of a relative PATH"
INTELFPGAOCLSDKROOT="$work" compile --target="aocl -device=a10gx" || bad "of the SDK"
export TVMCC_AOC=bin/aoc
compile --target="aocl -device=a10gx -device=s5_ref:s5" || bad "of two boards"
cat >want <<END
-march=emulator -o program.aocx program.cl
-o program.aocx program.cl
-board=a10gx -o program.aocx program.cl
-board=a10gx -o program.aocx program.cl
-board=s5_ref:s5 -o program.aocx program.cl
END
[ "$(tail -n 2 log | sort)" = "$(tail -n 2 want)" ] && [ "$(head -n 3 log)" = "$(head -n 3 want)" ] || bad "$(cat log)"
grep -q "__kernel void k_" d.o || bad "no program in the object"
ls -d program* 2>/dev/null && bad "its files lie here"
"$tvmcc" -c "$model/digits.onnx" --target=aocl_sw_emu -fno-cache -o - >direct.o 2>out || bad "to stdout"
has "Environment checks"
compile --target=aocl_sw_emu && cmp d.o direct.o || bad "its messages are in the object"
[ "$(calls)" = 6 ] || bad "the cache is not used"
"$tvmcc" doctor >out || bad "doctor"
has "^for aocl  *aoc, [0-9]* bytes"

# Names of boards, as every word of a command, are taken as they are.
for board in "" "a'b" '$(touch)' "-o"; do
    compile --target="aocl -device=$board" && bad "the board '$board'"
    has "'-device=$board' is no name of a board"
done
compile --target="aocl -max_threads_per_block=1025" && bad "large groups"
has "a block has 1 to 1024 threads"

# It fails, it ends without a file.
MOCK_AOC_FAIL="too many multipliers" compile --target="aocl -device=big"
[ $? = 1 ] || bad "a failure"
has "^Error: too many multipliers$"
has "the kernels are not compiled for big: '$work/bin/aoc' ends with status 1; what it said stands above"
printf '#!/bin/sh\n' >silent && chmod +x silent
TVMCC_AOC=./silent compile --target=aocl && bad "no result"
has "the kernels are not compiled: '$work/./silent' left no result"
[ -z "$(ls tmp)" ] || bad "temporary files are left"

# What runs.
unset MOCK_AOC_PACK
check() {
    "$tvmcc" run "$@" --inputs "$model/inputs.npz" --expect "$model/outputs.npz" >out 2>&1 && grep -q agrees out && return
    grep -q "no OpenCL device" out && { echo "SKIP (no OpenCL device)"; exit 77; }
    bad "run $*"
}
rm -rf cache
check "$model/digits.onnx" --target=aocl_sw_emu
check "$model/digits.onnx" --target=aocl -O0
"$tvmcc" compile "$model/digits.onnx" --target="aocl -device=other -device=here" --emit=so -o libdigits.so 2>out || bad "two boards"
grep -q "of another board" libdigits.so || bad "no program of the first board"
grep -q "__kernel" libdigits.so && bad "it has the text"
"$tvmcc" inspect libdigits.so >out || bad inspect
has ", aocl -device=other -device=here, llvm "
"$tvmcc" audit libdigits.so >out 2>&1 || bad audit
check ./libdigits.so
cat >manifest.yaml <<YAML
schema: tvm-manifest/1
hosts: {pc: {triple: x86_64-linux-gnu}}
targets: {fpga: {kind: aocl, device: here, max_threads_per_block: 512}}
pairs: {fpga: {host: pc, target: fpga}}
project: {name: p, version: "1"}
models: {digits: {source: "$model/digits.onnx", pairs: [fpga]}}
YAML
"$tvmcc" check --json -m manifest.yaml >out 2>&1 || bad "the manifest"
has '"target": "aocl -device=here -max_threads_per_block=512, llvm '
check "$model/digits.onnx" --target="aocl -device=here -max_threads_per_block=512"
cat >all.relay <<'RELAY'
fn @main(%x: Tensor[(2, 6, 19, 17), f32], %w: Tensor[(10, 3, 3, 5), f32], %r: Tensor[(3, 300), f32], %a: Tensor[(32, 64), f32],
         %b: Tensor[(48, 64), f32]) {
  (nn.conv2d(%x, %w, padding=[2, 4, 2, 4], strides=[2, 1], dilation=[2, 2], groups=2), nn.softmax(%r), sum(%r, axis=[0, 1]),
   nn.relu(nn.dense(%a, %b)))
}
RELAY
"$tvmcc" run all.relay --fill-mode=random --outputs all.npz >out 2>&1 || bad "on the CPU"
"$tvmcc" run all.relay --fill-mode=random --target=aocl_sw_emu --expect all.npz >out 2>&1 || bad "all.relay"
has agrees

# A program for another device.
"$tvmcc" run "$model/digits.onnx" --target="aocl -device=other" --inputs "$model/inputs.npz" >out 2>&1 && bad "another board's"
has "clCreateProgramWithBinary failed with OpenCL error -42, the binary is for another device"
echo "all as expected"
