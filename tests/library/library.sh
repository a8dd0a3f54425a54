#!/bin/bash
# library.sh <tvmcc> <build> <source> <work folder>
#
# libtvmcc: exports the header's functions alone; two threads of one program get the driver's bytes,
# a compile is cancelled wherever it can be (api.c); the example and the how-to's program work; C++
# takes the header.
set -e
tvmcc=$1 build=$2 source=$3 work=$4
. "$source/tests/lib.sh"

"$(dirname "$0")/../fresh" "$work" && mkdir -p "$work/out" "$work/driver" && cd "$work" || exit 2
library=$build/lib/libtvmcc.so
cc=${CC:-$(command -v clang-19 || command -v cc)}
cp "$source/examples/digits/digits.onnx" .
cp "$source/examples/library/main.c" example.c
export TVMCC_CACHE_DIR=$work/cache

# What the header declares, the library defines, and nothing besides; its name has a version.
sed -n 's/.*\(tvmcc_[a-z_]*\)(.*/\1/p' <(grep -E '^TVMCC_API|^ +[a-z_ *]*tvmcc_[a-z_]*\(' "$source/include/tvmcc/compiler.h") |
    sort -u >declared
nm -D --defined-only "$library" | sed -n 's/.* [TDBRVW] \([^@]*\).*/\1/p' | sort -u >defined
cmp declared defined || { diff declared defined; die "the header and the library differ"; }
readelf -d "$library" | grep -q 'SONAME.*\[libtvmcc\.so\.[0-9]*\]' || die "no SONAME with a version"

program() {
    eval "quiet $cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror $CFLAGS -I'$source/include' $1 -o $2 \
        -L'$build/lib' -ltvmcc '-Wl,-rpath,$build/lib' -pthread $LDFLAGS"
}

program "'$source/tests/library/api.c'" api
./api digits.onnx out >said
cmp said "$source/tests/library/cancelled.expected"
"$tvmcc" digits.onnx -mcpu=haswell --emit=relay,te,sched,tir,plan,id,ll,s,o,h,json,weights,a,tar,so -o driver/digits
"$tvmcc" digits.onnx -mcpu=haswell -o driver/libdigits.so && mv driver/libdigits.so driver/digits.so
for kind in relay te sched tir plan id ll s o h json weights a tar so; do
    for thread in 0 1; do
        cmp "out/$thread.$kind" "driver/digits.$kind"
    done
done
cmp out/memory.o driver/digits.o

program example.c compile
mkdir cpus
./compile digits.onnx cpus haswell skylake-avx512
for cpu in haswell skylake-avx512; do
    "$tvmcc" -c digits.onnx -mcpu=$cpu -o driver/cpu.o
    cmp cpus/$cpu.o driver/cpu.o && cmp cpus/$cpu.h driver/cpu.h
done
rc=0
./compile digits.onnx cpus haswell no-such-cpu 2>said || rc=$?
[ $rc = 2 ] && grep -q "no-such-cpu" said || { cat said; die "a wrong processor: status $rc"; }

# The archive, in a program that has all of it inside.
if [ -f "$build/lib/libtvmcc.a" ]; then
    nm "$build/lib/libtvmcc.a" | sed -n 's/.* [A-TV-Z] \([^@]*\)$/\1/p' | sort -u >defined
    cmp declared defined || { diff declared defined; die "the header and the archive differ"; }
    private=$(sed -n 's/^Libs.private: //p' "$build/share/tvmcc-compiler.pc")
    quiet $cc -std=c11 -D_GNU_SOURCE "-I$source/include" example.c "$build/lib/libtvmcc.a" $private -o inside
    ./inside digits.onnx cpus haswell
    "$tvmcc" -c digits.onnx -mcpu=haswell -o driver/cpu.o
    cmp cpus/haswell.o driver/cpu.o
fi

# The program of docs/how-to/library.md.
sed -n '/^```c$/,/^```$/{/^```/d;p}' "$source/docs/how-to/library.md" >howto.c
program howto.c howto
./howto digits.onnx >said 2>log
grep -q '^digits: [1-9][0-9]* bytes of code for haswell$' said || { cat said; die "the how-to says otherwise"; }

if cxx=$(command -v clang++-19 || command -v g++); then
    printf '#include <tvmcc/compiler.h>\n#include <tvmcc/runtime.h>\nint main() { return tvmcc_compiler_abi() != TVMCC_COMPILER_ABI; }\n' >header.cc
    eval "quiet $cxx -Wall -Wextra -Wpedantic -Werror $CFLAGS -I'$source/include' header.cc -o header -L'$build/lib' \
        -ltvmcc '-Wl,-rpath,$build/lib' $LDFLAGS"
    ./header
fi
cd / && rm -rf "$work"
