#!/bin/bash
# triples.sh <build of tvmcc> <work folder>
#
# The triple that a model gets from the project's toolchain.  No compiler is run for most of them: it is
# the variables that count.
set -e
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh" "$1" "$2"
sed 's/@ALPHA@/0.25/; s/@WEIGHT@/0.0625/' "$here/matrix/app/net.relay.in" >net.relay
mkdir cross
cat >cross/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.23)
project(x NONE)
find_package(Tvmcc REQUIRED)
set(CMAKE_C_COMPILER_WORKS 1)
tvm_generate(objects MODEL $work/net.relay \${KEYWORDS})
add_custom_target(x DEPENDS \${objects})
END
lower() { # <option of cmake>...: the command of the lowering step, in the file `commands`
    rm -rf x
    configure cross x -G Ninja -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=BOTH "$@"
    ninja -C x -t commands x | grep -- --emit=plan >commands
}
says() { grep -q -- "$1" commands || { cat commands; die "$2"; }; } # <words> <what is wrong without>
triple() { # <expected> <option of cmake>...
    lower "${@:2}"
    grep -q -- "--target=$1 " commands || { cat commands; die "no --target=$1 with ${*:2}"; }
}
linux=-DCMAKE_SYSTEM_NAME=Linux
triple aarch64-linux-gnu $linux -DCMAKE_SYSTEM_PROCESSOR=aarch64
triple aarch64-linux-gnu $linux -DCMAKE_SYSTEM_PROCESSOR=arm64
triple riscv64-linux-gnu $linux -DCMAKE_SYSTEM_PROCESSOR=riscv64
triple x86_64-linux-gnu $linux -DCMAKE_SYSTEM_PROCESSOR=x86_64
triple armv7a-linux-gnueabihf $linux -DCMAKE_SYSTEM_PROCESSOR=armv7l
triple armv7a-linux-gnueabi $linux -DCMAKE_SYSTEM_PROCESSOR=armv7l -DCMAKE_C_COMPILER=/opt/bin/arm-linux-gnueabi-gcc
triple armv7a-linux-gnueabihf -DCMAKE_C_COMPILER_TARGET=armv7a-linux-gnueabihf
triple aarch64-linux-gnu -DCMAKE_CXX_COMPILER_TARGET=aarch64-linux-gnu
if command -v clang-19 >/dev/null; then # asked for its predefined macros
    triple armv7a-linux-gnueabihf $linux -DCMAKE_SYSTEM_PROCESSOR=armv7-a -DCMAKE_C_COMPILER=clang-19 \
        "-DCMAKE_C_FLAGS=--target=arm-linux-gnueabihf -mfpu=neon"
    triple armv7a-linux-gnueabi $linux -DCMAKE_SYSTEM_PROCESSOR=armv7-a -DCMAKE_C_COMPILER=clang-19 \
        "-DCMAKE_C_FLAGS=--target=arm-linux-gnueabihf -mfloat-abi=softfp"
fi

# Android: the variables of CMake, and those of the NDK's toolchain file.
android="-DCMAKE_SYSTEM_NAME=Android -DCMAKE_SYSTEM_VERSION=1"
triple aarch64-linux-android29 $android -DCMAKE_ANDROID_ARCH_ABI=arm64-v8a -DCMAKE_ANDROID_API=29
triple armv7a-linux-androideabi21 $android -DCMAKE_ANDROID_ARCH_ABI=armeabi-v7a
triple x86_64-linux-android30 $android -DCMAKE_ANDROID_ARCH_ABI=x86_64 -DCMAKE_ANDROID_API=30
ndk="$linux -DANDROID=1"
triple aarch64-linux-android26 $ndk -DANDROID_ABI=arm64-v8a -DANDROID_PLATFORM=android-26
triple armv7a-linux-androideabi24 $ndk -DANDROID_ABI=armeabi-v7a -DANDROID_PLATFORM=24
triple i686-linux-android21 $ndk -DANDROID_ABI=x86 -DANDROID_NATIVE_API_LEVEL=21
triple x86_64-linux-android33 $ndk -DANDROID_ABI=x86_64 -DANDROID_PLATFORM=latest -DANDROID_PLATFORM_LEVEL=33
triple aarch64-none-linux-android28 $ndk -DANDROID_ABI=arm64-v8a -DCMAKE_C_COMPILER_TARGET=aarch64-none-linux-android28
triple aarch64-linux-android28 $ndk -DANDROID_ABI=arm64-v8a -DANDROID_PLATFORM=28 -DCMAKE_C_COMPILER_TARGET=aarch64-linux-android

darwin=-DCMAKE_SYSTEM_NAME=Darwin
triple arm64-apple-macos13 $darwin -DCMAKE_OSX_ARCHITECTURES=arm64 -DCMAKE_OSX_DEPLOYMENT_TARGET=13.2
triple x86_64-apple-macos $darwin -DCMAKE_OSX_ARCHITECTURES=x86_64
triple x86_64-pc-windows-msvc -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_SYSTEM_PROCESSOR=AMD64
triple x86_64-w64-windows-gnu -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_SYSTEM_PROCESSOR=x86_64 -DMINGW=1

# Keywords and project variables come before the toolchain, keywords first.
triple riscv64-linux-gnu $linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 "-DKEYWORDS=HOST_TARGET;riscv64-linux-gnu"
triple riscv64-linux-gnu $linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DTVM_HOST_TARGET=riscv64-linux-gnu
triple aarch64-linux-gnu -DTVM_HOST_TARGET=riscv64-linux-gnu "-DKEYWORDS=HOST_TARGET;aarch64-linux-gnu"

# Position independence and optimisation follow the project; Android's code must be.
lower && says "-O3 -fPIC" "not -O3 -fPIC by default"
! grep -q -- "--target" commands || die "a target for a native build"
lower -DCMAKE_BUILD_TYPE=Debug && says "-O1 -fPIC" "Debug is not -O1"
lower -DCMAKE_BUILD_TYPE=MinSizeRel && says "-Os -fPIC" "MinSizeRel is not -Os"
lower -DCMAKE_POSITION_INDEPENDENT_CODE=OFF && says "-fno-pic" "CMAKE_POSITION_INDEPENDENT_CODE is ignored"
lower -DCMAKE_POSITION_INDEPENDENT_CODE=OFF $android -DCMAKE_ANDROID_ARCH_ABI=arm64-v8a
says "-fPIC" "code for Android is not position-independent"
cd / && rm -rf "$work"
