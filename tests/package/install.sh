#!/bin/bash
# install.sh <cmake> <build of tvmcc> <source> <work folder>
#
# What `cmake --install` leaves: complete, usable by CMake and by pkg-config, from wherever it is
# moved; and tvmcc as a part of another project.
set -e
cmake=$1 build=$2 source=$3 work=$4
. "$(dirname "$0")/../lib.sh"

"$(dirname "$0")/../fresh" "$work" && cd "$work" || exit 2
quiet "$cmake" --install "$build" --prefix "$work/first"
for file in bin/tvmcc lib/libtvmcc_runtime.a include/tvmcc/abi.h include/tvmcc/runtime.h \
    lib/cmake/Tvmcc/{TvmccConfig,TvmccConfigVersion,AddTvmModel}.cmake \
    lib/pkgconfig/tvmcc.pc share/doc/tvmcc/{README.md,CHANGELOG.md,copyright} \
    share/doc/tvmcc/docs/how-to/cmake.md share/doc/tvmcc/examples/digits/main.c \
    share/tvmcc/runtime/thread.c share/tvmcc/runtime/device/cpu.c share/tvmcc/runtime/device/device.h share/tvmcc/runtime/device/devices.def lib/cmake/Tvmcc/tvmcc/keywords.cmake \
    lib/cmake/Tvmcc/CMakeTVMMODELCompiler.cmake.in share/bash-completion/completions/tvmcc share/zsh/site-functions/_tvmcc; do
    [ -s "first/$file" ] || die "$file is not installed"
done
# The target tvmcc_installed builds all of it, which scripts/demo relies on.
if [ -f "$build/build.ninja" ]; then
    ninja -C "$build" -t graph tvmcc_installed >graph || die "no target tvmcc_installed"
    sed -n "s|.*\"$build/\([^\"]*\)\".*|\1|p" "$build/cmake_install.cmake" | sort -u >files
    while read -r file; do
        [ -L "$build/$file" ] || grep -qF "[label=\"$file\"" graph || ! ninja -C "$build" -t query "$file" >log 2>&1 ||
            die "tvmcc_installed does not build $file"
    done <files
    grep -qxF bin/tvmcc files || die "nothing is installed?"
fi
# The driver of a release is stripped, its build id kept; pictures of the documents are there.
if grep -q '^CMAKE_BUILD_TYPE:STRING=Release' "$build/CMakeCache.txt" && command -v readelf >/dev/null; then
    ! readelf -SW first/bin/tvmcc | grep -q ' \.symtab ' || die "the driver is not stripped"
    [ "$(readelf -n first/bin/tvmcc | grep 'Build ID')" = "$(readelf -n "$build/bin/tvmcc" | grep 'Build ID')" ] ||
        die "another build id"
fi
(cd first/share/doc/tvmcc && grep -rnoE '!\[[^]]*\]\([^)#]+\)' --include='*.md' . | sed -E 's/^([^:]*):[0-9]*:.*\((.*)\)$/\1 \2/') >pictures
while read -r file picture; do
    [ -s "first/share/doc/tvmcc/$(dirname "$file")/$picture" ] || die "$file shows $picture, which is not there"
done <pictures
[ -s pictures ] || die "no document has a picture"
! grep -rn 'build/release/bin/tvmcc ' first/share/doc/tvmcc/README.md first/share/doc/tvmcc/docs | grep -v /docs/benchmarks/ ||
    die "installed documents speak of a build folder"
[ -s first/share/man/man1/tvmcc.1.gz ] || [ -s first/share/man/man1/tvmcc.1 ] || die "no manual page"

# No absolute path in what is read by build systems: the tree may be moved.
mkdir "a place" && mv first "a place/tvmcc"
prefix="$work/a place/tvmcc"
! grep -rIl -e "$work/first" -e "$source" "$prefix/lib" || die "those files name where they were"
[ "$("$prefix/bin/tvmcc" --version)" = "tvmcc $(sed -n 's/^project(tvmcc VERSION \([0-9.]*\).*/\1/p' \
    "$source/CMakeLists.txt")" ] || die "the version differs"

# find_package through <Package>_ROOT.
cp -r "$source/examples/digits" digits
quiet "$cmake" -S digits -B by_root -G Ninja -DTvmcc_ROOT="$prefix" -DCMAKE_BUILD_TYPE=Release
quiet "$cmake" --build by_root
quiet by_root/demo
grep -q "Tvmcc_DIR:PATH=$prefix" by_root/CMakeCache.txt || die "another package was found"
# A toolchain that looks for packages below its root only: the compiler is of this machine.
if command -v clang-19 ld.lld-19 >/dev/null && [ -f /usr/aarch64-linux-gnu/lib/libc.so.6 ]; then
    cat >only.cmake <<'END'
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(what IN ITEMS LIBRARY INCLUDE PACKAGE)
    set(CMAKE_FIND_ROOT_PATH_MODE_${what} ONLY)
endforeach()
END
    mkdir only && cp digits/digits.onnx only/
    cp digits/digits.onnx only/reader.onnx
    printf '#include "digits.h"\n#include "reader.h"\nint main(void) { return !digits_info() || !reader_info(); }\n' >only/main.c
    cat >only/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.23)
project(only LANGUAGES C)
find_package(Tvmcc REQUIRED ${HOW})
enable_language(TVMMODEL)
add_tvm_model(digits MODEL digits.onnx THREADS POOL)
add_executable(demo main.c reader.onnx)
target_link_libraries(demo PRIVATE digits)
END
    for how in "-DHOW=NO_CMAKE_FIND_ROOT_PATH -DTvmcc_ROOT=$work/tvmcc" "-DTvmcc_DIR=$work/tvmcc/lib/cmake/Tvmcc"; do
        ln -sfn "$prefix" tvmcc
        rm -rf only_root
        (
            unset CC CFLAGS LDFLAGS # of a sanitized build, for this machine
            quiet "$cmake" -S only -B only_root -G Ninja "-DCMAKE_TOOLCHAIN_FILE=$work/only.cmake" $how
            quiet "$cmake" --build only_root
        )
        readelf -h only_root/demo | grep -q AArch64 || die "a program for another machine"
    done
fi
# A newer version than this is not there.
printf 'cmake_minimum_required(VERSION 3.23)\nproject(p C)\nfind_package(Tvmcc 99 REQUIRED)\n' >newer.txt
mkdir newer && mv newer.txt newer/CMakeLists.txt
! "$cmake" -S newer -B newer/build -G Ninja -DTvmcc_ROOT="$prefix" >log 2>&1 || die "version 99 was found"
grep -q 'requested version "99"' log || { cat log; die "the message says nothing of the version"; }

cc=${CC:-$(command -v cc || command -v clang-19)}
# pkg-config: compiler and runtime for projects without CMake.
if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
    eval "tvmcc=$(pkg-config --variable=tvmcc tvmcc)"
    quiet "$tvmcc" digits/digits.onnx -c -o digits.o -mcpu=native
    eval "quiet $cc $CFLAGS -O1 -D_GNU_SOURCE -I. '-DSAMPLES=\"digits/samples\"' '-DOBJECT=\"digits.o\"' \
        $(pkg-config --cflags tvmcc) -c digits/main.c -o by_pc.o"
    eval "quiet $cc by_pc.o digits.o $(pkg-config --libs tvmcc) $LDFLAGS -o by_pc"
    quiet ./by_pc
    pkg-config --atleast-version=0.1 tvmcc || die "pkg-config does not know the version"
fi

# The compiler as a library, where it was built: by pkg-config, and by CMake.
if [ -e "$build/lib/libtvmcc.so" ]; then
    mkdir cpus
    for file in lib/libtvmcc.so include/tvmcc/compiler.h lib/pkgconfig/tvmcc-compiler.pc; do
        [ -s "$prefix/$file" ] || die "$file is not installed"
    done
    if command -v pkg-config >/dev/null; then
        eval "quiet $cc $CFLAGS -D_GNU_SOURCE '$source/examples/library/main.c' \
            $(pkg-config --cflags --libs tvmcc-compiler) -pthread $LDFLAGS -o compile"
        LD_LIBRARY_PATH=$prefix/lib quiet ./compile digits/digits.onnx cpus haswell
    fi
    mkdir library && cp "$source/examples/library/main.c" library/
    cat >library/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.23)
project(compile LANGUAGES C)
find_package(Tvmcc REQUIRED)
add_executable(compile main.c)
target_compile_definitions(compile PRIVATE _GNU_SOURCE)
target_link_libraries(compile PRIVATE Tvmcc::Compiler Threads::Threads)
END
    quiet "$cmake" -S library -B by_library -G Ninja -DTvmcc_ROOT="$prefix"
    quiet "$cmake" --build by_library
    quiet by_library/compile digits/digits.onnx cpus haswell
    "$prefix/bin/tvmcc" -c digits/digits.onnx -mcpu=haswell -o cpus/driver.o
    cmp cpus/haswell.o cpus/driver.o
    if [ -e "$prefix/lib/libtvmcc.a" ]; then # the same inside the program
        sed -i 's/Tvmcc::Compiler/Tvmcc::CompilerStatic/' library/CMakeLists.txt
        quiet "$cmake" --build by_library
        readelf -d by_library/compile | grep -q 'NEEDED.*libtvmcc' && die "libtvmcc is outside of a program that has it inside"
        rm cpus/haswell.o && quiet by_library/compile digits/digits.onnx cpus haswell
        cmp cpus/haswell.o cpus/driver.o
    fi
fi

# As a part of a project, by path or by FetchContent: what a program needs of it is built, no test,
# and nothing of it is installed.  The build itself is the business of the other tests.
for how in subdirectory fetch; do
    mkdir "$how"
    {
        echo 'cmake_minimum_required(VERSION 3.23)'
        echo 'project(app LANGUAGES C)'
        if [ $how = fetch ]; then
            echo 'include(FetchContent)'
            echo "FetchContent_Declare(tvmcc SOURCE_DIR \"$source\")"
            echo 'FetchContent_MakeAvailable(tvmcc)'
        else
            echo "add_subdirectory(\"$source\" tvmcc EXCLUDE_FROM_ALL)"
        fi
        echo 'add_library(run STATIC main.c)   # names that a project may well have itself'
        echo 'add_custom_target(manual)'
        echo "add_tvm_model(digits MODEL \"$source/examples/digits/digits.onnx\")"
        echo 'add_executable(app main.c)'
        echo 'target_link_libraries(app PRIVATE digits Tvmcc::runtime)'
        echo 'install(TARGETS app)'
    } >"$how/CMakeLists.txt"
    printf '#include "digits.h"\n#include <tvmcc/runtime.h>\nint main(void) { return 0; }\n' >"$how/main.c"
    CC=${CC:-$(command -v clang-19 || command -v cc)} quiet "$cmake" -S "$how" -B "$how/build" -G Ninja \
        -DCMAKE_BUILD_TYPE=Debug
    grep -q '^CMAKE_BUILD_TYPE:STRING=Debug' "$how/build/CMakeCache.txt" || die "the build type changed"
    ninja -C "$how/build" -t commands app >plan || die "ninja -t commands app"
    grep -q -e '-o tvmcc/bin/tvmcc\|-o _deps/tvmcc-build/bin/tvmcc' plan || die "$how: the model needs no compiler"
    ! grep -q 'test_' plan || die "$how: tests are built"
    grep -q 'digits.onnx' plan || die "$how: the model is not built"
    ! grep -q 'bin/tvmcc"\|TvmccConfig' "$how/build/cmake_install.cmake" || die "$how installs tvmcc"
    [ ! -e "$how/build/tvmcc/cmake_install.cmake" ] ||
        ! grep -q 'file(INSTALL' "$how/build/tvmcc/cmake_install.cmake" || die "$how installs tvmcc"
    quiet ninja -C "$how/build" tvmcc_runtime tvmcc_cmddoc
done
# The product of another machine needs a compiler of this one.
! "$cmake" -S subdirectory -B cross -G Ninja -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_C_COMPILER="$(command -v clang-19 || command -v cc)" -DCMAKE_C_COMPILER_WORKS=1 >log 2>&1 ||
    die "a cross build took the compiler as a part"
grep -q 'Tvmcc_ROOT' log || { cat log; die "no hint about Tvmcc_ROOT"; }
cd / && rm -rf "$work"
