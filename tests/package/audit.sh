#!/bin/bash
# audit.sh <tvmcc> <source> <work folder>
#
# `tvmcc audit`: every kind of product of a model passes; every breach that C can write is found in
# objects, libraries and shared libraries; limits give status 6; the stamp appears only on success.
set -e
tvmcc=$1 source=$2
. "$(dirname "$0")/../lib.sh"
enter "$3"
quiet "$tvmcc" "$source/examples/digits/digits.onnx" --entry=net -mcpu=x86-64 -mtriple=x86_64-linux-gnu \
    --emit=o,a,so,json,tar,zip -o net
mkdir folder && tar xf net.tar -C folder
quiet "$tvmcc" audit net.o net.a net.so net.json net.tar net.zip folder/*
quiet "$tvmcc" audit --entry=net --max-code=1MiB --max-weights=1MiB --max-arena=1MiB net.a net.json --stamp=stamp
[ -f stamp ] || die "no stamp"
touch -d @0 stamp
quiet "$tvmcc" audit net.a --stamp=stamp
[ "$(stat -c %Y stamp)" -gt 1000 ] || die "the stamp is old"
refused 1 "which belongs to no model" "$tvmcc" audit --entry=other net.so --stamp=none
[ -e none ] && die "a stamp in spite of errors"
refused 6 "the code has" "$tvmcc" audit --max-code=1KiB net.a
refused 6 "constants have" "$tvmcc" audit --max-weights=1KiB net.so
refused 6 "one thread's arena has" "$tvmcc" audit --max-arena=1KiB net.json
refused 6 "one thread's arena has" "$tvmcc" audit --max-arena=1KiB net.tar
refused 1 "not a valid ELF file" "$tvmcc" audit "$source/LICENSE"
refused 74 "cannot read" "$tvmcc" audit missing.o
"$tvmcc" audit --json net.tar net.o >report
python3 - <<'END'
import json
archive, obj = json.load(open("report"))
assert archive["kind"] == "archive" and len(archive["parts"]) == 3, archive
library = archive["parts"][0]
header = json.load(open("net.json"))["header"]
names = ["net_info", "net_run", "net_run_ex"]
exported = names + ["net_weights"] + [name + "_header_" + header for name in names]
assert library["exported"] == sorted(exported), library
assert library["models"] == ["net"] and library["writable"] == 0 and obj["code"] == library["code"]
END

# A damaged archive and a damaged folder.
echo x >>folder/net/include/net.h
refused 1 "other bytes than SHA256SUMS says" "$tvmcc" audit folder/net

# What C can get wrong.
cc=${CC:-cc}
breach() { # <text> <source> [cc option]
    echo "$2" >bad.c
    quiet $cc -O1 -ffreestanding -fno-builtin -fPIC $3 -c bad.c -o bad.o
    refused 1 "$1" "$tvmcc" audit --entry=net bad.o
    rm -f bad.a && quiet ar qc bad.a net.o bad.o
    refused 1 "bad.a(bad.o): error: " "$tvmcc" audit bad.a
    grep -qF "$1" log || { cat log; die "$1 in a library"; }
}
breach "calls 'malloc'" "void *malloc(unsigned long); __attribute__((visibility(\"hidden\"))) void *net__f(void) { return malloc(4); }"
breach "writable memory in '.bss'" "int net_run2(void) { static int n; return ++n; }"
breach "thread-local memory" "_Thread_local int net_t = 1;"
breach "has constructors" "volatile int net_x; __attribute__((constructor)) static void start(void) { net_x = 1; }"
breach "exports 'helper'" "int helper(void) { return 1; }"
breach "weak symbol 'net_f'" "__attribute__((weak)) int net_f(void) { return 0; }"
breach "absolute address of a symbol" "extern int net_info; const long net_at = (long)&net_info;" -fno-pic

# Members that do not fit together.
echo 'int net__missing(void); int net_more(void) { return net__missing(); }' >bad.c
quiet $cc -O1 -fPIC -c bad.c -o bad.o
rm -f bad.a && quiet ar qc bad.a net.o bad.o
refused 1 "no member defines 'net__missing'" "$tvmcc" audit bad.a
cp net.o again.o && rm -f bad.a && quiet ar qc bad.a net.o again.o
refused 1 "define the same symbol" "$tvmcc" audit bad.a

# Libraries that other tools wrote, and shared ones with a past.
rm -f gnu.a && quiet ar qc gnu.a net.o && quiet "$tvmcc" audit gnu.a
echo 'int helper(void) { return 1; }' >bad.c
quiet $cc -shared -fPIC bad.c -o bad.so
refused 1 "the library exports 'helper'" "$tvmcc" audit --entry=net bad.so
quiet $cc -shared -fPIC -nostartfiles -Wl,--no-as-needed net.o -o bad.so -ldl -lpthread -lm
readelf -d bad.so | grep -q 'NEEDED.*libdl\|NEEDED.*libpthread' &&
    refused 1 "the library needs" "$tvmcc" audit bad.so
cd / && rm -rf "$work"
