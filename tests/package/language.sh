#!/bin/bash
# language.sh <build of tvmcc> <work folder> <generator>
#
# The language TVMMODEL: models as sources of a program, of libraries in another folder, installed and
# used by a project that does not know the language.
set -e
here=$(cd "$(dirname "$0")" && pwd)
generator=$3
. "$here/lib.sh" "$1" "$2"

mkdir -p use/models && cd use
sed 's/@ALPHA@/0.25/; s/@WEIGHT@/0.0625/' "$here/matrix/app/net.relay.in" >first.relay
cp "$here/../../examples/digits/digits.onnx" models/second.onnx
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.23)
project(use LANGUAGES C TVMMODEL)
include(GNUInstallDirs)
add_subdirectory(models)
add_executable(app main.c)
target_sources(app PRIVATE first.relay)
target_compile_options(app PRIVATE $<$<COMPILE_LANGUAGE:TVMMODEL>:-v> $<$<COMPILE_LANGUAGE:C>:-Wall>)
target_link_libraries(app PRIVATE models)
add_executable(app_shared main.c first.relay)
target_link_libraries(app_shared shared_models) # without keywords, as older projects write it
END
cat >models/CMakeLists.txt <<'END'
add_library(models second.onnx)
add_library(shared_models SHARED second.onnx)
install(TARGETS models EXPORT useTargets)
install(FILES "$<TARGET_GENEX_EVAL:models,$<TARGET_PROPERTY:models,TVM_HEADER>>" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT useTargets NAMESPACE use:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/use FILE useConfig.cmake)
END
cat >main.c <<'END'
#include "first.h"
#include "second.h"

FIRST_DEFINE_ARENA(one);
SECOND_DEFINE_ARENA(two);

int main(void)
{
    static float   x[FIRST_IN_X_ELEMS], y[FIRST_OUT_Y_ELEMS], image[SECOND_IN_IMAGE_ELEMS], digit[SECOND_OUT_DIGIT_ELEMS];
    first_inputs   in1 = {x};
    first_outputs  out1 = {y};
    second_inputs  in2 = {image};
    second_outputs out2 = {digit};

    x[0] = 1;
    return first_run(&in1, &out1, one) || second_run(&in2, &out2, two) || y[0] != -0.0625f;
}
END
cd ..
cat >launcher <<'END'
#!/bin/sh
echo "$@" >>"$LAUNCHED"
exec "$@"
END
chmod +x launcher
export LAUNCHED=$work/launched
options=(-G "$generator" "-DCMAKE_MODULE_PATH=$here/../../cmake-modules" "-DCMAKE_TVMMODEL_COMPILER=$build/bin/tvmcc"
    "-DCMAKE_TVMMODEL_COMPILER_LAUNCHER=$work/launcher" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON)
configure use b "${options[@]}" -DCMAKE_BUILD_TYPE=Debug
make() { quiet "$cmake" --build b; }
make
for app in app app_shared; do
    program=$(find b -name $app -type f)
    quiet "$program"
done
[ "$(grep -c -- '-c .*first.relay' launched)" = 2 ] && [ "$(grep -c -- '-O1 .*second.onnx' launched)" = 2 ] ||
    { cat launched; die "the launcher saw other compiles"; }
[ "$generator" != Ninja ] || grep -q second.onnx b/compile_commands.json || die "not in compile_commands.json"
: >launched
make
[ ! -s launched ] || { cat launched log; die "a second build compiles"; }

# Another model: its object and its header follow.
later
sed 's/@ALPHA@/0.25/; s/@WEIGHT@/0.0625/; s/outputs "y"/outputs "z"/' "$here/matrix/app/net.relay.in" >use/first.relay
sed -i 's/FIRST_OUT_Y/FIRST_OUT_Z/' use/main.c
make
[ "$(grep -c -- '-c ' launched)" = 2 ] || { cat launched; die "other compiles after an edit"; }

quiet "$cmake" --install b --config Debug --prefix "$work/prefix"
mv use/main.c . && mv b gone
mkdir user
cat >user/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.23)
project(user LANGUAGES C)
find_package(use REQUIRED)
file(WRITE "${CMAKE_BINARY_DIR}/user.c" "#include \"second.h\"\nint main(void) { return second_info() == 0; }\n")
add_executable(user "${CMAKE_BINARY_DIR}/user.c")
target_include_directories(user PRIVATE "${PREFIX}/include")
target_link_libraries(user PRIVATE use::models)
END
configure user c -G "$generator" "-DCMAKE_PREFIX_PATH=$work/prefix" "-DPREFIX=$work/prefix" "-DCMAKE_C_FLAGS=-I$here/../../include"
quiet "$cmake" --build c
program=$(find c -name user -type f -perm -u+x | head -n 1)
quiet "$program"
cd / && rm -rf "$work"
