#!/bin/bash
# keywords.sh <build of tvmcc> <work folder>
#
# Every keyword of add_tvm_model() does what the reference says, and so do its companions, the target
# properties and the project's variables.  One project, one build; what must be refused: refusals.sh.
set -e
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh" "$1" "$2"
top=$(cd "$here/../.." && pwd)

mkdir p && cd p
sed 's/@ALPHA@/0.25/; s/@WEIGHT@/0.0625/' "$here/matrix/app/net.relay.in" >net.relay
cp "$top"/examples/digits/{digits.onnx,inputs.npz,outputs.npz} .
cp "$top"/tests/frontends/tflite/models/run_signatures_{first,second}.* .
quiet "$build/bin/tvmcc" net.relay --emit=log -o net.log
printf 'tvmcc-machine 1\narch x86\nl2_rate 40\n' >net.machine
cat >launcher <<'END'
#!/bin/sh
echo "$@" >>"$LAUNCHED"
exec "$@"
END
chmod +x launcher
cat >state.relay <<'END'
outputs "y", "h_out"

fn @main(%x: Tensor[(1, 8), f32], %h: Tensor[(1, 8), f32]) {
  %0 = add(%x, %h);
  (nn.relu(%0), %0)
}
END
cat >manifest.yaml <<'END'
schema: tvm-manifest/1
project: {name: keywords}
hosts:
  here: {triple: x86_64-linux-gnu, mcpu: x86-64-v2}
  board: {triple: aarch64-linux-gnu}
targets:
  cpu: {kind: llvm}
pairs:
  here: {host: here, target: cpu}
  board: {host: board, target: cpu}
models:
  reader:
    source: digits.onnx
    pairs: [here, board]
    opt_level: 2
    verify: {inputs: inputs.npz, outputs: outputs.npz, rtol: 1e-3}
  scaled:
    source: {path: run_signatures_second.tflite, signature: scale}
    pairs: [here]
    verify: {inputs: run_signatures_first.in.npz, outputs: run_signatures_first.out.npz}
END
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.23)
project(keywords VERSION 2.0 LANGUAGES C)
enable_testing()
find_package(Tvmcc REQUIRED)
include(GNUInstallDirs)
set_property(GLOBAL PROPERTY JOB_POOLS heavy=1)
set(TVM_WERROR ON)

add_tvm_model(plain MODEL net.relay)
add_tvm_model(described MODEL net.relay MODEL_FORMAT relay INPUT_SHAPES "x:[1,16]" INPUT_DTYPES x:float32
    ENTRY another HEADER my/header.h OPT_LEVEL 2 FAST_MATH ON THREADS NONE NO_LIBM REFITTABLE PIC OFF WERROR VERBOSE)
add_tvm_model(limited MODEL net.relay ARENA_LIMIT 64KiB CODE_LIMIT 1MiB WEIGHTS_LIMIT 16KiB)
add_tvm_model(tight MODEL net.relay CODE_LIMIT 16 EXCLUDE_FROM_ALL)
add_tvm_model(outside MODEL net.relay WEIGHTS FILE TYPE SHARED ARCHIVE pack/outside ARCHIVE_FORMAT TZST LAYOUT BUNDLE
    ARCHIVE_CONTENTS lib header metadata)
add_tvm_model(flash MODEL net.relay WEIGHTS SECTION WEIGHTS_SECTION .model_flash)
add_tvm_model(thin MODEL digits.onnx WEIGHTS_DTYPE float16 TEST_INPUTS inputs.npz TEST_OUTPUTS outputs.npz RTOL 1e-3 ATOL 1e-5)
add_tvm_model(mixed MODEL digits.onnx MIXED_PRECISION nn.conv2d nn.dense MIXED_PRECISION_ACCUMULATE float16
    TEST_INPUTS inputs.npz TEST_OUTPUTS outputs.npz RTOL 1e-2 ATOL 1e-3)
add_tvm_model(shifted MODEL run_signatures_first.tflite SIGNATURE shift TEST_INPUTS run_signatures_second.in.npz
    TEST_OUTPUTS run_signatures_second.out.npz)
add_tvm_model(given MODEL net.relay WEIGHTS EXTERN ARCHIVE pack/given.tar)
add_tvm_model(passes MODEL net.relay DISABLED_PASSES alter_layout REQUIRED_PASSES fuse_ops)
add_tvm_model(module MODEL net.relay TYPE MODULE EXECUTOR AOT)
add_tvm_model(sharded MODEL net.relay SHARDS 3 JOB_POOL heavy LAUNCHER ${CMAKE_CURRENT_SOURCE_DIR}/launcher)
add_tvm_model(elsewhere MODEL net.relay OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/here" COMPILE_OPTIONS -mcpu=x86-64-v2
    --cache-dir=${CMAKE_BINARY_DIR}/own-cache EMIT relay te sched tir ll s)
add_tvm_model(other_cpu MODEL net.relay TARGETS "llvm -mcpu=x86-64-v3" HOST_TARGET x86_64-linux-gnu)
add_tvm_model(first_of MODEL net.relay TARGETS opencl vulkan "llvm -mcpu=x86-64-v3" HOST_TARGET x86_64-linux-gnu)
tvm_define_target(NAME old_cpu TARGET "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64")
add_tvm_model(named_cpu MODEL net.relay TARGETS old_cpu)
add_tvm_model(variants MODEL net.relay CPU_VARIANTS x86-64 x86-64-v3)
add_tvm_model(tuned MODEL net.relay TUNING_LOGS net.log TUNING_POLICY REQUIRE TUNING_MIN_COVERAGE 100 EMIT log)
add_tvm_model(measured MODEL net.relay MACHINE net.machine)
add_tvm_model(inner MODEL state.relay OUTPUTS y)
add_tvm_model(settled MODEL state.relay INPUT_VALUES h=0.5)
add_tvm_model(recurrent MODEL state.relay STATE h_out=h)
add_tvm_model(digits MODEL digits.onnx THREADS POOL TEST_INPUTS inputs.npz TEST_OUTPUTS outputs.npz RTOL 1e-3 ATOL 1e-5
    BENCHMARK)
add_tvm_model(digits_file MODEL digits.onnx TYPE OBJECT WEIGHTS FILE TEST_INPUTS inputs.npz TEST_OUTPUTS outputs.npz
    PER_LAYER BENCHMARK)
tvm_model_archive(several MODELS plain digits ARCHIVE pack/several.tar VERSION 3.1 LICENSE MIT)
tvm_model_archive(historic MODELS plain LAYOUT MLF ARCHIVE_FORMAT TAR)
tvm_import_manifest(manifest.yaml PREFIX my_)
add_tvm_model(by_keyword MANIFEST manifest.yaml MANIFEST_MODEL reader MANIFEST_PAIR here ENTRY mine OPT_LEVEL 1)

# A model that another command makes, and a library that it links.
add_custom_command(OUTPUT made.relay COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_SOURCE_DIR}/net.relay made.relay
    DEPENDS net.relay)
add_library(friend INTERFACE)
target_compile_definitions(friend INTERFACE FRIEND=1)
add_tvm_model(made MODEL ${CMAKE_CURRENT_BINARY_DIR}/made.relay DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/made.relay
    LINK_LIBRARIES friend)
target_link_libraries(digits friend) # a project may write it without PUBLIC or PRIVATE

add_tvm_model(exported MODEL net.relay EXPORT_SET keywordsTargets)
install(EXPORT keywordsTargets NAMESPACE keywords:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/keywords
    FILE keywordsConfig.cmake)

tvm_generate(files MODEL net.relay ENTRY generated)
add_library(mine STATIC ${files})
set_target_properties(mine PROPERTIES LINKER_LANGUAGE C)

file(WRITE ${CMAKE_BINARY_DIR}/app.c "
#include \"plain.h\"
#include \"my/header.h\"
#include \"made.h\"
#include \"digits.h\"
#if !FRIEND
#error LINK_LIBRARIES
#endif
PLAIN_DEFINE_ARENA(arena);
int main(void)
{
    static float  x[16], y[8];
    plain_inputs  in = {x};
    plain_outputs out = {y};
    return plain_run(&in, &out, arena) + (another_info() == 0) + (made_info() == 0) + (digits_info() == 0);
}
")
add_executable(app ${CMAKE_BINARY_DIR}/app.c)
target_link_libraries(app PRIVATE plain described::described made digits)
target_link_options(app PRIVATE -no-pie)
add_test(NAME app COMMAND app)

foreach(property IN ITEMS HEADER OBJECTS METADATA WEIGHTS_FILE ARCHIVE TARGETS TUNING_COVERAGE)
    get_target_property(value outside TVM_${property})
    file(APPEND ${CMAKE_BINARY_DIR}/properties "${property} ${value}\n")
endforeach()
END
cd ..
export LAUNCHED=$work/launched SOURCE_DATE_EPOCH=1700000000
configure p b -G Ninja
grep -q "models are compiled for any" log || { cat log; die "no note about the processor"; }
! grep -q TVM_ b/CMakeCache.txt || { grep TVM_ b/CMakeCache.txt; die "cache variables"; }
ninja -C b -t commands >commands
quiet "$cmake" --build b
cd b
quiet ctest
"$cmake" --build . | grep -q "no work to do" || die "a second build has work to do"

said() { grep -- "$2" ../commands | grep -q -e "$1" || { grep -- "$2" ../commands; die "no $1 in the commands of $2"; }; }
# Lower step of `described`: each keyword is its option.
for option in --model-format=relay '--shape=x:\[1,16\]' -O2 -ffast-math -fthreads=none -fno-libm -fno-pic -Werror -v; do
    said "[ \"]$option[ \"]" "-o $work/b/tvm/described/another "
done
said "-Werror" "-o $work/b/tvm/plain/plain "
for file in my/header.h another.json tvmcc/abi.h; do [ -f tvm/described/$file ] || die "no $file"; done
for option in --max-weights=16KiB --max-arena=64KiB; do said "$option" "-o $work/b/tvm/limited/limited "; done
for option in -fweights=section --weights-section=.model_flash; do said " $option" "-o $work/b/tvm/flash/flash "; done
said " -fweights=extern" "audit.*given.a"
[ -f tvm/given/given.weights ] && [ ! -f tvm/given/given.weights.o ] || die "the caller's weights"
readelf -SW libflash.a | grep -q ' \.model_flash ' || die "no section .model_flash"
said "--max-code=1MiB" "audit.*liblimited.a"
! "$cmake" --build . --target tight.audit >log 2>&1 || die "CODE_LIMIT 16 is kept"
grep -q "16" log && grep -q "E0803\|limit" log || { cat log; die "no word of the limit"; }

# Products.
[ -f tvm/outside/outside.weights ] && [ -f liboutside.so ] && [ -f pack/outside.tar.zst ] || die "files of outside"
said "--epoch=1700000000" "outside.tar.zst"
tar tf pack/several.tar >../log
for file in lib/.*/libplain.a lib/.*/libplain.so include/digits.h manifest.json SHA256SUMS; do
    grep -q "/$file\$" ../log || { cat ../log; die "no $file in the archive of several models"; }
done
[ -f historic.tar ] || die "tvm_model_archive without ARCHIVE"
mkdir unpacked && "$build/bin/tvmcc" unpack pack/outside.tar.zst -C unpacked >/dev/null && ! find unpacked -name '*.weights' | grep . ||
    die "ARCHIVE_CONTENTS"
[ -f libmodule.so ] || die "no module"
[ -f tvm/sharded/sharded.2.o ] && [ ! -f tvm/plain/plain.1.o ] || die "SHARDS"
[ "$(grep -c -- '-c -o' "$LAUNCHED")" = 4 ] || { cat "$LAUNCHED"; die "the launcher sees three shards and the entry"; }
[ "$(grep -c 'pool = heavy' build.ninja)" = 4 ] || die "JOB_POOL"
for kind in relay te sched tir ll s; do [ -s here/elsewhere.$kind ] || die "EMIT $kind"; done
[ -d own-cache ] || die "--cache-dir"
said "-mcpu=x86-64-v2" "-o $work/b/here/elsewhere "
grep -q "x86-64-v3" tvm/other_cpu/other_cpu.json && grep -q "mcpu=x86-64\"" tvm/named_cpu/named_cpu.json || die "TARGETS"
[ "$(grep -o '"target": "[a-z]*' tvm/first_of/first_of.json | tr -d '\n')" = '"target": "opencl"target": "vulkan"target": "llvm' ] ||
    { cat tvm/first_of/first_of.json; die "several TARGETS"; }
grep -q "VARIANTS\|x86-64-v3" tvm/variants/variants.json || { cat tvm/variants/variants.json; die "CPU_VARIANTS"; }
said "-fno-pass=alter_layout -fpass=fuse_ops" "-o $work/b/tvm/passes/passes "
grep -q '"tuned": [1-9]' tvm/tuned/tuned.json || die "TUNING_LOGS"
grep -q '"machine": "[0-9a-f]*"' tvm/measured/measured.json || die "MACHINE"
said "--tuning-policy=require --tuning-min-coverage=100" "-o $work/b/tvm/tuned/tuned "
[ -s tvm/tuned/tuned.log ] || die "EMIT log"
grep -q '"y"' tvm/inner/inner.json && ! grep -q h_out tvm/inner/inner.json || die "OUTPUTS"
grep -q '"x"' tvm/settled/settled.json && ! grep -q '"h"' tvm/settled/settled.json || die "INPUT_VALUES"
grep -q "state" tvm/recurrent/recurrent.json || said "--state=h_out=h" recurrent
for program in digits_benchmark digits_file_benchmark; do
    quiet ./$program 3
    grep -q '"measurements": 3' ../log || { cat ../log; die "$program"; }
done
[ "$(ctest -N | grep -c verify)" = 8 ] || { ctest -N; die "eight verify tests"; }

# The manifest: this machine's pair, its options, keywords before it.
said "-mcpu=x86-64-v2\".*-O2" "-o $work/b/tvm/my_reader/reader "
said "-O1" "-o $work/b/tvm/by_keyword/mine "
[ -f libmine.a ] && [ -f tvm/files/generated.0.o ] || die "tvm_generate"
cat >expected <<END
HEADER $work/b/tvm/outside/outside.h
OBJECTS $work/b/tvm/outside/outside.0.o;$work/b/tvm/outside/outside.host.o
METADATA $work/b/tvm/outside/outside.json
WEIGHTS_FILE $work/b/tvm/outside/outside.weights
ARCHIVE $work/b/pack/outside.tar.zst
TARGETS 
TUNING_COVERAGE $work/b/tvm/outside/outside.json
END
diff expected properties || die "target properties"
quiet "$cmake" --install . --prefix "$work/prefix"
[ -f "$work/prefix/lib/libexported.a" ] && find "$work/prefix" -name keywordsConfig.cmake | grep -q . || die "EXPORT_SET"

# Variables of the project, and the launcher of all models.
cd .. && mkdir v
cat >v/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.23)
project(v C)
find_package(Tvmcc REQUIRED)
add_tvm_model(net MODEL $work/p/net.relay)
add_tvm_model(own MODEL $work/p/net.relay OPT_LEVEL 3 TYPE STATIC WEIGHTS EMBED SHARDS 1)
add_tvm_model(small MODEL $work/p/net.relay OPT_LEVEL s)
END
configure v w -G Ninja -DTVM_OPT_LEVEL=1 -DTVM_TYPE=SHARED -DTVM_WEIGHTS=FILE -DTVM_SHARDS=2 -DTVM_THREADS=NONE \
    -DTVM_COMPILE_OPTIONS=-mcpu=x86-64-v2 -DCMAKE_TVMMODEL_COMPILER_LAUNCHER="$work/p/launcher"
ninja -C w -t commands >commands
for words in -O1 -fthreads=none -mcpu=x86-64-v2 -fweights=file "--shard=1/2" "libnet.so" "launcher .*--shard"; do
    grep -q -e "$words" commands || { cat commands; die "no $words from the project's variables"; }
done
grep -q "own/own.*--shard=0/1" commands && grep -q "libown.a" commands || { cat commands; die "keywords do not win"; }
grep -q "entry=small .* -Os " commands || { cat commands; die "OPT_LEVEL s is not -Os"; }
cd / && rm -rf "$work"
