#!/bin/bash
# matrix.sh <build of tvmcc> <work folder> <generator> <platform> <type>
#
# One cell of the matrix: <generator> is a generator of CMake, <platform> is native, aarch64 or android,
# <type> is STATIC, OBJECT or SHARED.  Configure, build, run, verify; nothing to do; touch; another tuning
# log; other weights; other arithmetic in one kernel; install; use from another project.
set -e
here=$(cd "$(dirname "$0")" && pwd)
generator=$3 platform=$4 type=$5
. "$here/lib.sh" "$1" "$2"

options=("-DTYPE=$type" -DCMAKE_BUILD_TYPE=Release) machine="$(uname -m)" run=yes target=()
case $platform in
native) ;;
aarch64)
    command -v clang-19 ld.lld-19 qemu-aarch64-static >/dev/null && [ -f /usr/aarch64-linux-gnu/lib/libc.so.6 ] ||
        skip "no C library or emulator for aarch64"
    cat >toolchain.cmake <<'END'
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64-static;-L;/usr/aarch64-linux-gnu")
END
    options+=("-DCMAKE_TOOLCHAIN_FILE=$work/toolchain.cmake") machine=AArch64
    target=(--target=aarch64-linux-gnu)
    ;;
android)
    command -v clang-19 ld.lld-19 llvm-ifs-19 qemu-aarch64-static >/dev/null || skip "no clang-19, llvm-ifs-19 or qemu"
    quiet "$here/ndk.sh" "$work/ndk"
    options+=(-DCMAKE_SYSTEM_NAME=Android "-DCMAKE_ANDROID_NDK=$work/ndk" -DCMAKE_ANDROID_ARCH_ABI=arm64-v8a
        -DCMAKE_ANDROID_STL_TYPE=none -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64-static)
    machine=AArch64
    target=(--target=aarch64-none-linux-android21)
    # Android's loader is not here: a static program runs, a dynamic one is only linked.
    if [ "$type" = SHARED ]; then run=no; else options+=(-DAPP_OPTIONS=-static); fi
    ;;
esac
[ "$platform" = native ] || unset CC CFLAGS LDFLAGS # of a sanitized build, for this machine
config=Release
case $generator in "Ninja Multi-Config") options+=(-DCMAKE_CONFIGURATION_TYPES=Release\;Debug) ;; esac

cp -r "$here/matrix/app" "$here/matrix/consume" .
cp "$here"/../../examples/digits/{digits.onnx,inputs.npz,outputs.npz} app/
model() { # <alpha> <weight> <result>
    sed "s/@ALPHA@/$1/; s/@WEIGHT@/$2/" app/net.relay.in >app/net.relay.new
    mv app/net.relay.new app/net.relay
    echo "#define EXPECT ${3}f" >app/expect.h
}
make() { quiet "$cmake" --build "${1:-b}" --config $config; }
try() { [ $run = no ] || (cd "${1:-b}" && quiet ctest -C $config); }
# How many kernels the last build compiled.
compiled() { sed -n 's/.*kernels: .* \([0-9]*\) compiled.*/\1/p' log | awk '{ n += $1 } END { print n + 0 }'; }
idle() { # nothing is compiled or linked
    make
    case $generator in
    Ninja*) grep -q "no work to do" log || { cat log; die "$1: there is work to do"; } ;;
    *) ! grep -qE "Compiling|Linking|Building|tvmcc:" log || { cat log; die "$1: something is made again"; } ;;
    esac
}

model 0.25 0.0625 -1.0
quiet "$build/bin/tvmcc" app/net.relay "${target[@]}" --emit=log -o app/net.log # what the rules would do
configure app b -G "$generator" "${options[@]}"
make
kernels=$(compiled)
[ "$kernels" -ge 2 ] || { cat log; die "$kernels kernels compiled at first"; }
try
idle "a second build"

later && touch app/net.relay
make
! grep -q "Linking" log || { cat log; die "a touched model links again"; }
[ "$(compiled)" = 0 ] || { cat log; die "a touched model compiles kernels"; }
idle "after a touch"

later && echo "# a remark" >>app/net.log
make
[ "$(compiled)" = 0 ] && ! grep -q "Linking" log || { cat log; die "a remark in the tuning log compiles or links"; }
later && awk -F'|' -v OFS='|' '/^1 / && !done && NF == 5 && $5 ~ /[a-z]/ { $5 = " "; done = 1 } { print }' app/net.log >log.new
! cmp -s log.new app/net.log && mv log.new app/net.log
make
[ "$(compiled)" = 1 ] || { cat log; die "another schedule of one kernel compiles $(compiled) kernels"; }
try

later && model 0.25 0.03125 -0.5
make
[ "$(compiled)" = 0 ] || { cat log; die "other weights compile kernels"; }
case $generator in
Ninja*) ! grep -q "Compiling kernels" log || { cat log; die "other weights run code generation"; } ;;
esac
try
idle "after other weights"

later && model 0.5 0.03125 -1.0
make
[ "$(compiled)" = 1 ] || { cat log; die "another alpha compiles $(compiled) kernels, not one"; }
try

quiet "$cmake" --install b --config $config --prefix "$work/prefix"
find prefix -type f | sort >files
for file in include/net.h include/tvmcc/abi.h 'lib/.*cmake/net/netConfig.cmake' 'lib/.*pkgconfig/net.pc'; do
    grep -q "prefix/$file" files || { cat files; die "$file is not installed"; }
done
case $platform in android)
    [ $type = OBJECT ] || grep -q share/net/Android.mk files || { cat files; die "Android.mk is not installed"; }
    ;;
esac

# The tree of the first project may go, and the installed files may move.
mv b gone && mv prefix moved && mv app/net.relay net.relay
quiet "$cmake" -S consume -B c -G "$generator" "${options[@]}" "-Dnet_DIR=$work/$(dirname "$(sed -n 's,^prefix/\(.*netConfig.cmake\),moved/\1,p' files)")"
make c
try c
app=$(find c -name app -type f -perm -u+x | head -n 1)
readelf -h "$app" | grep -qi "Machine:.*${machine/_/.}" || { readelf -h "$app"; die "the program is for another machine"; }
if [ "$platform$type" = androidSHARED ]; then
    so=$(find moved -name 'libnet.so')
    readelf -d "$so" | grep -q 'SONAME.*libnet.so' || die "SONAME of $so"
    ! readelf -d "$so" | grep -q TEXTREL || die "text relocations in $so"
    readelf -d "$app" | grep -q 'NEEDED.*libnet.so' || die "NEEDED of $app"
fi

# pkg-config finds the same, from wherever it lies.
if [ "$platform" = native ] && command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=$work/$(dirname "$(sed -n 's,^prefix/\(.*net.pc\),moved/\1,p' files)")
    quiet ${CC:-cc} $CFLAGS app/main.c -o plain $(pkg-config --cflags --libs net)
    LD_LIBRARY_PATH=$(pkg-config --variable=libdir net) quiet ./plain
fi
cd / && rm -rf "$work"
