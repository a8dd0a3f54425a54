#!/bin/bash
# language_options.sh <build of tvmcc> <work folder> <generator>
#
# Whatever a project's options for a model come from, header and object are made with the same: of the target,
# the source, the folder, the language, the configuration, of libraries that are linked, behind conditions.
# Every program asserts the shape that its option asks for, and links.
set -e
here=$(cd "$(dirname "$0")" && pwd)
generator=$3
. "$here/lib.sh" "$1" "$2"
rows=$here/../product/data/rows.onnx

mkdir -p use/below
for folder in use use/below; do cp "$rows" $folder/rows.onnx; done
for i in 1 2 3 4 5 6; do cp "$rows" use/r$i.onnx; done
cat >use/main.c <<'END_OF_C'
#define JOIN(a, b) a##b
#define OF(a, b) JOIN(a, b)
#include HEADER

_Static_assert(OF(UPPER, _IN_DATA_DIM0) == SIZE, "the header has another size than the options ask for");

int main(void)
{
    return OF(LOWER, _run)(0, 0, 0) != TVMCC_E_NULL || OF(LOWER, _info)()->inputs->dims[0] != SIZE;
}
END_OF_C
cat >use/CMakeLists.txt <<'END_OF_CMAKE'
cmake_minimum_required(VERSION 3.23)
project(use LANGUAGES C)
find_package(Tvmcc REQUIRED)
enable_language(TVMMODEL)
enable_testing()
add_library(settings INTERFACE)
target_compile_options(settings INTERFACE $<$<COMPILE_LANGUAGE:TVMMODEL>:--dim=N=5>)
add_library(more INTERFACE)
target_link_libraries(more INTERFACE settings)
function(program name model size)
    add_executable(${name} "${CMAKE_SOURCE_DIR}/main.c" ${model}.onnx)
    string(TOUPPER "${model}" upper)
    target_compile_definitions(${name} PRIVATE "HEADER=\"${model}.h\"" UPPER=${upper} LOWER=${model} SIZE=${size})
    add_test(NAME ${name} COMMAND ${name})
endfunction()

program(of_target rows 2)
target_compile_options(of_target PRIVATE "$<$<COMPILE_LANGUAGE:TVMMODEL>:SHELL:--dim N=2 --target='llvm -mcpu=generic'>")
program(of_source r1 3)
set_source_files_properties(r1.onnx PROPERTIES COMPILE_OPTIONS "--dim=N=3;-O2")
program(of_flags r2 4)
set_source_files_properties(r2.onnx PROPERTIES COMPILE_FLAGS "-O1 --dim=N=4")
program(of_library r3 5)
target_link_libraries(of_library PRIVATE more)
program(of_target_flags r4 6)
set_source_files_properties(main.c PROPERTIES COMPILE_OPTIONS "-DTHE_C_SOURCE")
set_target_properties(of_target_flags PROPERTIES COMPILE_FLAGS "-O2")
target_compile_options(of_target_flags PRIVATE $<$<COMPILE_LANG_AND_ID:TVMMODEL,>:--dim=N=6> $<$<NOT:$<COMPILE_LANGUAGE:C>>:--dim=N=6>)
program(of_configuration r5 $<IF:$<CONFIG:Debug>,7,8>)
set_source_files_properties(r5.onnx PROPERTIES COMPILE_OPTIONS "$<IF:$<CONFIG:Debug>,--dim=N=7,--dim=N=8>")
program(of_property r6 9)
set_target_properties(of_property PROPERTIES MODEL_ROWS 9)
target_compile_options(of_property PRIVATE "$<$<COMPILE_LANGUAGE:TVMMODEL>:--dim=N=$<TARGET_PROPERTY:MODEL_ROWS>>")
add_subdirectory(below)
END_OF_CMAKE
cat >use/below/CMakeLists.txt <<'END_OF_CMAKE'
set(CMAKE_TVMMODEL_FLAGS "${CMAKE_TVMMODEL_FLAGS} --dim=N=10")
add_compile_options($<$<COMPILE_LANGUAGE:TVMMODEL>:-O1>)
program(of_folder rows 10)
END_OF_CMAKE
configure use b -G "$generator" -DCMAKE_BUILD_TYPE=Debug
try() { # <configuration>
    quiet "$cmake" --build b --config $1
    (cd b && quiet "${cmake%cmake}ctest" -C $1)
}
try Debug
case $generator in "Ninja Multi-Config") try Release ;; esac
quiet "$cmake" --build b --config Debug
! grep -qE "Building|Writing|Linking" log || { cat log; die "a second build has work to do"; }

# Another option: header, object and callers follow.
sed -i 's/N=3/N=12/; s/program(of_source r1 3)/program(of_source r1 12)/' use/CMakeLists.txt
try Debug

# Options that are given to every language: what the model compiler does not know is left out, and said once.
mkdir foreign
for file in use/main.c use/rows.onnx; do cp $file foreign/; done
cp "$rows" foreign/alone.onnx
cat >foreign/CMakeLists.txt <<'END_OF_CMAKE'
cmake_minimum_required(VERSION 3.23)
project(foreign LANGUAGES C)
find_package(Tvmcc REQUIRED)
enable_language(TVMMODEL)
add_compile_options(-Wall -Wextra -O2 "SHELL:-isystem /nowhere" $<$<CONFIG:Debug>:-Og>)
add_library(warnings INTERFACE)
target_compile_options(warnings INTERFACE -Wshadow)
add_executable(app main.c rows.onnx)
target_compile_definitions(app PRIVATE HEADER="rows.h" UPPER=ROWS LOWER=rows SIZE=2)
target_link_libraries(app PRIVATE warnings)
target_compile_options(app PRIVATE -pedantic $<$<COMPILE_LANGUAGE:C>:-Wundef;-Wvla>
    "$<$<COMPILE_LANGUAGE:TVMMODEL>:--dim=N=2;${OURS}>")
add_library(alone STATIC alone.onnx)
target_compile_options(alone PRIVATE --dim=N=2 ${ALONE})
END_OF_CMAKE
configure foreign f -G "$generator" -DCMAKE_BUILD_TYPE=Debug
grep -q "models are compiled without -Wall, -Wextra, -pedantic; " log && [ "$(grep -c "are compiled without" log)" = 1 ] ||
    { cat log; die "no hint, or several"; }
quiet "$cmake" --build f --config Debug --verbose
grep -qE -- "-O2.* -c .*rows.onnx" log || { cat log; die "-O2 of the folder does not reach the model"; }
refused_build() { # <words> <option of cmake>
    rm -rf g && configure foreign g -G "$generator" -DCMAKE_BUILD_TYPE=Debug "$2"
    ! "$cmake" --build g --config Debug >log 2>&1 && grep -qF -- "$1" log || { cat log; die "not refused: $2"; }
}
refused_build "there is no option '-fno-pas'" -DOURS=-fno-pas=fuse_ops
refused_build "there is no option '-fno-pas'" -DALONE=-fno-pas=fuse_ops

# By configuration the language and the function ask for the same: -O1, -Os, -O3.
mkdir levels
cp "$rows" levels/one.onnx
cp "$rows" levels/two.onnx
cat >levels/CMakeLists.txt <<'END_OF_CMAKE'
cmake_minimum_required(VERSION 3.23)
project(levels LANGUAGES C)
find_package(Tvmcc REQUIRED)
enable_language(TVMMODEL)
add_tvm_model(one MODEL one.onnx DEFINE_DIMS N=1)
add_library(two STATIC two.onnx)
target_compile_options(two PRIVATE $<$<COMPILE_LANGUAGE:TVMMODEL>:--dim=N=1>)
END_OF_CMAKE
if [ "$generator" = Ninja ]; then
    for type in Debug:-O1 MinSizeRel:-Os Release:-O3 RelWithDebInfo:-O3 :; do
        rm -rf l && configure levels l -G Ninja -DCMAKE_BUILD_TYPE=${type%:*}
        ninja -C l -t commands >commands
        level() { grep -- "$1" commands | grep -oE -- " -O[0-9s]" | tail -n 1; }
        [ "${type#*:}" = "" ] || [ "$(level "-c .*two.onnx")" = " ${type#*:}" ] || die "the language in ${type%:*}"
        [ "$(level "one.onnx.*--emit=plan")" = " ${type#*:}" ] || [ "$type" = : ] || die "the function in ${type%:*}"
    done
fi
cd / && rm -rf "$work"
