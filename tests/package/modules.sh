#!/bin/bash
# modules.sh <cmake> <generator> <source of tests/package> <work folder> <lib of the runtime>
#
# The CMake package without a compiler: configure, build, nothing to do, touch, a side input changes,
# install, consume; then what must be refused.
set -e
cmake=$1 generator=$2 source=$3 work=$4 runtime=$5
top=$(cd "$source/../.." && pwd)
die() { echo "FAILED: $*"; exit 1; }

rm -rf "$work" && mkdir -p "$work" && cd "$work"
export TVMCC_LOG=$work/calls CTEST_OUTPUT_ON_FAILURE=1
touch calls

# A prefix as `cmake --install` would make it, with the stand-in as compiler.
prefix=$work/prefix
mkdir -p "$prefix/bin" "$prefix/lib/cmake/Tvmcc" "$prefix/include"
cp "$source/fake-tvmcc.sh" "$prefix/bin/tvmcc"
cp "$runtime" "$prefix/lib/libtvmcc_runtime.a"
cp -r "$top/include/tvmcc" "$prefix/include/"
cp "$top/cmake-modules/AddTvmModel.cmake" "$prefix/lib/cmake/Tvmcc/"
cat >"$prefix/lib/cmake/Tvmcc/TvmccConfig.cmake" <<END
find_package(Threads REQUIRED)
add_executable(Tvmcc::tvmcc IMPORTED)
set_target_properties(Tvmcc::tvmcc PROPERTIES IMPORTED_LOCATION "$prefix/bin/tvmcc")
add_library(Tvmcc::runtime STATIC IMPORTED)
set_target_properties(Tvmcc::runtime PROPERTIES IMPORTED_LOCATION "$prefix/lib/libtvmcc_runtime.a"
    INTERFACE_INCLUDE_DIRECTORIES "$prefix/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;\${CMAKE_DL_LIBS};m")
include("\${CMAKE_CURRENT_LIST_DIR}/AddTvmModel.cmake")
END

cp -r "$source/use" "$source/consume" .
touch use/models/in.npz use/models/out.npz side
sed "s,@SIDE@,$work/side," use/models/model.c.in >use/models/model.c

config=Release
[ "$generator" != "Ninja Multi-Config" ] || config=Debug
build() { "$cmake" --build "$1" ${2:+--target "$2"} >"$work/log" 2>&1 || { cat "$work/log"; die "build of $1"; }; }
calls() { wc -l <calls; }

"$cmake" -S use -B b -G "$generator" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_INSTALL_PREFIX="$work/installed" >log 2>&1 || { cat log; die configure; }
build b
[ "$(calls)" = 4 ] || { cat calls; die "four compiles expected"; }
stem=$work/b/models/tvm/static_model/first
grep -qF -- "$work/use/models/model.c --emit=o,h,json,weights -o $stem --entry=first --input-shapes=x:[1,3] y:[2] -O2 -fPIC -mcpu=native -fweights=file -MD -MF $stem.o.d -MT $stem.o" calls ||
    { cat calls; die "the command line of static_model"; }
(cd b && ctest -C Debug) >log 2>&1 || { cat log; die "the app, or its verify test"; }
grep -q -- "^run $work/b/models/first.tar.gz --inputs .*in.npz --expect .*out.npz --rtol=1e-3 --atol=1e-4" calls ||
    { cat calls; die "the command line of verify"; }

build b
[ "$(grep -vc ^run calls)" = 4 ] || die "a second build compiles again"
sleep 1.1
touch use/models/model.c
build b
[ "$(grep -vc ^run calls)" = 8 ] || die "a touched model is not compiled again"
case $generator in
Ninja*) ! grep -q 'Linking C executable' log || { cat log; die "unchanged objects are linked again"; } ;;
esac
sleep 1.1
touch side
build b
[ "$(grep -vc ^run calls)" = 12 ] || die "a changed side input is not noticed: $(calls)"
sed -i s/42/21+21+0*__LINE__/ use/models/model.c
build b
(cd b && ctest -C Debug) >log 2>&1 || { cat log; die "the app after an edit"; }

"$cmake" --install b --config "$config" >log 2>&1 || { cat log; die install; }
[ -f installed/include/first.h ] && [ -f installed/share/first/first.weights ] || { cat log; die "installed files"; }
mv b gone && mv use used && mkdir use && cp used/main.c use/ # the installed files must do
"$cmake" -S consume -B c -G "$generator" -DCMAKE_PREFIX_PATH="$prefix;$work/installed" >log 2>&1 ||
    { cat log; die "configure of the consumer"; }
build c
find c -name app -type f -exec {} \; || die "the consumer's app"

# What must be refused, with which words.
refuse() {
    mkdir -p refused
    printf 'cmake_minimum_required(VERSION 3.23)\nproject(r C)\nfind_package(Tvmcc REQUIRED)\n%s\n' "$2" >refused/CMakeLists.txt
    ! "$cmake" -S refused -B r -G "$generator" -DCMAKE_PREFIX_PATH="$prefix" >log 2>&1 || die "accepted: $2"
    tr -s ' \n' ' ' <log | grep -qF -- "$1" || { cat log; die "not said: $1"; }
}
model=$work/used/models/model.c
refuse "unknown keyword 'OPTLEVEL' (did you mean 'OPT_LEVEL'?)" "add_tvm_model(m MODEL $model OPTLEVEL 3)"
refuse "unknown keyword 'INPUT_SHAPE' (did you mean 'INPUT_SHAPES'?)" "add_tvm_model(m MODEL $model INPUT_SHAPE x:[1])"
refuse "unknown keyword 'PICC' (did you mean 'PIC'?)" "add_tvm_model(m MODEL $model TARGETS llvm PICC ON)"
refuse "unknown keyword 'QUUX'" "add_tvm_model(m MODEL $model QUUX)"
refuse "TYPE is 'STATC', not one of STATIC, OBJECT, SHARED (did you mean 'STATIC'?)" "add_tvm_model(m MODEL $model TYPE STATC)"
refuse "MODEL is missing" "add_tvm_model(m TYPE STATIC)"
refuse "MODEL needs a value" "add_tvm_model(m MODEL)"
refuse "there is no model" "add_tvm_model(m MODEL none.onnx)"
refuse "TYPE is given twice" "add_tvm_model(m MODEL $model TYPE STATIC TYPE STATIC)"
refuse "'extra' belongs to no keyword" "add_tvm_model(m MODEL $model extra)"
refuse "OPT_LEVEL is '9'" "add_tvm_model(m MODEL $model OPT_LEVEL 9)"
refuse "ENTRY is 'Net-1'" "add_tvm_model(m MODEL $model ENTRY Net-1)"
refuse "TEST_INPUTS and TEST_OUTPUTS go together" "add_tvm_model(m MODEL $model TEST_INPUTS a.npz)"
refuse "ends in none of" "add_tvm_model(m MODEL $model ARCHIVE x.rar)"
refuse "there is already a target" "add_library(m INTERFACE)
add_tvm_model(m MODEL $model)"

# Triples of cross builds.
triple() { # <expected> <cmake options>
    want=$1 && shift
    mkdir -p cross && : >calls
    printf 'cmake_minimum_required(VERSION 3.23)\nproject(x C)\nfind_package(Tvmcc REQUIRED)\nadd_tvm_model(m MODEL %s)\n' "$model" >cross/CMakeLists.txt
    rm -rf x
    "$cmake" -S cross -B x -G Ninja -DCMAKE_PREFIX_PATH="$prefix" "$@" >log 2>&1 || { cat log; die "configure for $want"; }
    ninja -C x -t commands | grep -q -- "--target=$want " || { ninja -C x -t commands; die "no --target=$want"; }
}
if command -v ninja >/dev/null; then
    quiet="-DCMAKE_C_COMPILER_WORKS=1 -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=BOTH"
    triple aarch64-linux-gnu -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 $quiet
    triple armv7a-linux-gnueabihf -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=armv7l $quiet
    triple aarch64-linux-android29 -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 $quiet \
        -DANDROID=1 -DANDROID_ABI=arm64-v8a -DANDROID_PLATFORM=android-29
    triple armv7a-linux-androideabi21 -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=armv7-a $quiet \
        -DANDROID=1 -DCMAKE_ANDROID_ARCH_ABI=armeabi-v7a
    triple riscv64-linux-gnu -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=riscv64 $quiet
fi
cd / && rm -rf "$work"
