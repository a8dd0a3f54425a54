#!/bin/bash
# source.sh <build of tvmcc> <source> <work folder>
#
# add_tvm_model(.. TARGETS c): the model as a C file of the project's own compiler, built and run; what
# does not go with it.
set -e
source=$2
. "$(dirname "$0")/lib.sh" "$1" "$3"
digits=$source/examples/digits

mkdir app
cat >app/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.23)
project(app C)
enable_testing()
find_package(Tvmcc REQUIRED)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_FLAGS "-Wall -Wextra -pedantic -Werror")
add_tvm_model(digits MODEL "$digits/digits.onnx" TARGETS c
    TEST_INPUTS "$digits/inputs.npz" TEST_OUTPUTS "$digits/outputs.npz")
add_tvm_model(apart MODEL "$digits/digits.onnx" TARGETS c WEIGHTS FILE TYPE SHARED NO_LIBM)
add_executable(app main.c)
target_link_libraries(app digits::digits)
END
cat >app/main.c <<'END'
#include "digits.h"

DIGITS_DEFINE_ARENA(arena);

int main(void)
{
    static float   image[DIGITS_IN_IMAGE_ELEMS];
    float          digit[DIGITS_OUT_DIGIT_ELEMS], sum = 0;
    digits_inputs  in = {image};
    digits_outputs out = {digit};

    if (digits_run(&in, &out, arena))
        return 1;
    for (int i = 0; i < DIGITS_OUT_DIGIT_ELEMS; i++)
        sum += digit[i];
    return !(sum > 0.999f && sum < 1.001f);
}
END
for generator in Ninja "Unix Makefiles"; do
    rm -rf out
    configure app out -G "$generator"
    quiet "$cmake" --build out
    ./out/app || die "$generator: the program says so"
    (cd out && quiet ctest -R digits.verify)
    quiet "$cmake" --build out
    grep -q "Writing" log && die "$generator: written again"
done
refuse "THREADS POOL does not go with TARGETS c" "add_tvm_model(m MODEL $digits/digits.onnx TARGETS c THREADS POOL)"
refuse "CODE_LIMIT is about machine code" "add_tvm_model(m MODEL $digits/digits.onnx TARGETS c CODE_LIMIT 64KiB)"
