#!/bin/bash
# doctor.sh <tvmcc> <source folder>
#
# tvmcc doctor: finds what is in PATH and nothing else, names a package for all that is missing, says
# the same as JSON, and knows the cache.
tvmcc=$1 source=$2 status=0
work=$(mktemp -d) && cd "$work" && trap 'rm -rf "$work"' EXIT || exit 2
bad() { echo "$*"; cat out; status=1; }
mkdir bin none
printf '#!/bin/sh\n' >bin/ninja && chmod +x bin/ninja
touch bin/cmake # not a program

run() { env -i VK_ICD_FILENAMES=/nonexistent HOME="$work/home" PATH="$work/bin" "$tvmcc" doctor "$@" >out 2>err; }
run || bad "status $?"
[ ! -s err ] || { cat err; bad "messages"; }
grep -qE "^ninja +$work/bin/ninja$" out || bad "ninja is not found"
grep -qE '^Metal +-  no libMetal.so: there is none for this system$' out || [ "$(uname)" = Darwin ] || bad "Metal is something to install"
grep -qE '^cmake +-  projects with add_tvm_model\(\): apt-get install cmake$' out || bad "cmake is found"
grep -qE '^thumbv7em-none-eabi +no emulator: apt-get install qemu-system-arm$' out || bad "an emulator is found"
grep -qE "^cache +$work/home/.cache/tvmcc: 0 kernels, 0.0 MiB of 2048 MiB$" out || bad "the cache"
grep -qE '^processor +[a-z0-9-]+ of [a-z0-9_]+-.*: [0-9]+-byte vectors' out || bad "the processor"
[ ! -e home/.cache/tvmcc ] || bad "the folder of the cache was made"
grep -qE "^for aocl +-  its compiler: install Intel's FPGA SDK" out || bad "a compiler for FPGAs is found"
sed -n 's/^TOOL("\([^"]*\)".*/\1/p; s/^MACHINE("\([^"]*\)".*/\1/p' "$source/driver/doctor.def" |
    while read -r name; do grep -q "^$name " out || { echo "nothing about $name"; exit 1; }; done || status=1

# Compiled kernels are counted.
env -i VK_ICD_FILENAMES=/nonexistent HOME="$work/home" PATH="$work/bin" "$tvmcc" -c "$source/examples/digits/digits.onnx" -mcpu=native \
    -o d.o || bad "compile"
run
grep -qE '^cache .*: [1-9][0-9]* kernels' out || bad "the cache is empty"
env -i VK_ICD_FILENAMES=/nonexistent PATH="$work/bin" "$tvmcc" doctor >out || bad "status $? without HOME"
grep -q '^cache  *-  no folder' out || bad "a cache without HOME"

run --json || bad "status $? of --json"
if command -v python3 >/dev/null; then
    python3 - "$work" <<'PY' || bad "the JSON"
import json, sys
d = json.load(open("out"))
tools = {t["name"]: t for t in d["tools"]}
assert tools["ninja"]["path"] == sys.argv[1] + "/bin/ninja", tools["ninja"]
assert tools["cmake"]["path"] is None and tools["cmake"]["packages"] == "cmake"
assert d["cache"]["entries"] > 0 and d["cache"]["max_bytes"] == 2 << 30
assert d["processor"]["vector_bytes"] in (4, 8, 16, 32, 64)
assert all(m["emulator"] is None for m in d["machines"])
assert {k["target"]: k["version"] for k in d["compilers"]}["aocl"] is None
assert isinstance(d["opencl"], list) and d["version"] and d["llvm"]
PY
fi
run net.onnx; [ $? = 2 ] || bad 'a file is taken'
grep -qx "tvmcc: error: doctor takes no file, not 'net.onnx' \[E0101\]" err || { cat err; status=1; }
exit $status
