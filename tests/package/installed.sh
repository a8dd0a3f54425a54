#!/bin/bash
# installed.sh <build of tvmcc> <work folder>
#
# Models that are installed, as packages of their own and in a project's export set: they have a version, need
# no package of ours, not even with THREADS POOL, and refuse a project for another machine.
set -e
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh" "$1" "$2"
app=$here/matrix/app

mkdir make use
cp "$here/../../examples/digits/digits.onnx" make/
cat >make/CMakeLists.txt <<'END_OF_CMAKE'
cmake_minimum_required(VERSION 3.23)
project(make VERSION 2.1.4 LANGUAGES C)
find_package(Tvmcc REQUIRED)
include(GNUInstallDirs)
add_tvm_model(pool MODEL digits.onnx THREADS POOL)
tvm_install_model(pool)
add_tvm_model(other MODEL digits.onnx TYPE OBJECT)
tvm_install_model(other VERSION 3)
add_tvm_model(threaded MODEL digits.onnx ENTRY pool THREADS POOL TYPE ${TYPE})
tvm_install_model(threaded EXPORT setTargets)
install(EXPORT setTargets NAMESPACE set:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/set FILE setConfig.cmake)
END_OF_CMAKE
cat >use/CMakeLists.txt <<END_OF_CMAKE
cmake_minimum_required(VERSION 3.23)
project(use LANGUAGES C)
find_package(\${WANTED} REQUIRED)
add_executable(app "$app/pool.c")
target_link_libraries(app PRIVATE \${LIBRARY})
END_OF_CMAKE
use() { # <package and version> <library> [<option of cmake>...]
    rm -rf u
    quiet "$cmake" -S use -B u -G Ninja "-DCMAKE_PREFIX_PATH=$work/moved" "-DWANTED=$1" "-DLIBRARY=$2" "${@:3}"
    quiet "$cmake" --build u
    quiet u/app
}
fails() { # <words> <package and version> [<option of cmake>...]
    rm -rf u
    ! "$cmake" -S use -B u -G Ninja "-DCMAKE_PREFIX_PATH=$work/moved" "-DWANTED=$2" -DLIBRARY= "${@:3}" >log 2>&1 ||
        die "accepted: $2"
    tr -s ' \n' ' ' <log | grep -qF -- "$1" || { cat log; die "not said: $1"; }
}
for type in STATIC SHARED OBJECT; do
    rm -rf b prefix moved
    configure make b -G Ninja -DTYPE=$type
    quiet "$cmake" --build b
    quiet "$cmake" --install b --prefix "$work/prefix"
    mv prefix moved && mv b gone.$type
    use set set::threaded
done
use pool pool::pool
use "pool;2.1" pool::pool
use "pool;2" pool::pool
fails 'requested version "2.2"' "pool;2.2"
fails 'requested version "1"' "pool;1"
fails 'requested version "4"' "other;4"
for machine in "Linux mips" "Windows AMD64"; do
    fails "compiled for Linux on $(uname -m), this project is for ${machine/ / on }" pool -DCMAKE_SYSTEM_NAME=${machine% *} \
        -DCMAKE_SYSTEM_PROCESSOR=${machine#* } -DCMAKE_C_COMPILER_WORKS=1 -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=BOTH
done
if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=$work/$(dirname "$(find moved -name pool.pc)")
    [ "$(pkg-config --modversion pool)" = 2.1.4 ] && [ "$(pkg-config --modversion other)" = 3 ] || die "versions of pool.pc, other.pc"
    quiet ${CC:-cc} $CFLAGS "$app/pool.c" -o plain $(pkg-config --cflags --libs pool)
    quiet ./plain
fi
refuse "VERSION is '1.x', not one to four numbers" "add_tvm_model(m MODEL $work/make/digits.onnx)
tvm_install_model(m VERSION 1.x)"
cd / && rm -rf "$work"
