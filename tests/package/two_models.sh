#!/bin/bash
# two_models.sh <tvmcc> <source> <work folder>
#
# Two models that share a kernel, in one C program and in one C++ program: nothing clashes, both
# are right; headers are clean in strict C99 and C++; libraries export only <entry>_*, and have no
# constructors and no writable memory.
set -e
tvmcc=$1 source=$2 work=$3
. "$(dirname "$0")/../lib.sh"

"$(dirname "$0")/../fresh" "$work" && cd "$work" || exit 2
digits=$source/examples/digits
for entry in one two; do
    quiet "$tvmcc" "$digits/digits.onnx" --entry "$entry" --emit=a,h,so,o -mcpu=x86-64 -o $entry
done
cmp -s one.o two.o && die "two entries, one object"

# A page is of one model: refused before anything is written.
ar rc both.a one.o two.o
refused 2 "both.a: error: there are several models in it, and a page is of one: --entry chooses" \
    "$tvmcc" inspect --html=both.html both.a
grep -q "note: it has 'two'" log || die "the models are not named"
[ ! -e both.html ] || die "a page was written all the same"
quiet "$tvmcc" inspect --html=both.html --entry=two both.a
grep -q "two" both.html || die "no page of the model that was chosen"

cat >main.c <<'END'
#include "one.h"
#include "two.h"

ONE_DEFINE_ARENA(arena_one);
TWO_DEFINE_ARENA(arena_two);

int main(void)
{
    static float image[ONE_IN_IMAGE_ELEMS];
    float        a[ONE_OUT_DIGIT_ELEMS], b[TWO_OUT_DIGIT_ELEMS], sum = 0;
    one_inputs   one_in;
    one_outputs  one_out;
    two_inputs   two_in;
    two_outputs  two_out;
    int          i;

    for (i = 0; i < ONE_IN_IMAGE_ELEMS; i++) image[i] = (float)(i % 7) * 0.125f;
    one_in.image = two_in.image = image;
    one_out.digit = a;
    two_out.digit = b;
    if (one_run(&one_in, &one_out, arena_one) || two_run(&two_in, &two_out, arena_two)) return 1;
    for (i = 0; i < ONE_OUT_DIGIT_ELEMS; i++) {
        if (a[i] != b[i]) return 2;
        sum += a[i];
    }
    return sum > 0.999f && sum < 1.001f ? 0 : 3; /* a softmax */
}
END
cp main.c main.cpp
strict="-Wall -Wextra -Werror -pedantic -I. -I$source/include"
cc=${CC:-cc} cxx=${CXX:-c++}
quiet $cc -std=c99 $strict main.c one.a two.a -o static -lm
quiet ./static
quiet $cc -std=c11 $strict main.c one.so two.so -o shared -Wl,-rpath,"$work" -lm
quiet ./shared
quiet $cxx -std=c++11 $strict -Wno-missing-field-initializers main.cpp one.a two.a -o cxx -lm
quiet ./cxx
quiet $cc -std=c99 $strict -fno-pie -no-pie main.c one.o two.o -o objects -lm
quiet ./objects

for entry in one two; do
    # Kernels are global in the object, hidden from the outside.
    nm -D --defined-only $entry.so | awk '{print $3}' | grep -v "^${entry}_[a-z]" && die "$entry.so exports more"
    readelf -sW $entry.a | awk '$5 == "GLOBAL" && $6 == "DEFAULT" && $7 != "UND" {print $8}' |
        grep -v "^${entry}_[a-z]" && die "$entry.a exports more"
    nm $entry.a | grep -E " [BbDdCVWvw] " && die "$entry.a has writable or weak symbols"
    readelf -SW $entry.o | grep -E "\.(init_array|ctors|preinit_array|bss|tbss|tdata|data) " |
        awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^\./) { if ($(i + 4) != "000000") print } }' | grep . &&
        die "$entry.o has constructors or writable memory"
done
cd / && rm -rf "$work"
