#!/bin/bash
# weights.sh <tvmcc> <source> <work folder>
#
# Weights in a section that a linker script places, and weights that the caller defines: both in a
# program, with the numbers of weights in the object; the same products from steps; refit.
set -e
tvmcc=$1 source=$2
. "$(dirname "$0")/../lib.sh"
bytes() { # of the weights, by the metadata
    grep -o '"weights": {[^}]*"bytes": [0-9]*' $1.json | grep -o '[0-9]*$'
}

enter "$3"
[ "$(uname -m)" = x86_64 ] && command -v ld.bfd >/dev/null || { echo "an x86-64 machine with GNU ld is needed"; exit 77; }
model=$source/examples/digits/digits.onnx
x86="--entry=net -mtriple=x86_64-linux-gnu -mcpu=x86-64"
quiet "$tvmcc" $model $x86 --emit=a,h,json -o embed
quiet "$tvmcc" $model $x86 -fweights=section --emit=o,a,h,json -o usual
quiet "$tvmcc" $model $x86 -fweights=section --weights-section=.model_flash --emit=o,a,h,json -o placed
quiet "$tvmcc" $model $x86 -fweights=extern --emit=o,a,h,json -o given
for file in usual placed; do [ ! -e $file.weights ] || die "$file.weights is not needed"; done
[ -f given.weights ] || die "no weights file for the caller"

readelf -SW usual.o | grep -q ' \.tvmcc_weights .* A .* 64$' || die "the usual section, read-only, aligned"
readelf -SW placed.o | grep -q ' \.model_flash .* A .* 64$' || die "the named section"
! readelf -SW placed.o | grep -q 'rodata.net_weights' || die "two sections"
grep -q '"mode": "section", "section": ".model_flash"' placed.json || die "metadata of the section"
grep -q '"mode": "extern"' given.json || die "metadata of the caller's weights"
[ "$(nm -u given.o | grep -c net_)" = 1 ] && nm -u given.o | grep -q 'U net_weights$' || die "what given.o asks for"
for file in usual placed; do quiet "$tvmcc" audit $file.a $file.o --entry=net; done
quiet "$tvmcc" audit given.a given.o --entry=net -fweights=extern
quiet "$tvmcc" audit given.a -fweights=extern
refused 1 "no member defines 'net_weights'" "$tvmcc" audit given.a

# Programs.  The script puts the weights between two symbols; the caller's weights come from the file.
cat >main.c <<'END'
#include <stdio.h>
#include <string.h>
#include "net.h"

NET_DEFINE_ARENA(arena);
#ifdef PLACED
extern const unsigned char flash_begin[], flash_end[];
#endif
#ifdef GIVEN
__asm__(".section .rodata\n.balign 64\n.globl net_weights\nnet_weights: .incbin \"given.weights\", 64\n"
        ".text\n");
#endif

int main(void)
{
    static float image[NET_IN_IMAGE_ELEMS], digit[NET_OUT_DIGIT_ELEMS];
    net_inputs   in = {image};
    net_outputs  out = {digit};
    const tvmcc_weight_info *w = net_info()->weights;

    for (int i = 0; i < NET_IN_IMAGE_ELEMS; i++) image[i] = (float)(i % 7) * 0.125f;
    if (net_run(&in, &out, arena)) return 1;
    if (w->data != net_weights || w->bytes != NET_WEIGHTS_BYTES) return 2;
#ifdef PLACED
    if (w->data != flash_begin || (size_t)(flash_end - flash_begin) != w->bytes) return 3;
    if (w->mode != TVMCC_WEIGHTS_EMBED || strcmp(w->section, ".model_flash")) return 4;
#elif defined GIVEN
    if (sizeof net_weights != w->bytes || w->align != NET_WEIGHTS_ALIGN) return 5;
    if (w->mode != TVMCC_WEIGHTS_EXTERN || *w->section) return 6;
#endif
    for (int i = 0; i < NET_OUT_DIGIT_ELEMS; i++) printf("%a\n", digit[i]);
    return 0;
}
END
cat >flash.ld <<'END'
SECTIONS { .flash : { flash_begin = .; KEEP(*(.model_flash)) flash_end = .; } } INSERT AFTER .rodata;
END
program() { # <name> <options>...
    local name=$1
    shift
    cp $name.h net.h
    quiet "${CC:-cc}" -Wall -Werror -I"$source/include" -I. main.c $name.a "$@" -lm -o $name
    ./$name >$name.out || die "$name ends with $?"
    cmp $name.out embed.out || die "$name computes something else"
}
program embed
program placed -DPLACED -fuse-ld=bfd -Wl,-T,flash.ld
program given -DGIVEN
cp given.h net.h
refused 1 net_weights "${CC:-cc}" -I"$source/include" -I. main.c given.a -lm -o none

# The same from steps, as build systems run them.
for mode in section extern; do
    options="-fweights=$mode"
    [ $mode = extern ] || options="$options --weights-section=.model_flash"
    quiet "$tvmcc" $model $x86 $options --emit=plan,id,weights -o step
    grep -q "^code .* $mode" step.plan || die "the plan's line of code"
    quiet "$tvmcc" step.plan step.id --emit=h,json -o step
    quiet "$tvmcc" step.plan --shard=0/1 -c -o step.0.o
    quiet "$tvmcc" step.plan step.id --shard=host -c -o step.host.o
    objects="step.0.o step.host.o"
    if [ $mode = section ]; then
        quiet "$tvmcc" step.plan step.weights --shard=weights -c -o step.weights.o
        objects="$objects step.weights.o" whole=placed
    else
        whole=given
        cmp step.weights given.weights || die "the weights file of steps"
    fi
    cmp step.h $whole.h && cmp step.json $whole.json || die "$mode: header and metadata of steps"
    mv $whole.a whole.a
    quiet "$tvmcc" $objects -o $whole.a
    if [ $mode = section ]; then program placed -DPLACED -fuse-ld=bfd -Wl,-T,flash.ld; else program given -DGIVEN; fi
done

# Archives, and other weights in them.
other_weights "$model" digits.onnx
for options in "-fweights=section --weights-section=.model_flash" -fweights=extern; do
    quiet "$tvmcc" $model $x86 $options -o old.tar
    quiet "$tvmcc" digits.onnx $x86 $options -o new.tar
    quiet "$tvmcc" refit old.tar digits.onnx -o refitted.tar
    cmp refitted.tar new.tar || die "$options: refit differs from a build"
    quiet "$tvmcc" audit refitted.tar
done
tar tf new.tar | grep -q '\.so$' && die "a shared library without its weights"
tar tf new.tar | grep -q 'share/net/net.weights$' || die "no weights file in the archive"

# A manifest says the same.
if command -v ninja >/dev/null; then
    cat >manifest.yaml <<'END'
schema: tvm-manifest/1
project: {name: p, version: "1"}
hosts: {pc: {triple: x86_64-linux-gnu, mcpu: x86-64}}
targets: {cpu: {kind: llvm}}
pairs: {pc: {host: pc, target: cpu}}
models:
  flash: {source: {path: digits.onnx}, pairs: [pc], product: {weights: section, weights_section: .model_flash}}
  given: {source: {path: digits.onnx}, pairs: [pc], product: {weights: extern}}
  thin: {source: {path: digits.onnx}, pairs: [pc], product: {weights_dtype: float16}}
bundles: {all: {models: [flash, given, thin]}}
END
    quiet "$tvmcc" build
    readelf -SW build/pc/flash/libflash.a | grep -q ' \.model_flash ' || die "the manifest's section"
    [ -f build/pc/given/given.audit ] && ! nm build/pc/given/libgiven.a | grep -q 'R given_weights' || die "the manifest's caller"
    quiet "$tvmcc" audit build/p-1-all-pc.tar.zst
    [ $(bytes build/pc/thin/thin) -lt $(bytes embed) ] || die "the manifest's type of weights"
fi

# In 16 bits: half the memory in each form, the same bytes from steps, errors within what 11 and 8
# bits of mantissa allow, no difference between threads; what f16 cannot hold is refused.
check="--inputs=$source/examples/digits/inputs.npz --expect=$source/examples/digits/outputs.npz"
for form in "float16 1e-4 5e-4" "bfloat16 1e-3 4e-3"; do
    set -- $form
    quiet "$tvmcc" $model $x86 -fweights-dtype=$1 -v --emit=so,o,a,h,json -o $1
    grep -q 'weights in 16 bits: [0-9]* bytes' log || die "nothing said of $1"
    awk -v most=$3 '/largest error/ { for (i = 1; i < NF; i++) if ($i == "error") exit !($(i + 1) < most) }' log || die "error of $1"
    [ $(bytes $1) -lt $(($(bytes embed) * 6 / 10)) ] || die "weights of $1"
    for threads in 1 2; do quiet "$tvmcc" run $1.so $check --rtol=$2 --atol=0 --threads=$threads; done
    quiet "$tvmcc" $model $x86 -fweights-dtype=$1 --emit=plan,id,weights -o step
    quiet "$tvmcc" step.plan step.weights --shard=weights -c -o step.w.o
    quiet "$tvmcc" step.plan --shard=0/1 -c -o step.0.o
    quiet "$tvmcc" step.plan step.id --shard=host -c -o step.host.o
    quiet "$tvmcc" step.0.o step.host.o step.w.o -o step.o
    cmp step.o $1.o || die "$1 in steps"
    quiet "$tvmcc" $model $x86 -fweights-dtype=$1 -fweights=file --emit=so,json -o apart
    [ $(stat -c %s net.weights) = $(($(bytes $1) + 64)) ] || die "file of $1"
    quiet "$tvmcc" verify apart.so $check --rtol=$2
    quiet "$tvmcc" refit apart.json $model -fweights-dtype=$1 -o again.weights
    cmp again.weights net.weights || die "refit of $1"
done
quiet "$tvmcc" $model $x86 -fweights-dtype=float32 -c -o wide.o
quiet "$tvmcc" $model $x86 -c -o usual.o
cmp wide.o usual.o || die "float32 is the usual"
refused 2 "takes 'float32', 'float16' or 'bfloat16', not 'half'" "$tvmcc" $model -fweights-dtype=half -o a.a

refused 2 "'--weights-section' is for '-fweights=section'" "$tvmcc" $model --weights-section=.flash -o a.a
refused 2 "'a b' is no name of a section" "$tvmcc" $model -fweights=section "--weights-section=a b" -o a.a
refused 2 "-fweights=extern is for objects and static libraries" "$tvmcc" $model -fweights=extern -o a.so
refused 2 "in ELF files only" "$tvmcc" $model -mtriple=x86_64-windows-msvc -mcpu=x86-64 -fweights=section -o a.a
refused 2 "'-fweights' comes too late" "$tvmcc" step.plan -fweights=section --shard=0/1 -c -o a.o
