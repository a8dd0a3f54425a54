#!/bin/bash
# walk.sh <cmake> <build of tvmcc> <source> <work folder> [deb]
#
# The way of somebody who ships models, from one end to the other, with what is installed and nothing of the
# source tree: install; look at a model; a project in three generators, with models as libraries and as sources;
# three other machines under their emulators; two releases from a manifest, compared; new weights in a release;
# a release in a project for the wrong machine.  With `deb`, the Debian package too, which takes a minute to pack.
set -e
cmake=$(command -v "$1") build=$2 source=$3 work=$4
. "$(dirname "$0")/../lib.sh"
"$(dirname "$0")/../fresh" "$work" && cd "$work" || exit 2
export TVMCC_CACHE_DIR=$work/cache CTEST_OUTPUT_ON_FAILURE=1
ctest=$(dirname "$cmake")/ctest
says() { grep -qE -- "$1" log || { cat log; die "not said: $1"; }; }
step() { echo "== $*"; }

step "install"
quiet "$cmake" --install "$build" --prefix "$work/opt"
if [ "$5" = deb ]; then
    quiet cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work/deb"
    mkdir root && quiet dpkg-deb -x deb/*.deb root
    for file in bin/tvmcc share/man/man1/tvmcc.1.gz share/bash-completion/completions/tvmcc; do
        [ -s root/usr/$file ] || die "the .deb has no $file"
    done
    [ "$(root/usr/bin/tvmcc --version)" = "$(opt/bin/tvmcc --version)" ] || die "the .deb has another version"
fi
PATH=$work/opt/bin:$PATH
example=$work/opt/share/doc/tvmcc/examples/digits
quiet tvmcc doctor
checked=(--inputs "$example/inputs.npz" --expect "$example/outputs.npz")

step "a model, before anything is built"
mkdir look && cp "$example/digits.onnx" look && cd look
quiet tvmcc inspect digits.onnx
says "image.*1, *1, *16, *16|image"
quiet tvmcc run digits.onnx
says "digit"
says "compiled for this CPU"
quiet tvmcc run digits.onnx "${checked[@]}"
quiet tvmcc bench digits.onnx --repeat 3
says "compiled for this CPU"
quiet tvmcc -c digits.onnx -o digits.o
says "-mcpu=native"
quiet tvmcc digits.onnx -mcpu=native -o digits.so
quiet tvmcc profile digits.so --repeat 3
! grep -qE '(^| )0\.0+%? +0\.0+' log || { cat log; die "zeros for what is not known"; }
quiet tvmcc inspect digits.onnx --html graph.html
quiet tvmcc profile digits.onnx --html time.html --repeat 3
refused 2 "did you mean" tvmcc -c digits.onnx --optt-level=3
refused 2 "foo_bar" tvmcc -c digits.onnx --entry "foo bar"
refused 4 "PNG" tvmcc -c <(printf '\211PNG\r\n\032\n\0\0\0\rIHDR') -o x.o
refused 74 "no.onnx" tvmcc -c no.onnx -o x.o
[ ! -e x.o ] || die "a product in spite of an error"
cd ..

# The same with other weights.
other_weights "$example/digits.onnx" other.onnx

step "a project: libraries and sources, three generators"
mkdir app && cp "$example/digits.onnx" "$example/inputs.npz" "$example/outputs.npz" app
cp app/digits.onnx app/small.onnx
cat >app/main.c <<'END'
#include "digits.h"
#include "small.h"
#include <stdio.h>

DIGITS_DEFINE_ARENA(one);
SMALL_DEFINE_ARENA(two);

int main(void)
{
    static float image[DIGITS_IN_IMAGE_ELEMS], images[SMALL_IN_IMAGE_ELEMS];
    static float digit[DIGITS_OUT_DIGIT_ELEMS], digits[SMALL_OUT_DIGIT_ELEMS];

    for (int i = 0; i < DIGITS_IN_IMAGE_ELEMS; i++)
        image[i] = images[i] = (float)(i % 7) / 7;
    int32_t rc = digits_run(&(digits_inputs){image}, &(digits_outputs){digit}, one);
    if (!rc)
        rc = small_run(&(small_inputs){images}, &(small_outputs){digits}, two);
    if (rc)
        printf("%s\n", tvmcc_strerror(rc));
    for (int i = 0; i < DIGITS_OUT_DIGIT_ELEMS; i++)
        rc |= digit[i] - digits[i] > 1e-4f || digits[i] - digit[i] > 1e-4f;
    return rc != 0;
}
END
cat >app/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.23)
project(app VERSION 1.2 LANGUAGES C)
add_compile_options(-Wall)
find_package(Tvmcc REQUIRED NO_CMAKE_FIND_ROOT_PATH)
enable_language(TVMMODEL)
enable_testing()
add_tvm_model(digits MODEL digits.onnx TEST_INPUTS inputs.npz TEST_OUTPUTS outputs.npz RTOL 1e-4)
add_executable(app main.c small.onnx)
set_source_files_properties(small.onnx PROPERTIES COMPILE_OPTIONS "-O2;-fno-winograd")
target_link_libraries(app PRIVATE digits)
add_test(NAME app COMMAND app)
END
project() { # <folder> [<option of cmake>...]
    quiet "$cmake" -S app -B "$1" -DTvmcc_ROOT="$work/opt" "${@:2}"
    quiet "$cmake" --build "$1" --config Release
    (cd "$1" && quiet "$ctest" -C Release)
}
for generator in "Ninja" "Ninja Multi-Config" "Unix Makefiles"; do
    project "native ${generator// /}" -G "$generator" -DCMAKE_BUILD_TYPE=Release
done
later=$(mktemp -p .) && cp other.onnx app/digits.onnx && rm "$later"
quiet "$cmake" --build "native Ninja"
! grep -q "Building C object" log || { cat log; die "other weights compile C files"; }
cp "$example/digits.onnx" app/digits.onnx

step "three other machines"
for machine in aarch64-linux-gnu arm-linux-gnueabihf riscv64-linux-gnu; do
    cpu=${machine%%-*}
    cat >"$cpu.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${cpu/#arm/armv7l})
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_C_COMPILER_TARGET $machine)
set(CMAKE_EXE_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-$cpu-static;-L;/usr/$machine")
set(CMAKE_FIND_ROOT_PATH /usr/$machine)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
END
    (unset CC CFLAGS LDFLAGS && project "$cpu" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$work/$cpu.cmake")
done

step "two releases from a manifest"
mkdir ship && cp "$example/digits.onnx" "$example/inputs.npz" "$example/outputs.npz" ship
cat >ship/manifest.yaml <<'END'
schema: tvm-manifest/1
project: {name: reader, version: "1.0", license: Apache-2.0}
hosts:
  desktop: {triple: x86_64-linux-gnu, mcpu: x86-64}
  board: {triple: aarch64-linux-gnu, mcpu: cortex-a53, emulator: [qemu-aarch64-static, -L, /usr/aarch64-linux-gnu]}
targets: {cpu: {kind: llvm}}
pairs: {desktop: {host: desktop, target: cpu}, board: {host: board, target: cpu}}
models:
  digits: {source: digits.onnx, pairs: [desktop, board]}
  plain: {source: digits.onnx, pairs: [desktop, board], opt_level: 1}
bundles:
  release: {models: [digits, plain], format: tar.zst}
END
(cd ship && quiet tvmcc check && quiet tvmcc build)
cp other.onnx ship/digits.onnx && sed -i 's/version: "1.0"/version: "1.1"/' ship/manifest.yaml
(cd ship && quiet tvmcc build)
old=ship/build/reader-1.0-release-board.tar.zst new=ship/build/reader-1.1-release-board.tar.zst
[ -s $old ] && [ -s $new ] || { find ship/build -name '*.zst'; die "no archives"; }
quiet tvmcc diff $new $new
refused 1 "1.0 -> 1.1" tvmcc diff $old $new
says "weights +changed"
says "the same +structure"
refused 2 "" tvmcc diff $old no.tar
quiet tvmcc audit $new

step "new weights in the old release"
quiet tvmcc refit $old digits=other.onnx plain=other.onnx -o fitted.tar.zst
refused 1 "1.0 -> 1.1" tvmcc diff fitted.tar.zst $new
! grep -q "changed" log || { cat log; die "a refitted release differs from a built one"; }

step "a release in a project for another machine"
quiet tvmcc unpack $new -C wrong/place
reader=$(echo "$work"/wrong/place/*)
mkdir third && cp app/main.c third
cat >third/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.16)
project(third LANGUAGES C)
find_package(reader)
if(reader_FOUND)
    message(FATAL_ERROR "found")
endif()
find_package(reader REQUIRED)
END
! "$cmake" -S third -B third/b -G Ninja "-DCMAKE_PREFIX_PATH=$reader" >raw 2>&1 || die "accepted"
tr -s ' \n' ' ' <raw >log
says "no library for Linux on x86_64 with 64 bits in it; it has aarch64-unknown-linux-gnu"
# ... and in one for its own.
sed -i '/^if/,/^endif/d; $a add_executable(third third.c)\ntarget_link_libraries(third PRIVATE reader::digits)' third/CMakeLists.txt
printf '#include "digits.h"\nint main(void) { return digits_info() == 0; }\n' >third/third.c
(unset CC CFLAGS LDFLAGS
    quiet "$cmake" -S third -B third/c -G Ninja "-Dreader_DIR=$reader/lib/cmake/reader" \
        -DCMAKE_TOOLCHAIN_FILE="$work/aarch64.cmake"
    quiet "$cmake" --build third/c
    quiet qemu-aarch64-static -L /usr/aarch64-linux-gnu third/c/third)
cd / && rm -rf "$work"
