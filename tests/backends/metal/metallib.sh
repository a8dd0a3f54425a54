#!/bin/sh
# metallib.sh <tvmcc> <source> <work> <mock>: products with metallibs, by the tools in place of Apple's and the library in
# place of Metal's, both in <mock>: results, the cache, equal bytes, and what is said where the tools are not there or fail.
tvmcc=$1 model=$2/examples/digits work=$3/metallib mock=$4
rm -rf "$work" && mkdir -p "$work/tmp" && cd "$work" || exit 2
export LD_LIBRARY_PATH="$mock${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" MOCK_METAL_LOG="$work/log" MOCK_XCRUN_LOG="$work/tools"
export TVMCC_CACHE_DIR="$work/cache" TVMCC_XCRUN="$mock/xcrun" TMPDIR="$work/tmp"

bad() { echo "$*"; cat out 2>/dev/null; exit 1; }
# refused <status> <text> <words of the command ..>, with xcrun looked for in $tools_in
refused() {
    status=$1 text=$2
    shift 2
    PATH="${tools_in:-$PATH}" "$tvmcc" "$@" >out 2>&1
    was=$?
    [ $was = "$status" ] || bad "status $was, not $status, of $*"
    grep -q -e "$text" out || bad "no '$text' from $*"
    [ -z "$(ls tmp)" ] || bad "something is left of $*"
}
agrees() { refused 0 agrees run "$@" --inputs "$model/inputs.npz" --expect "$model/outputs.npz"; }
compile() { "$tvmcc" compile "$model/digits.onnx" --emit=so "$@" >out 2>&1 || bad "compile $*"; }

# Each kernel is compiled once, and the device compiles nothing.
agrees "$model/digits.onnx" --target="metal -metallib=13.0"
n=$(grep -c '^metallib' tools)
[ "$n" -gt 4 ] && [ "$(grep -c '^metal -c -mmacosx-version-min=13.0 ' tools)" = "$n" ] || bad "$(cat tools)"
[ "$(grep -c '^newLibraryWithData' log)" = "$n" ] && ! grep -q '^newLibraryWithSource' log || bad "other libraries are loaded"
rm tools
agrees "$model/digits.onnx" --target="metal -metallib=13.0"
! grep -qv '^metal --version$' tools || bad "the cache is not used"
agrees "$model/digits.onnx" --target="metal -metallib=14" # another system, other code
[ "$(grep -c '^metal -c -mmacosx-version-min=14 ' tools)" = "$n" ] || bad "$(cat tools)"

# Equal bytes each time; text and metallibs are different products, and the former need no tools.
compile --target="metal -metallib=13.0" -o libdigits.so
mkdir again
compile --target="metal -metallib=13.0" -fno-cache -o again/libdigits.so
cmp libdigits.so again/libdigits.so || exit 1
TVMCC_XCRUN=/nowhere/xcrun compile --target=metal -o again/libdigits.so
! cmp -s libdigits.so again/libdigits.so || bad "text and metallibs are one"
TVMCC_XCRUN=/nowhere/xcrun agrees ./libdigits.so
TVMCC_XCRUN=/nowhere/xcrun "$tvmcc" compile "$model/digits.onnx" --target="metal -metallib=13.0" --emit=metal -o text || exit 1

# A relative name; one in PATH; for iOS.
mkdir bin && cp "$mock/xcrun" bin/xcrun
TVMCC_XCRUN=bin/xcrun compile --target="metal -metallib=13.0" -fno-cache -o again/libdigits.so
cmp libdigits.so again/libdigits.so || exit 1
TVMCC_XCRUN='' PATH="$work/bin:$PATH" compile --target="metal -metallib=13.0" -fno-cache -o again/libdigits.so
cmp libdigits.so again/libdigits.so || exit 1
rm tools
"$tvmcc" -c "$model/digits.onnx" --target="metal -metallib=16.0" --host="llvm -mtriple=arm64-apple-ios16.0" -o ios.o || exit 1
[ "$(grep -c '^metal -c -mios-version-min=16.0 ' tools)" = "$n" ] || bad "$(cat tools)"
grep -aq "MTLB iphoneos 16.0" ios.o || bad "no metallib for iOS"

# What is older than a metallib's system, and what cannot be loaded.
MOCK_METAL_SYSTEM=12 refused 1 "k_.* failed: the function's deployment target is incompatible with this OS" run ./libdigits.so --fill-mode=random
MOCK_METAL_FAIL=newLibraryWithData refused 1 "a metallib failed: the compiler is out of order" run ./libdigits.so --fill-mode=random
sed 's/MTLB macosx 13/MTLX macosx 13/' libdigits.so >again/libdigits.so
refused 1 "a metallib failed: Invalid library file" run again/libdigits.so --fill-mode=random

# Tools that are not there, or fail.
lib="--target=metal -metallib=13.0"
TVMCC_XCRUN=/nowhere/xcrun refused 9 "'/nowhere/xcrun -sdk macosx metal' does not run: No such file" -c "$model/digits.onnx" "$lib" -o x.o
TVMCC_XCRUN='' tools_in="$work/none" refused 9 "'xcrun -sdk macosx metal' does not run: No such file" -c "$model/digits.onnx" "$lib" -o x.o
grep -q "^hint: Xcode has them.*without '-metallib='" out || bad "no hint"
MOCK_XCRUN_FAIL=version refused 9 'does not run: xcrun: error: unable to find utility "metal"' -c "$model/digits.onnx" "$lib" -o x.o
MOCK_XCRUN_FAIL=metal refused 1 "is not compiled for macosx13.0: kernel.metal:[0-9:]* error: unknown type name 'no'" \
    -c "$model/digits.onnx" "$lib" -fno-cache -o x.o
MOCK_XCRUN_FAIL=metallib refused 1 "is not compiled for macosx13.0: status 3" -c "$model/digits.onnx" "$lib" -fno-cache -o x.o
[ ! -e x.o ] || bad "an object of what failed"
echo "all as expected"
