#!/bin/bash
# inspect.sh <tvmcc> <source> <work folder>
#
# Commands that read a product never run it: constructors of a library stay unused, libraries of every
# machine and stripped ones say what they hold, broken ones are refused, and hashes are compared.
tvmcc=$1 source=$2 work=$3
. "$(dirname "$0")/../lib.sh"
enter "$work"
model=$source/examples/digits/digits.onnx
here=$("$tvmcc" -print-targets 2>/dev/null | head -1) # only so that a broken driver is seen at once
[ -n "$here" ] || die "the driver"

# ---- the same of every machine, as object and as library -------------------------------------------------
for triple in x86_64-linux-gnu i686-linux-gnu aarch64-linux-gnu arm-linux-gnueabihf riscv64-linux-gnu riscv32-linux-gnu; do
    quiet "$tvmcc" "$model" -mtriple=$triple -c -o m.o
    quiet "$tvmcc" inspect m.o
    cp log $triple.txt
    grep -q "^digits: ABI 1, .*-mtriple=${triple%%-*}" log && grep -q "^input  image: (1, 1, 16, 16), f32, 1024 bytes" log &&
        grep -q "^output digit: (1, 10), f32, 40 bytes" log && grep -qE "^weights [0-9]{5} bytes, in the object" log || { cat log; die "$triple"; }
    quiet "$tvmcc" "$model" -mtriple=$triple --emit=a -o m.a
    quiet "$tvmcc" inspect m.a && cmp -s log $triple.txt || { cat log; die "$triple, a static library"; }
    if "$tvmcc" "$model" -mtriple=$triple --emit=so -o m.so >log 2>&1; then
        quiet "$tvmcc" inspect m.so && cmp -s log $triple.txt || { cat log; die "$triple, a shared library"; }
    fi
done

# ---- macOS and Windows: objects and static libraries, with other relocations and names ---------------------
for triple in x86_64-apple-macos13 arm64-apple-macos13 x86_64-pc-windows-msvc aarch64-pc-windows-msvc; do
    for suffix in o a; do
        quiet "$tvmcc" "$model" -mtriple=$triple -Wno-baseline-cpu -c -o m.$suffix
        quiet "$tvmcc" inspect m.$suffix
        grep -q "^digits: ABI 1, .*-mtriple=${triple%%-*}" log && grep -q "^input  image: (1, 1, 16, 16), f32, 1024 bytes" log &&
            grep -q "^output digit: (1, 10), f32, 40 bytes" log && grep -qE "^weights [0-9]{5} bytes, in the object" log ||
            { cat log; die "$triple, .$suffix"; }
    done
done
printf 'fn @main(%%x: Tensor[(1, 4), f32]) { nn.relu(%%x) }\n' >net.relay
for triple in i686-pc-windows-msvc thumbv7-pc-windows-msvc; do
    quiet "$tvmcc" net.relay -mtriple=$triple -mcpu=generic -c -o net.o
    quiet "$tvmcc" inspect net.o
    grep -q "^input  x: (1, 4), f32, 16 bytes" log || { cat log; die "$triple"; }
done

# ---- many tensors, at the end of their section: as many bytes as the machine's pointers make them ----------
{
    printf 'fn @main(%%x0: Tensor[(2), f32]'
    printf ', %%x%u: Tensor[(2), f32]' $(seq 99)
    printf ') {\n  %%0 = add(%%x0, %%x1);\n'
    for i in $(seq 98); do printf '  %%%u = add(%%%u, %%x%u);\n' $i $((i - 1)) $((i + 1)); done
    printf '  nn.relu(%%98)\n}\n'
} >many.relay
for triple in x86_64-linux-gnu arm-linux-gnueabihf; do
    quiet "$tvmcc" many.relay -mtriple=$triple -mcpu=generic -c -o many.o
    quiet "$tvmcc" inspect many.o
    [ "$(grep -c '^input' log)" = 100 ] || { cat log; die "many inputs, $triple"; }
done

# ---- a library whose constructor leaves a file ------------------------------------------------------------
cat >evil.c <<'END'
#include <stdio.h>
__attribute__((constructor)) static void ran(void)
{
    FILE *f = fopen("inspect-ran-code", "w");
    if (f)
        fclose(f);
}
END
quiet "$tvmcc" "$model" -mcpu=x86-64 -mtriple=x86_64-linux-gnu --emit=o,h,json,relay -o digits
quiet "$tvmcc" "$model" -mcpu=x86-64 -mtriple=x86_64-linux-gnu -o good.tar
cc=$(command -v clang-19 || command -v clang || command -v gcc || command -v cc)
$cc -shared -fPIC -o libdigits.so evil.c digits.o -lm >log 2>&1 || { cat log; die "a library with a constructor"; }
cp libdigits.so stripped.so && { strip stripped.so 2>/dev/null || true; }
mkdir -p at && tar xf good.tar -C at && cp -r at/digits folder && so=$(cd folder && find lib -name '*.so')
cp libdigits.so "folder/$so" && cp -r folder sums && rm folder/SHA256SUMS
tar cf evil.tar folder && tar czf evil.tar.gz folder && tar cf wrong.tar sums
for product in libdigits.so stripped.so evil.tar evil.tar.gz folder; do
    quiet "$tvmcc" inspect $product
    [ $product = evil.tar.gz ] || grep -q "^input  image: (1, 1, 16, 16)" log || { cat log; die "inspect $product"; }
    quiet "$tvmcc" inspect --json $product
    "$tvmcc" audit $product >log 2>&1 && die "audit $product"
    "$tvmcc" diff $product good.tar >log 2>&1
    "$tvmcc" refit $product "$model" -o refitted.tar >log 2>&1
    "$tvmcc" unpack $product -C at --force >log 2>&1
    "$tvmcc" pack digits.json digits.h $product -o packed.tar >log 2>&1
    [ ! -e inspect-ran-code ] || die "a command ran the constructor of $product"
done
"$tvmcc" doctor >log 2>&1
[ ! -e inspect-ran-code ] || die "doctor"
refused 1 "it has no model 'other'" "$tvmcc" inspect --entry=other libdigits.so
refused 1 "no model is in it" "$tvmcc" inspect "$("$cc" -shared -fPIC -o empty.so -x c /dev/null && echo empty.so)"

# ---- hashes that do not fit: no command goes on, the file is named; none there: nothing is compared -------------
for product in wrong.tar sums; do
    for command in inspect "inspect --json" audit "run" "bench --repeat=1" "verify --inputs=$source/examples/digits/inputs.npz --expect=$source/examples/digits/outputs.npz"; do
        refused 1 "member '$so' has other bytes than SHA256SUMS says" "$tvmcc" $command $product
        [ ! -e inspect-ran-code ] || die "$command ran $product"
    done
    refused 1 "member '$so' has other bytes" "$tvmcc" refit $product "$model" -o x.tar
done
refused 1 "member '$so' has other bytes" "$tvmcc" unpack wrong.tar -C at

# ---- broken libraries ---------------------------------------------------------------------------------------------
quiet "$tvmcc" "$model" -mtriple=arm64-apple-macos13 -c -o macos.o
quiet "$tvmcc" "$model" -mtriple=x86_64-pc-windows-msvc -mcpu=x86-64 -c -o windows.o
python3 - "$tvmcc" <<'END'
import random, subprocess, sys
random.seed(1)
for name in ("libdigits.so", "digits.o", "macos.o", "windows.o"):
    whole = open(name, "rb").read()
    at = whole.find(b"tvmcc 0.")
    for i in range(60):
        b = bytearray(whole)
        if i < 12:
            b = b[:len(b) * i // 12]
        else:  # the header, the tables at the end, and around the model's strings
            for _ in range(random.choice((1, 8, 64))):
                place = random.choice((random.randrange(64), len(b) - 1 - random.randrange(4000), random.randrange(len(b)),
                                       max(0, at - 200 + random.randrange(400))))
                b[place] = random.choice((0, 1, 255, 128, random.randrange(256)))
        open("broken." + name.rsplit(".", 1)[1], "wb").write(b)
        for command in (["inspect"], ["inspect", "--json"], ["audit"]):
            done = subprocess.run([sys.argv[1]] + command + ["broken." + name.rsplit(".", 1)[1]], capture_output=True, timeout=60)
            assert done.returncode in (0, 1), (name, i, command, done)
END
[ $? = 0 ] || die "a broken library"
[ ! -e inspect-ran-code ] || die "a broken library was run"
cd / && rm -rf "$work"
