#!/bin/bash
# fifty.sh <build of tvmcc> <work folder>
#
# Fifty models in one program: no name clashes, each gives its own answer, all at once in one arena after
# the other.  Half of them share kernels with others, as networks with equal layers do.
set -e
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh" "$1" "$2"
mkdir p
{
    echo 'cmake_minimum_required(VERSION 3.23)'
    echo 'project(fifty LANGUAGES C)'
    echo 'find_package(Tvmcc REQUIRED)'
    echo 'add_executable(app main.c)'
    for i in $(seq 1 50); do
        echo "add_tvm_model(m$i MODEL m$i.relay)"
        echo "target_link_libraries(app PRIVATE m$i)"
    done
} >p/CMakeLists.txt
{
    for i in $(seq 1 50); do echo "#include \"m$i.h\""; done
    echo 'static float x[16], y[8];'
    echo 'static _Alignas(64) char arena[1 << 16];'
    echo '#define TRY(name, NAME, i) { name##_inputs in = {x}; name##_outputs out = {y}; \'
    echo '    if (NAME##_ARENA_BYTES(1) > sizeof arena || name##_run(&in, &out, arena)) return 1; \'
    echo '    if (y[7] != -4.0f * 0.0625f * (float)(i % 25 + 1)) return 2; }'
    echo 'int main(void)'
    echo '{'
    echo '    for (int i = 0; i < 16; i++) x[i] = 1;'
    for i in $(seq 1 50); do echo "    TRY(m$i, M$i, $i)"; done
    echo '    return 0;'
    echo '}'
} >p/main.c
for i in $(seq 1 50); do # model i and i + 25 are the same
    awk "BEGIN { printf \"%.17g\", 0.0625 * ($i % 25 + 1) }" >alpha
    sed "s/@ALPHA@/$(cat alpha)/; s/@WEIGHT@/0.0625/" "$here/matrix/app/net.relay.in" >p/m$i.relay
done
configure p b -G Ninja
quiet "$cmake" --build b --target app
quiet b/app
[ "$(nm b/app | grep -c ' [Tt] m[0-9]*_run$')" = 50 ] || die "fifty entries"
# The kernels that two models share were compiled once.
entries=$(find cache -type f | wc -l)
[ "$entries" -lt 130 ] || die "$entries kernels in the cache"
cd / && rm -rf "$work"
