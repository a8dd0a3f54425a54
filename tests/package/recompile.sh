#!/bin/bash
# recompile.sh <build of tvmcc> <work folder> <generator>
#
# Twenty C files that use three models.  Other weights of one compile no C file again, with models as libraries
# and as sources; another shape compiles all that see it.
set -e
here=$(cd "$(dirname "$0")" && pwd)
generator=$3
. "$here/lib.sh" "$1" "$2"

mkdir use
write() { # <model> <weight> [<elements>]
    sed "s/@ALPHA@/0.25/; s/@WEIGHT@/$2/; s/16/${3:-16}/" "$here/matrix/app/net.relay.in" | sed "s/(32, 16)/(32, ${3:-16})/; s/(1, 16)/(1, ${3:-16})/" >use/$1.relay
}
for model in one two three; do write $model 0.0625; done
for i in $(seq 1 20); do
    printf '#include "one.h"\n#include "two.h"\n#include "three.h"\nint use%d(void);\nint use%d(void) { return one_info() && two_info() && three_info() ? ONE_IN_X_DIM1 : 0; }\n' $i $i >use/use$i.c
done
printf 'int use1(void);\nint main(void) { return use1() == 0; }\n' >use/main.c
cat >use/CMakeLists.txt <<'END_OF_CMAKE'
cmake_minimum_required(VERSION 3.23)
project(use LANGUAGES C)
find_package(Tvmcc REQUIRED)
enable_language(TVMMODEL)
foreach(i RANGE 1 20)
    list(APPEND files use${i}.c)
endforeach()
if(AS_SOURCES)
    add_executable(app main.c ${files} one.relay two.relay three.relay)
else()
    add_executable(app main.c ${files})
    foreach(model IN ITEMS one two three)
        add_tvm_model(${model} MODEL ${model}.relay)
        target_link_libraries(app PRIVATE ${model})
    endforeach()
endif()
END_OF_CMAKE
compiled() { # <C files that the next build compiles> <what has happened>
    quiet "$cmake" --build b --config Debug
    [ "$(grep -c "Building C object.*use[0-9]*\.c\.o" log)" = "$1" ] || { cat log; die "$2: not $1 C files compiled"; }
}
for sources in OFF ON; do
    rm -rf b
    for model in one two three; do write $model 0.0625; done
    configure use b -G "$generator" -DCMAKE_BUILD_TYPE=Debug -DAS_SOURCES=$sources
    compiled 20 "at first"
    later && write one 0.125
    compiled 0 "other weights"
    grep -q "Linking" log || { cat log; die "other weights link nothing"; }
    compiled 0 "after that"
    later && write two 0.0625 8
    compiled 20 "another shape"
done
cd / && rm -rf "$work"
