#!/bin/bash
# source.sh <build of tvmcc> <source> <work folder>
#
# add_tvm_model(.. TARGETS c): the model as a C file of the project's own compiler, built and run, with vectors
# where its processor has them; packed, installed, and found again; from a manifest; what does not go with it.
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

# Vectors: the compiler is told of them, as the function, the manifest and tvm_generate say.
case $(uname -m) in x86_64) vectors="-mtriple=x86_64-linux-gnu -mattr=+avx2,+fma" want="-mavx2 -mfma" ;; *) vectors= ;; esac
if [ -n "$vectors" ]; then
    cat >manifest.yaml <<END
schema: tvm-manifest/1
hosts: {here: {triple: x86_64-linux-gnu, mattr: [+avx2, +fma]}, any: {triple: any}}
targets: {text: {kind: c}}
pairs: {here: {host: here, target: text}, all: {host: any, target: text}}
models: {digits: {source: $digits/digits.onnx, pairs: [here, all], product: {type: object}}}
END
    mkdir wide
    cat >wide/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.23)
project(wide C)
find_package(Tvmcc REQUIRED)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_tvm_model(options MODEL "$digits/digits.onnx" TARGETS c COMPILE_OPTIONS ${vectors// /;} ENTRY digits)
add_tvm_model(target MODEL "$digits/digits.onnx" TARGETS "c $vectors" ENTRY digits)
add_tvm_model(listed MANIFEST "$work/manifest.yaml" MANIFEST_MODEL digits MANIFEST_PAIR here)
add_tvm_model(plain MANIFEST "$work/manifest.yaml" MANIFEST_MODEL digits MANIFEST_PAIR all)
tvm_generate(files MODEL "$digits/digits.onnx" TARGETS "c $vectors" ENTRY digits)
add_library(mine STATIC \${files})
target_include_directories(mine PUBLIC "\${files_INCLUDE_DIR}")
END
    configure wide wide.out -G Ninja
    for library in options target listed mine; do
        quiet "$cmake" --build wide.out --target lib$library.a
    done
    quiet "$cmake" --build wide.out --target plain
    [ "$(grep -c '"command".*-mavx2 -mfma' wide.out/compile_commands.json)" = 4 ] ||
        die "$(grep command wide.out/compile_commands.json)"
    refuse "asks for vectors of GNU C, which the project's compiler (Keil) has not" \
        "set(CMAKE_C_COMPILER_ID Keil)
add_tvm_model(m MODEL $digits/digits.onnx TARGETS c COMPILE_OPTIONS -mtriple=x86_64-linux-gnu -mattr=+avx2)"
fi

# An archive, from which the next project compiles the text; an installed library.
mkdir make use
cat >make/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.23)
project(make VERSION 1.2 LANGUAGES C)
find_package(Tvmcc REQUIRED)
add_tvm_model(digits MODEL "$digits/digits.onnx" TARGETS c ARCHIVE digits.tar)
add_tvm_model(apart MODEL "$digits/digits.onnx" TARGETS c WEIGHTS FILE)
add_tvm_model(code MODEL "$digits/digits.onnx")
tvm_model_archive(each MODELS digits apart code ARCHIVE each.zip)
tvm_install_model(digits)
END
configure make make.out -G Ninja
quiet "$cmake" --build make.out
quiet "$cmake" --install make.out --prefix "$work/installed"
tvmcc=$build/bin/tvmcc
for archive in digits.tar each.zip; do quiet "$tvmcc" unpack make.out/$archive -C unpacked; done
cat >use/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.23)
project(use C)
find_package(${WANTED} 1.2 REQUIRED)
find_package(${WANTED} REQUIRED) # once more
add_executable(use ../app/main.c)
target_link_libraries(use ${WANTED}::digits)
END
for place in installed unpacked/digits unpacked/each-1.2; do
    rm -rf used
    wanted=digits
    case $place in *each*) wanted=each ;; esac
    quiet "$cmake" -S use -B used -G Ninja "-DCMAKE_PREFIX_PATH=$work/$place" -DWANTED=$wanted
    quiet "$cmake" --build used
    ./used/use || die "$place: the program says so"
done
sed -i 's/project(use C)/project(use NONE)/; /add_executable/,$d' use/CMakeLists.txt
rm -rf used
! "$cmake" -S use -B used -G Ninja "-DCMAKE_PREFIX_PATH=$work/unpacked/digits" -DWANTED=digits >log 2>&1 || die "without C"
tr -s ' \n' ' ' <log | grep -q "the model comes as C, which the project does not compile" || { cat log; die "not said: C"; }

refuse "THREADS POOL does not go with TARGETS c" "add_tvm_model(m MODEL $digits/digits.onnx TARGETS c THREADS POOL)"
refuse "CODE_LIMIT is about machine code" "add_tvm_model(m MODEL $digits/digits.onnx TARGETS c CODE_LIMIT 64KiB)"
mkdir model && cat >model/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.23)
project(model C)
find_package(Tvmcc REQUIRED)
enable_language(TVMMODEL)
add_executable(app ../app/main.c "$digits/digits.onnx")
target_compile_options(app PRIVATE \$<\$<COMPILE_LANGUAGE:TVMMODEL>:--target=c>)
END
configure model model.out -G Ninja
! "$cmake" --build model.out >log 2>&1 || die "an object of C"
grep -qF "in CMake, add_tvm_model(.. TARGETS c) does both" log || { cat log; die "the language says something else"; }
