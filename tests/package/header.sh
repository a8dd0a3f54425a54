#!/bin/bash
# header.sh <tvmcc> <source> <work folder>
#
# A program that was compiled against the header of another interface does not link, and the linker names the
# header's function: with objects, libraries and the pieces of a build in steps, on every kind of object file.
# Weights change neither the header nor these names, and refit keeps them.
set -e
tvmcc=$1 source=$2 work=$3
. "$(dirname "$0")/../lib.sh"

"$(dirname "$0")/../fresh" "$work" && mkdir -p "$work/1" "$work/4" && cd "$work" || exit 2
rows=$source/tests/product/data/rows.onnx
cc=${CC:-cc}
flags="-std=c99 -Wall -Wextra -Werror -pedantic -I$source/include -ffunction-sections -Wl,--gc-sections $CFLAGS"
cat >main.c <<'END_OF_C'
#include "net.h"

NET_DEFINE_ARENA(arena);

int main(void)
{
    int32_t (*run)(const net_inputs *, const net_outputs *, void *) = &net_run;

    return run(0, 0, arena) != TVMCC_E_NULL || net_run_ex(0, 0, 0) != TVMCC_E_NULL || net_info() == 0;
}
END_OF_C
for n in 1 4; do
    quiet "$tvmcc" "$rows" --dim=N=$n --entry=net -mcpu=x86-64 -mtriple=x86_64-linux-gnu --emit=o,a,h,json -o $n/net
    quiet "$tvmcc" "$rows" --dim=N=$n --entry=net -mcpu=x86-64 -mtriple=x86_64-linux-gnu -o $n/libnet.so
    cp main.c $n/
done
hash_of() { sed -n 's/.*"header": "\([0-9a-f]*\)".*/\1/p' "$1"; }
[ "$(hash_of 1/net.json)" != "$(hash_of 4/net.json)" ] || die "two interfaces, one hash"

# fits <folder of the header> <what to link...>; stale: the linker says which name is missing.
fits() { quiet $cc $flags -I"$1" "$1/main.c" "${@:2}" -lm -o "fits" && quiet ./fits; }
stale() {
    ! $cc $flags -I"$1" "$1/main.c" "${@:2}" -lm -o stale >log 2>&1 || die "a stale header links: $*"
    grep -q "net_run_ex_header_$(hash_of "$1/net.json")" log || { cat log; die "no readable name: $*"; }
}
if [ "$(uname -sm)" = "Linux x86_64" ]; then
    for product in net.o net.a libnet.so; do
        fits 4 4/$product -Wl,-rpath,"$work/4"
        stale 1 4/$product
    done
    # In steps: the header comes from plan and id, the entry functions from another command.
    quiet "$tvmcc" "$rows" --dim=N=4 --entry=net -mcpu=x86-64 -mtriple=x86_64-linux-gnu --emit=plan,id,weights -o step
    quiet "$tvmcc" step.plan --shard=0/2 -c -o step.0.o
    quiet "$tvmcc" step.plan --shard=1/2 -c -o step.1.o
    quiet "$tvmcc" step.plan step.id --shard=host -c -o step.host.o
    quiet "$tvmcc" step.plan step.weights --shard=weights -c -o step.weights.o
    quiet "$tvmcc" step.plan step.id --emit=h -o step.h
    cmp step.h 4/net.h || die "the header of a build in steps is another"
    quiet "$tvmcc" step.*.o -o step.a
    quiet "$tvmcc" step.*.o -o merged.o
    quiet ld -r step.*.o -o relocatable.o
    for product in step.a merged.o relocatable.o; do
        fits 4 $product
        stale 1 $product
    done
    # By name, as dlsym and declarations written by hand have it; binding generators too.
    fits 4 -DTVMCC_PLAIN_NAMES 4/net.a
    fits 1 -DTVMCC_PLAIN_NAMES 4/net.a
fi

# Every function that a header declares is there under both names.
both() { # <header> <object> [<prefix of C names>]
    llvm-nm-19 "$2" | sed -n 's/.* [Tt] //p' | sed "s/^$3//" >names
    sed -n 's/^#define \(net_[a-z_]*\) net_[a-z_]*_header_.*/\1/p' "$1" >functions
    for name in $(cat functions); do
        grep -qx "$name" names && grep -qx "${name}_header_[0-9a-f]*" names || { cat names; die "no $name in $2"; }
        sed -n "/#endif/,\$p" "$1" | grep -q "[ *]$name(" || die "$1 renames $name, which it does not declare"
    done
    [ "$(wc -l <functions)" -ge "${4:-3}" ] || { cat functions; die "functions of $1"; }
    quiet "$tvmcc" audit "$2" --entry=net
    quiet python3 - "$1" <<'END_OF_PYTHON'
import re, sys
text = open(sys.argv[1]).read()
comments = "".join(re.findall(r"/\*.*?\*/", text, re.S)).replace("net_run_header", "")
code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
for word in re.findall(r"\bnet_\w+", comments):
    assert word + "(" in code.replace("#define", "") or word in ("net_weights",), word
END_OF_PYTHON
}
if command -v llvm-nm-19 >/dev/null; then
    both 4/net.h 4/net.o
    for triple in aarch64-linux-gnu thumbv7em-none-eabihf riscv64-linux-gnu wasm32 x86_64-w64-windows-gnu x86_64-pc-windows-msvc; do
        quiet "$tvmcc" -c "$rows" --dim=N=1 --entry=net --target=$triple -o $triple.o
        both $triple.h $triple.o
    done
    quiet "$tvmcc" -c "$rows" --dim=N=1 --entry=net --target=arm64-apple-macos13 -o mac.o
    both mac.h mac.o _
    quiet "$tvmcc" -c "$rows" --shape-buckets=N=1,4 --cpu-variants=x86-64,x86-64-v3 --entry=net -mtriple=x86_64-linux-gnu -o buckets.o
    both buckets.h buckets.o "" 5
    quiet "$tvmcc" -c "$rows" --dim=N=1 --entry=net -fweights=file --target=aarch64-linux-gnu -o file.o
    both file.h file.o "" 2
fi
# Projects in C++ that are careful about warnings take all of them, and those of runtime and compiler.
for cxx in c++ clang++-19; do
    command -v $cxx >/dev/null || continue
    for header in 4/net.h buckets.h file.h bounds.h tvmcc/runtime.h tvmcc/compiler.h; do
        [ "$header" != bounds.h ] || quiet "$tvmcc" -c "$rows" --dim=N=1..4 --entry=net -mcpu=x86-64 -o bounds.o
        echo "#include \"$header\"" >careful.cc
        for std in c++98 c++20; do
            quiet $cxx -std=$std -I. -I"$source/include" -Wall -Wextra -pedantic -Wconversion -Wsign-conversion -Wshadow \
                -Wundef -Wold-style-cast -Wzero-as-null-pointer-constant -Wno-long-long -Wno-variadic-macros -Werror \
                -c careful.cc -o careful.o
        done
    done
done
# Linkers of other systems.
if command -v clang-19 ld64.lld-19 >/dev/null; then
    for n in 1 4; do
        quiet "$tvmcc" -c "$rows" --dim=N=$n --entry=net --target=arm64-apple-macos13 -o mac$n.o
        mkdir -p mac && mv mac$n.h mac/net.h
        quiet clang-19 --target=arm64-apple-macos13 -ffreestanding -Imac -I"$source/include" -c main.c -o main$n.o
    done
    link="ld64.lld-19 -arch arm64 -platform_version macos 13 13 -dead_strip -undefined dynamic_lookup -e _main"
    quiet $link main4.o mac4.o -o mac4
    ! ld64.lld-19 -arch arm64 -platform_version macos 13 13 -e _main main1.o mac4.o -o mac1 >log 2>&1 &&
        grep -q "_net_run_ex_header_" log || { cat log; die "a stale header links for macOS"; }
fi

# Another checkpoint, under another name.
python3 - "$rows" <<'END_OF_PYTHON'
import sys
b = bytearray(open(sys.argv[1], "rb").read())
for at in range(len(b) // 2, len(b) // 2 + 64, 4): b[at] ^= 1
open("epoch-2.onnx", "wb").write(b)
END_OF_PYTHON
mkdir two
quiet "$tvmcc" epoch-2.onnx --dim=N=4 --entry=net -mcpu=x86-64 -mtriple=x86_64-linux-gnu --emit=a,h,json -o two/net
! cmp -s 4/net.a two/net.a || die "the checkpoint is not new"
cmp 4/net.h two/net.h || die "other weights, another header"
quiet "$tvmcc" "$rows" --dim=N=4 --entry=net -mcpu=x86-64 -mtriple=x86_64-linux-gnu -o old.tar
quiet "$tvmcc" refit old.tar epoch-2.onnx --dim=N=4 -o new.tar
quiet "$tvmcc" unpack new.tar
cmp net/include/net.h 4/net.h || die "refit writes another header"
if [ "$(uname -sm)" = "Linux x86_64" ]; then fits 4 net/lib/*/libnet.a; fi
cd / && rm -rf "$work"
