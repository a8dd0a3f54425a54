#!/bin/bash
# refusals.sh <build of tvmcc> <work folder>
#
# What add_tvm_model() and its companions refuse, and with which words.
set -e
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh" "$1" "$2"
sed 's/@ALPHA@/0.25/; s/@WEIGHT@/0.0625/' "$here/matrix/app/net.relay.in" >net.relay
model=$work/net.relay
: >empty.log
no_hint() { ! grep -q "did you mean" log || { cat log; die "a hint for a word that is not near"; }; }
no() { refuse "$1" "add_tvm_model(m MODEL $model $2)"; } # <words> <more arguments>

# Words that are no keywords, or not in their place.
no "add_tvm_model(m): unknown keyword 'OPTLEVEL' (did you mean 'OPT_LEVEL'?)" "OPTLEVEL 3"
no "unknown keyword 'INPUT_SHAPE' (did you mean 'INPUT_SHAPES'?)" "INPUT_SHAPE x:[1,16]"
no "unknown keyword 'PICC' (did you mean 'PIC'?)" "INPUT_SHAPES x:[1,16] PICC ON"
no "unknown keyword 'QUANTISE' (did you mean 'QUANTIZE'?)" "QUANTISE calibration.yaml"
no "unknown keyword 'QUUX'" "QUUX"
no "'extra' belongs to no keyword" "extra"
no "TYPE is given twice" "TYPE STATIC TYPE STATIC"
refuse "MODEL is missing" "add_tvm_model(m TYPE STATIC)"
refuse "MODEL needs a value" "add_tvm_model(m MODEL)"
refuse "there is no model '$work/refused/none.onnx'" "add_tvm_model(m MODEL none.onnx)"
refuse "there is already a target of that name" "add_library(m INTERFACE)
add_tvm_model(m MODEL $model)"

# Names of targets; CMake's own error would speak of our files.
refuse "add_tvm_model(my model): a target cannot have that name, but 'my_model' would do" "add_tvm_model(\"my model\" MODEL $model)"
refuse "add_tvm_model(a/b): a target cannot have that name, but 'a_b' would do" "add_tvm_model(a/b MODEL $model)"
refuse "add_tvm_model(): the name is empty" "add_tvm_model(\"\" MODEL $model)"
refuse "add_tvm_model(test): CMake reserves that name, but 'model_test' would do" "add_tvm_model(test MODEL $model)"
refuse "tvm_model_archive(all of them): a target cannot have that name" "add_tvm_model(m MODEL $model)
tvm_model_archive(\"all of them\" MODELS m)"
refuse "there is already a target of that name" "add_tvm_model(m MODEL $model)
tvm_model_archive(m MODELS m)"

# The line of the project comes first.
refuse "CMakeLists.txt:6: add_tvm_model(two): unknown keyword 'TYP'" "add_tvm_model(one MODEL $model)

add_tvm_model(two MODEL $model
    TYP STATIC)
add_tvm_model(three MODEL $model)"
refuse "CMakeLists.txt:5: tvm_model_archive(x): MODELS is missing" "foreach(name IN ITEMS x)
  tvm_model_archive( \"x\" )
endforeach()"
refuse "CMakeLists.txt: add_tvm_model(computed): MODEL is missing" "set(name computed)
add_tvm_model(\${name} TYPE STATIC)"

# Values.
no "TYPE is 'STATC', not one of STATIC, OBJECT, SHARED, MODULE (did you mean 'STATIC'?)" "TYPE STATC"
no "OPT_LEVEL is '9', not one of 0, 1, 2, 3, s" "OPT_LEVEL 9"
no_hint # words of which nothing is right are no neighbours
no "TYPE is 'X', not one of STATIC, OBJECT, SHARED, MODULE" "TYPE X"
no_hint
no "PIC is 'ONLY', not one of INHERIT, ON, OFF" "PIC ONLY"
no_hint
no "unknown keyword 'MD'" "MD"
no_hint
no "TYPE is 'SAHRED', not one of STATIC, OBJECT, SHARED, MODULE (did you mean 'SHARED'?)" "TYPE SAHRED"
no "THREADS is 'MANY', not one of CALLER, POOL, NONE" "THREADS MANY"
no "WEIGHTS is 'FIL', not one of EMBED, SECTION, FILE, EXTERN (did you mean 'FILE'?)" "WEIGHTS FIL"
no "PIC is 'YES', not one of INHERIT, ON, OFF" "PIC YES"
no "FAST_MATH is '1', not one of OFF, ON" "FAST_MATH 1"
no "ENTRY is 'Net-1', not a lower-case C identifier, but 'net_1' would do" "ENTRY Net-1"
no "ENTRY is 'a__b', not a lower-case C identifier, but 'a_b' would do" "ENTRY a__b"
no "HEADER is '../x.h', not a relative path" "HEADER ../x.h"
no "HEADER is 'x.txt', not a relative path" "HEADER x.txt"
no "SHARDS is '0', not a number from 1 to 999" "SHARDS 0"
no "RTOL is 'small', not a number" "TEST_INPUTS a.npz TEST_OUTPUTS b.npz RTOL small"
no "JOB_POOL is 'big', which the global property JOB_POOLS does not define: it has console" "JOB_POOL big"
no "ARCHIVE is 'x.rar', which ends in none of" "ARCHIVE x.rar"
no "ARCHIVE is 'x.zip', ARCHIVE_FORMAT TGZ ends in .tar.gz" "ARCHIVE x.zip ARCHIVE_FORMAT TGZ"
no "ARCHIVE_FORMAT is 'RAR', not one of TAR" "ARCHIVE x ARCHIVE_FORMAT RAR"
no "TUNING_POLICY is 'ALWAYS', not one of PREFER, IGNORE, REQUIRE" "TUNING_POLICY ALWAYS"
no "there is no tuning log '$work/refused/none.log'" "TUNING_LOGS none.log"
no "there is no file '$work/refused/none.machine' of MACHINE" "MACHINE none.machine"
no "TUNING_MIN_COVERAGE needs TUNING_LOGS" "TUNING_MIN_COVERAGE 50"
no "'--tuning-min-coverage' takes" "TUNING_LOGS $work/empty.log TUNING_MIN_COVERAGE 150"
no "EMIT has 'so', a product" "EMIT so"

# Keywords that need others.
no "TEST_INPUTS and TEST_OUTPUTS go together" "TEST_INPUTS a.npz"
no "RTOL needs TEST_INPUTS" "RTOL 1"
no "ARCHIVE_FORMAT needs ARCHIVE" "ARCHIVE_FORMAT TAR"
no "PER_LAYER needs TEST_INPUTS" "PER_LAYER"
no "there is no pass 'no_such_pass'" "DISABLED_PASSES no_such_pass"
no "there is no pass 'fuse_op' here [E0101] hint: did you mean 'fuse_ops'?" "REQUIRED_PASSES fuse_op"
no "PIC OFF does not go with TYPE SHARED" "TYPE SHARED PIC OFF"

# What the compiler says about the model, in its own words.
no "the model has no input 'y' [E0403] hint: its input is 'x'" "INPUT_SHAPES y:[1,16]"
no "dimension 1 of input 'x' is 16, not 17" "INPUT_SHAPES x:[1,17]"
no "the model has no dimension 'N'" "DEFINE_DIMS N=1"
no "input 'x' has the type f32, not i8" "INPUT_DTYPES x:int8"
no "INPUT_DTYPES names 'xx', which is no input of the model: it has x" "INPUT_DTYPES xx:int8"
no "INPUT_DTYPES has 'x', not '<input>:<type>'" "INPUT_DTYPES x"
no "unknown target 'llvmm'" "TARGETS llvmm"
no "unknown CPU 'pentium9' for x86" "TARGETS \"llvm -mtriple=x86_64-linux-gnu -mcpu=pentium9\""
no "there is no option '-mcup'" "COMPILE_OPTIONS -mcup=native"
no "there is no kind of product called 'exe'" "EMIT exe"
no "'--max-arena' takes a size such as 65536" "ARENA_LIMIT big"
no "the model has no tensor 'nothing'" "OUTPUTS nothing"
no "'haswell' is no CPU variant" "CPU_VARIANTS x86-64-v2 haswell"
no "'--shape-buckets' takes a dimension" "SHAPE_BUCKETS N"
no "'--state' takes an output and an input" "STATE y"
no "there is no model format 'paddle'" "MODEL_FORMAT paddle"

# Keywords and values of the contract that have no meaning yet.
# keyword, value : the beginning of the reason
while IFS=: read -r words why; do
    read -r keyword value <<<"$words"
    no "$keyword is not supported: $why" "$keyword $value"
done <<'END'
CUDA_ARCHITECTURES 80:a target names its GPUs
BYOC dnnl:there are no other compilers
PASS_CONFIG a=b:passes have no settings
DESIRED_LAYOUT NHWC:the compiler chooses layouts itself
QUANTIZE calibration.yaml:quantize the model before, for
MEMORY_POOLS sram@1024:a model has one arena
ALIGNMENT 16:arenas are aligned as <ENTRY>_ARENA_ALIGN
STACK_LIMIT 1KiB:kernels have no bound of
END
no "EXECUTOR GRAPH is not supported" "EXECUTOR GRAPH"
no "EXECUTOR VM is not supported" "EXECUTOR VM"
no "THREADS OPENMP is not supported" "THREADS OPENMP"
no "WEIGHTS_SECTION needs WEIGHTS SECTION" "WEIGHTS_SECTION .flash"
no "WEIGHTS_SECTION is 'a b', no name of a section" "WEIGHTS SECTION WEIGHTS_SECTION \"a b\""
no "WEIGHTS_DTYPE is 'half', not one of float32, float16" "WEIGHTS_DTYPE half"
no "WEIGHTS EXTERN does not go with TYPE SHARED" "WEIGHTS EXTERN TYPE SHARED"
no "with WEIGHTS EXTERN only the caller has the weights" "WEIGHTS EXTERN BENCHMARK"

# Companions.
refuse "tvm_define_target(a): NAME and TARGET are needed" "tvm_define_target(NAME a)"
refuse "there is already a target of that name" "tvm_define_target(NAME a TARGET llvm)
tvm_define_target(NAME a TARGET llvm)"
refuse "NAME is 'a b'" "tvm_define_target(NAME \"a b\" TARGET llvm)"
refuse "two hosts" "tvm_define_target(NAME a TARGET opencl HOST x86_64-linux-gnu)
add_tvm_model(m MODEL $model TARGETS a HOST_TARGET aarch64-linux-gnu)"
refuse "tvm_model_archive(a): MODELS is missing" "tvm_model_archive(a)"
refuse "MODELS has 'm', which is no model of this project" "add_library(m INTERFACE)
tvm_model_archive(a MODELS m)"
refuse "LAYOUT is 'ZIP', not one of BUNDLE, MLF, TVMC" "add_tvm_model(m MODEL $model)
tvm_model_archive(a MODELS m LAYOUT ZIP)"
no "ARCHIVE_CONTENTS needs ARCHIVE" "ARCHIVE_CONTENTS lib"
(export SOURCE_DATE_EPOCH=today && no "SOURCE_DATE_EPOCH is 'today', not a number of seconds since 1970, at most 8589934591" "ARCHIVE m.tar")
(export SOURCE_DATE_EPOCH=99999999999999999999 && no "SOURCE_DATE_EPOCH is '9999" "ARCHIVE m.tar")
refuse "tvm_install_model(m): there is no model of that name" "tvm_install_model(m)"
refuse "tvm_install_model(m): unknown keyword 'EXPORTS' (did you mean 'EXPORT'?)" "add_tvm_model(m MODEL $model)
tvm_install_model(m EXPORTS x)"
refuse "tvm_generate(objs): TYPE is not supported: it is about a library" "tvm_generate(objs MODEL $model TYPE STATIC)"
refuse "tvmcc: Android needs ANDROID_ABI" "set(ANDROID 1)
add_tvm_model(m MODEL $model)"
refuse "a model is compiled for one of 'arm64;x86_64'" "set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_OSX_ARCHITECTURES arm64 x86_64)
add_tvm_model(m MODEL $model)"
cd / && rm -rf "$work"
