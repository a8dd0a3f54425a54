#!/bin/bash
# archive.sh <tvmcc> <source> <work folder> <cmake> <generator>
#
# `tvmcc pack`, `unpack`, `diff`: every layout and suffix; what is packed is found by CMake and by
# pkg-config wherever it is unpacked; equal products give equal bytes whatever is around; hostile
# archives are refused and leave nothing; differences are named.
set -e
tvmcc=$1 source=$2 work=$3 cmake=${4:-cmake}
. "$(dirname "$0")/../lib.sh"

"$(dirname "$0")/../fresh" "$work" && cd "$work" || exit 2
digits=$source/examples/digits/digits.onnx
cp "$digits" digits.onnx
products() { # <folder> <entry> <options...>
    mkdir -p "$1"
    local folder=$1 entry=$2
    shift 2
    quiet "$tvmcc" digits.onnx --entry="$entry" --emit=a,h,json,relay -o "$folder/$entry" "$@"
}
products one net -mcpu=x86-64 -mtriple=x86_64-linux-gnu
quiet "$tvmcc" digits.onnx --entry=net --emit=so -o one/libnet.so -mcpu=x86-64 -mtriple=x86_64-linux-gnu
products one other -mcpu=x86-64 -mtriple=x86_64-linux-gnu -fweights=file
products arm net -mtriple=aarch64-linux-gnu -mcpu=generic
products arm other -mtriple=aarch64-linux-gnu -mcpu=generic -fweights=file
net="one/net.json one/net.h one/net.a one/libnet.so one/net.relay"
other="one/other.json one/other.h one/other.a one/other.weights one/other.relay"
arm="arm/net.json arm/net.h arm/net.a arm/net.relay arm/other.json arm/other.h arm/other.a arm/other.weights arm/other.relay"
echo "license of the model" >LICENSE.model
echo '{"workload": 1}' >a53.log
echo '{"ok": true}' >net.verify.json

# ---- every suffix, read again by us and by others ------------------------------------------------
for suffix in tar tar.gz tar.zst tar.xz zip; do
    quiet "$tvmcc" pack $net -o "net.$suffix" --verify
    quiet "$tvmcc" audit "net.$suffix"
    mkdir "at.$suffix" && quiet "$tvmcc" unpack "net.$suffix" -C "at.$suffix"
    (cd "at.$suffix/net" && sha256sum -c --quiet SHA256SUMS) || die "SHA256SUMS"
    quiet "$tvmcc" diff "net.$suffix" "at.$suffix/net"
done
tar xf net.tar -C at.tar.gz --one-top-level=tar && quiet diff -r at.tar.gz/tar/net at.zip/net
refused 74 "is there already" "$tvmcc" unpack net.tar -C at.tar
touch at.tar/net/more
quiet "$tvmcc" unpack net.tar -C at.tar --force
[ ! -e at.tar/net/more ] && [ "$(ls -A at.tar)" = net ] || die "--force left something"

# ---- several models, two machines, extra files ---------------------------------------------------
quiet "$tvmcc" pack $net $other LICENSE.model a53.log net.verify.json --add=device/opencl/any/net.cl=LICENSE.model \
    --name=vision --version=1.4.0 --license=Apache-2.0 -o vision.tar.zst --verify
mkdir two && quiet "$tvmcc" unpack vision.tar.zst -C two
for file in licenses/LICENSE.model licenses/tvmcc.txt tuning/a53.log reports/net.verify.json reports/memory.json \
    reports/size.json device/opencl/any/net.cl lib/pkgconfig/net.pc lib/pkgconfig/vision.pc share/other/other.weights; do
    [ -s "two/vision-1.4.0/$file" ] || die "no $file"
done
quiet "$tvmcc" pack $net $other $arm --name=vision --version=1.4.0 -o all.tar --verify
products slow net -mcpu=x86-64 -mtriple=x86_64-linux-gnu -O1
rm slow/net.relay*
refused 1 "two products of 'net'" "$tvmcc" pack $net slow/net.* -o x.tar
python3 - <<'END'
import json
root = "two/vision-1.4.0/"
m = json.load(open(root + "manifest.json"))
assert m["schema"] == "tvmcc-archive/1" and m["license"] == "Apache-2.0" and m["version"] == "1.4.0"
assert [x["entry"] for x in m["models"]] == ["net", "other"]
size = json.load(open(root + "reports/size.json"))["models"]
assert size[0]["library"]["code"] > 5000 and size[1]["weights"]["bytes"] > 10000, size
assert json.load(open(root + "reports/memory.json"))["models"][0]["inputs"] == 1024
# SPDX 2.3, clause by clause: what its schema requires
s = json.load(open(root + "sbom.spdx.json"))
assert s["spdxVersion"] == "SPDX-2.3" and s["dataLicense"] == "CC0-1.0" and s["SPDXID"] == "SPDXRef-DOCUMENT"
assert s["name"] and s["documentNamespace"].startswith("urn:tvmcc:") and "#" not in s["documentNamespace"]
assert s["creationInfo"]["created"] == "1970-01-01T00:00:00Z"
assert all(c.startswith(("Tool: ", "Person: ", "Organization: ")) for c in s["creationInfo"]["creators"])
ids = {"SPDXRef-DOCUMENT"}
import re
for p in s["packages"]:
    assert p["name"] and p["downloadLocation"] and re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", p["SPDXID"])
    assert p["filesAnalyzed"] is False and "packageVerificationCode" not in p
    for c in p.get("checksums", []):
        assert c["algorithm"] == "SHA256" and re.fullmatch("[0-9a-f]{64}", c["checksumValue"])
    assert p["SPDXID"] not in ids
    ids.add(p["SPDXID"])
assert s["packages"][0]["licenseDeclared"] == "Apache-2.0" and s["packages"][0]["versionInfo"] == "1.4.0"
kinds = {"DESCRIBES", "GENERATED_FROM", "BUILD_TOOL_OF"}
for r in s["relationships"]:
    assert r["spdxElementId"] in ids and r["relatedSpdxElement"] in ids and r["relationshipType"] in kinds
assert any(r["relationshipType"] == "DESCRIBES" for r in s["relationships"])
END

# ---- consumers, in another place than it was unpacked at ---------------------------------------------
mkdir "else where" app && mv two/vision-1.4.0 "else where/here"
cat >app/main.c <<'END'
#include "net.h"
#include "other.h"
#include <stdio.h>
#include <stdlib.h>
NET_DEFINE_ARENA(arena);
static _Alignas(64) unsigned char other_arena[OTHER_ARENA_BYTES(1)], weights[1 << 20];
int main(int argc, char **argv)
{
    static float  image[NET_IN_IMAGE_ELEMS];
    float         a[NET_OUT_DIGIT_ELEMS], b[NET_OUT_DIGIT_ELEMS];
    net_inputs    in = {image};
    net_outputs   out = {a};
    other_inputs  other_in = {image};
    other_outputs other_out = {b};
    tvmcc_params  p = {sizeof p};
    FILE         *f = fopen(argv[argc - 1], "rb");
    size_t        n = f ? fread(weights, 1, sizeof weights, f) : 0;
    p.threads = 1;
    p.arena = other_arena;
    p.arena_bytes = sizeof other_arena;
    p.weights = weights + 64;
    p.weights_bytes = n - 64;
    if (net_run(&in, &out, arena) || other_run_ex(&other_in, &other_out, &p)) return 1;
    for (int i = 0; i < NET_OUT_DIGIT_ELEMS; i++) if (a[i] != b[i]) return 2;
    return 0;
}
END
cat >app/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.16)
project(app C)
find_package(vision 1.2 REQUIRED)
add_executable(app main.c)
target_link_libraries(app PRIVATE vision::net vision::other)
add_executable(shared main.c)
if(TARGET vision::net-shared)
    target_link_libraries(shared PRIVATE vision::net-shared vision::other)
else()
    target_link_libraries(shared PRIVATE vision::net vision::other)
endif()
add_custom_target(run ALL COMMAND app "${other_WEIGHTS}" COMMAND shared "${other_WEIGHTS}" DEPENDS app shared VERBATIM)
END
cat >>app/CMakeLists.txt <<'END'
if(DEFINED net_WEIGHTS OR NOT EXISTS "${other_WEIGHTS}")
    message(FATAL_ERROR "net_WEIGHTS '${net_WEIGHTS}', other_WEIGHTS '${other_WEIGHTS}'")
endif()
END
quiet "$cmake" -S app -B app/build -G Ninja "-DCMAKE_PREFIX_PATH=$work/else where/here"
quiet "$cmake" --build app/build
# Another machine than the only one in it: CMake says so, not the linker.
other_machine() { # <words> <option of cmake>...
    rm -rf app/wrong
    refused 1 "$1" "$cmake" -S app -B app/wrong -G Ninja "-DCMAKE_PREFIX_PATH=$work/else where/here" \
        -DCMAKE_C_COMPILER_WORKS=1 -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=BOTH "${@:2}"
    tr -s ' \n' ' ' <log | grep -qF "it has x86_64-unknown-linux-gnu" || { cat log; die "not said what it has"; }
}
other_machine "no library for Linux on aarch64" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64
other_machine "no library for Windows on" -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_SYSTEM_PROCESSOR=AMD64
other_machine "on x86_64 with 32 bits" -DCMAKE_C_FLAGS=-m32 -DCMAKE_SIZEOF_VOID_P=4
sed 's/vision 1.2/vision 2/' app/CMakeLists.txt >app/new && mkdir newer && cp app/main.c newer && mv app/new newer/CMakeLists.txt
refused 1 "considered but not accepted" "$cmake" -S newer -B newer/build -G Ninja "-DCMAKE_PREFIX_PATH=$work/else where/here"
if command -v pkg-config >/dev/null; then
    cc=${CC:-cc}
    for package in "net other" vision; do
        export PKG_CONFIG_PATH="$work/else where/here/lib/pkgconfig"
        eval "quiet $cc app/main.c -o app/pc $(pkg-config --cflags --libs $package)"
        LD_LIBRARY_PATH="$work/else where/here/lib/x86_64-unknown-linux-gnu" quiet app/pc "else where/here/share/other/other.weights"
    done
    [ "$(pkg-config --modversion vision)" = 1.4.0 ] || die "version of vision.pc"
else
    echo "SKIP (no pkg-config)"
fi
# From one archive for two machines each takes its own.
mkdir both && quiet "$tvmcc" unpack all.tar -C both
quiet "$cmake" -S app -B app/both -G Ninja "-DCMAKE_PREFIX_PATH=$work/both/vision-1.4.0"
quiet "$cmake" --build app/both
quiet "$cmake" -S app -B app/arm -G Ninja "-DCMAKE_PREFIX_PATH=$work/both/vision-1.4.0" -DCMAKE_SYSTEM_NAME=Linux \
    -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER_WORKS=1 -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=BOTH
grep -q "lib/aarch64-unknown-linux-gnu/libnet.a" app/arm/build.ninja || die "aarch64 took another library"
refused 1 "no library for Linux on mips" "$cmake" -S app -B app/mips -G Ninja "-DCMAKE_PREFIX_PATH=$work/both/vision-1.4.0" \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=mips -DCMAKE_C_COMPILER_WORKS=1 -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=BOTH

# ... at run time too, where each machine has its weights.
mkdir -p here && quiet "$tvmcc" digits.onnx --entry=other -fweights=file --emit=so -o here/libother.so \
    -mcpu=x86-64 -mtriple=x86_64-linux-gnu
quiet "$tvmcc" pack $other here/libother.so $arm --name=vision -o run.tar
mkdir run && quiet "$tvmcc" unpack run.tar -C run
if [ "$(uname -m)" = x86_64 ]; then
    for product in run.tar run/vision; do
        quiet "$tvmcc" run $product --entry=other --inputs "$source/examples/digits/inputs.npz" \
            --expect "$source/examples/digits/outputs.npz" --rtol 1e-4
    done
fi

# ---- the layouts of TVM ---------------------------------------------------------------------------------
quiet "$tvmcc" pack $net $other --layout=mlf -o mlf.tar --verify --epoch=1000000000
quiet "$tvmcc" pack $net --layout=tvmc -o tvmc.tar --verify
refused 1 "holds one model" "$tvmcc" pack $net $other --layout=tvmc -o none.tar
mkdir mlf && tar xf mlf.tar -C mlf && mkdir tvmc && tar xf tvmc.tar -C tvmc
python3 - <<'END'
import json, struct
m = json.load(open("mlf/metadata.json"))
assert m["version"] == 7 and sorted(m["modules"]) == ["net", "other"]
net = m["modules"]["net"]
assert sorted(net) == ["executors", "export_datetime", "memory", "model_name", "style", "target"]
assert net["export_datetime"] == "2001-09-09 01:46:40Z" and net["style"] == "full-model"
main = net["memory"]["functions"]["main"][0]
assert main["io_size_bytes"] == 1024 + 40 and main["inputs"] == {"image": {"dtype": "float32", "size": 1024}}
def params(path):
    b = open(path, "rb").read()
    magic, zero, count, n = struct.unpack_from("<QQQQ", b)
    assert magic == 0xF7E58D4F05049CB7 and zero == 0 and count == 1
    name, at = b[32:32 + n].decode(), 32 + n
    count, magic, zero, device, number, ndim, code, bits, lanes, dim, size = struct.unpack_from("<QQQIIIBBHQQ", b, at)
    assert (count, magic, zero, device, ndim, code, bits, lanes) == (1, 0xDD5E40F096B4A13F, 0, 1, 1, 1, 8, 1)
    data = b[at + struct.calcsize("<QQQIIIBBHQQ"):]
    assert dim == size == len(data)
    return name, data
assert params("mlf/parameters/other.params") == ("other_weights", open("one/other.weights", "rb").read()[64:])
assert params("tvmc/mod.params")[0] == "net_weights"
g = json.load(open("tvmc/mod.json"))
assert g["nodes"][1]["attrs"]["func_name"] == "net_run" and g["heads"] == [[1, 0, 0]]
assert g["attrs"]["shape"][1] == [[1, 1, 16, 16], [1, 10]] and g["node_row_ptr"] == [0, 1, 2]
END
cmp tvmc/mod.so one/libnet.so && [ -x tvmc/mod.so ] || die "mod.so"

# ---- same products, same bytes -----------------------------------------------------------------------------
archives() { for s in tar tar.gz tar.zst tar.xz zip; do "$tvmcc" pack "$@" -o "$s.$s" || return 1; done; }
mkdir plain && (cd plain && for f in $net; do cp "../$f" .; done && archives ./*)
vary() { # <what> <command prefix...>
    local what=$1
    shift
    rm -rf varied && mkdir "varied" && cd varied
    # another folder, other times, created the other way round
    for f in $(echo $net | tr ' ' '\n' | tac); do cp "../$f" .; done
    touch -d '2031-01-01' ./*
    for s in tar tar.gz tar.zst tar.xz zip; do
        "$@" "$tvmcc" pack $(ls -r net.* libnet.so) -o "$s.$s" || die "$what"
    done
    cd ..
    for s in tar tar.gz tar.zst tar.xz zip; do
        cmp "plain/$s.$s" "varied/$s.$s" || { "$tvmcc" diff --bytes "plain/$s.$s" "varied/$s.$s"; die "$s differs with $what"; }
    done
}
vary "locale and time zone" env LC_ALL=tr_TR.UTF-8 LANG=de_DE.UTF-8 TZ=Asia/Kathmandu
vary "HOME and user variables" env HOME=/nonexistent USER=somebody LOGNAME=somebody
vary "umask" sh -c 'umask 077; "$@"' sh
vary "no environment" env -i
if grep -q __asan_init "$tvmcc"; then
    echo "SKIP (faketime cannot run a sanitized tvmcc)"
elif command -v faketime >/dev/null; then
    vary "date" faketime '2031-07-04 05:06:07'
else
    echo "SKIP (no faketime)"
fi
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod -R a+rX "$work" 2>/dev/null
    reachable=$work
    if setpriv --reuid=65534 --regid=65534 --clear-groups test -r "$work/one/net.json" -a -x "$tvmcc"; then
        rm -rf user && mkdir user && chmod 777 user && cd user
        for s in tar tar.gz tar.zst tar.xz zip; do
            setpriv --reuid=65534 --regid=65534 --clear-groups "$tvmcc" pack $(for f in $net; do echo "$work/$f"; done) -o "$s.$s"
            cmp "$s.$s" "../plain/$s.$s" || die "$s differs for another user"
        done
        cd ..
    else
        echo "SKIP (another user cannot reach the build)"
    fi
else
    echo "SKIP (not root: no other user)"
fi
tar tvf plain/tar.tar | awk '{print $1, $2}' | sort -u >modes
printf '%s\n' '-rw-r--r-- 0/0' '-rwxr-xr-x 0/0' 'drwxr-xr-x 0/0' | diff - modes || die "modes"
tar tf plain/tar.tar | LC_ALL=C sort -c || die "order"
[ "$(head -c 8 plain/tar.gz.tar.gz | tail -c 5 | od -An -tx1)" = " 00 00 00 00 00" ] || die "gzip header has a time or name"
cat >long.log </dev/null
refused 1 "cannot be the path of an archive member" "$tvmcc" pack $net "--add=$(printf 'a%.0s' {1..120})=a53.log" -o x.tar
refused 1 "cannot be the path of an archive member" "$tvmcc" pack $net "--add=../x=a53.log" -o x.tar
[ -e x.tar ] && die "an archive in spite of errors"

# ---- mistakes --------------------------------------------------------------------------------------------------
refused 1 "the metadata of a model (.json) is needed" "$tvmcc" pack one/net.h one/net.a -o x.tar
refused 1 "the library of 'net'" "$tvmcc" pack one/net.json one/net.h -o x.tar
refused 1 "the weights of 'other'" "$tvmcc" pack one/other.json one/other.h one/other.a -o x.tar
refused 1 "arm/net.a: error: this file belongs to none" "$tvmcc" pack one/net.json one/net.h arm/net.a -o x.tar
cp one/libnet.so one/net.so
quiet "$tvmcc" pack one/net.json one/net.h one/net.so -o x.tar
rm x.tar one/net.so
quiet "$tvmcc" digits.onnx --entry=net --emit=so -o one/net.so -mcpu=x86-64 -mtriple=x86_64-linux-gnu
refused 1 "programs would look for 'net.so'" "$tvmcc" pack one/net.json one/net.h one/net.so -o x.tar
refused 1 "no part of an archive is made of such a file" "$tvmcc" pack $net app/main.c -o x.tar
refused 2 "names no kind of archive" "$tvmcc" pack $net -o x.rar
refused 2 "did you mean 'header'" "$tvmcc" pack $net -o x.tar --contents=headr
quiet "$tvmcc" pack $net -o small.tar --contents=lib,header --verify
[ "$(tar tf small.tar | grep -vc '/$')" = 6 ] || { tar tf small.tar; die "--contents"; }

# ---- hostile archives ----------------------------------------------------------------------------------------------
python3 - <<'END'
import io, tarfile, zipfile
def tar(name, *members, mode="w"):
    with tarfile.open(name, mode) as t:
        for path, kind, data in members:
            i = tarfile.TarInfo(path)
            i.type = kind
            if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE): i.linkname = data
            else: i.size = len(data)
            t.addfile(i, io.BytesIO(data) if kind == tarfile.REGTYPE else None)
R = tarfile.REGTYPE
tar("up.tar", ("net/ok", R, b"1"), ("net/../../evil", R, b"2"))
tar("absolute.tar", ("net/ok", R, b"1"), ("/tmp/tvmcc-evil", R, b"2"))
tar("symlink.tar", ("net/ok", R, b"1"), ("net/l", tarfile.SYMTYPE, "/etc"), ("net/l/evil", R, b"2"))
tar("hardlink.tar", ("net/ok", R, b"1"), ("net/l", tarfile.LNKTYPE, "net/ok"))
tar("device.tar", ("net/ok", R, b"1"), ("net/null", tarfile.CHRTYPE, b""))
tar("fifo.tar", ("net/ok", R, b"1"), ("net/pipe", tarfile.FIFOTYPE, b""))
tar("twice.tar", ("net/ok", R, b"1"), ("net/ok", R, b"2"))
tar("case.tar", ("net/ok", R, b"1"), ("net/OK", R, b"2"))
tar("both.tar", ("net/ok", R, b"1"), ("net/ok/in", R, b"2"))
tar("control.tar", ("net/ok", R, b"1"), ("net/a\nb", R, b"2"))
tar("bomb.tar.gz", ("net/zeros", R, bytes(200 << 20)), mode="w:gz")
with zipfile.ZipFile("up.zip", "w") as z: z.writestr("../evil", "2")
with zipfile.ZipFile("twice.zip", "w") as z:
    z.writestr("net/a", "1"); z.writestr("net/a", "2")
END
mkdir safe
for name in up.tar absolute.tar symlink.tar hardlink.tar device.tar fifo.tar twice.tar case.tar both.tar control.tar \
    bomb.tar.gz up.zip twice.zip; do
    refused 1 "[E0802]" "$tvmcc" unpack $name -C safe
    [ -z "$(ls -A safe)" ] && [ ! -e /tmp/tvmcc-evil ] && [ ! -e evil ] || die "$name left something"
done
refused 1 "differ only in case" "$tvmcc" unpack case.tar -C safe
refused 1 "larger than allowed" "$tvmcc" unpack bomb.tar.gz -C safe
refused 1 "larger than allowed" "$tvmcc" unpack net.tar.xz --max-size=4KiB -C safe
head -c 20000 net.tar.gz >cut.tar.gz
refused 1 "[E0802]" "$tvmcc" unpack cut.tar.gz -C safe
sed 's/define NET_ABI 1/define NET_ABI 2/' net.tar >changed.tar
refused 1 "SHA256SUMS" "$tvmcc" unpack changed.tar -C safe
(ulimit -f 20; refused 74 "cannot write" "$tvmcc" unpack net.tar -C safe) || die "full disk"
[ -z "$(ls -A safe)" ] || die "a failed unpack left something"

# Where it goes is made, but not for an archive that is refused.
quiet "$tvmcc" unpack net.tar -C new/er && cmp new/er/net/SHA256SUMS at.tar/net/SHA256SUMS || die "unpack -C to a new folder"
quiet "$tvmcc" unpack net.tar -o other && cmp other/net/SHA256SUMS at.tar/net/SHA256SUMS || die "unpack -o"
quiet "$tvmcc" unpack net.tar --output=third && [ -f third/net/SHA256SUMS ] || die "unpack --output"
refused 1 "[E0802]" "$tvmcc" unpack cut.tar.gz -C fourth
[ ! -e fourth ] || die "a refused archive left a folder"
refused 74 "" "$tvmcc" unpack net.tar -C net.tar/below

# The layouts of TVM in one command: what pack makes of the same products.
for layout in mlf tvmc; do
    quiet "$tvmcc" digits.onnx --entry=net -mcpu=x86-64 -mtriple=x86_64-linux-gnu --layout=$layout -o "by_compile_$layout.tar"
    tar tf "by_compile_$layout.tar" >list
done
grep -q 'mod.so' list || die "tvmcc compile --layout=tvmc"
tar tf by_compile_mlf.tar | grep -qx 'codegen/host/lib/lib0.o' || die "tvmcc compile --layout=mlf"
refused 2 "did you mean 'mlf'" "$tvmcc" digits.onnx --layout=mlg -o x.tar
refused 2 "only archives have a layout" "$tvmcc" digits.onnx --layout=mlf -o x.o

# ---- differences ------------------------------------------------------------------------------------------------------
products two net -mcpu=x86-64 -mtriple=x86_64-linux-gnu
quiet "$tvmcc" diff one/net.a two/net.a
differs() { # <text> <one> <other>
    refused 1 "$1" "$tvmcc" diff --bytes "$2" "$3"
}
cp one/net.a changed.a
offset=$(grep -abo 'net_info' one/net.a | head -1 | cut -d: -f1)
python3 - <<'END'
import struct
b = bytearray(open("one/net.a", "rb").read())
at = b.find(b"\x7fELF")
shoff, = struct.unpack_from("<Q", b, at + 40)
n, strndx = struct.unpack_from("<HH", b, at + 60)
def section(i): return struct.unpack_from("<IIQQQQIIQQ", b, at + shoff + 64 * i)
names = section(strndx)[4]
for i in range(n):
    s = section(i)
    name = bytes(b[at + names + s[0]:]).split(b"\0")[0]
    if name == b".text":
        b[at + s[4] + 0x20] ^= 1
open("changed.a", "wb").write(b)
END
differs "net.o: section '.text', '" one/net.a changed.a
sed 's/float/flout/' one/net.h >changed.h
differs "line 5: " one/net.h changed.h
quiet "$tvmcc" pack one/net.json one/net.h one/net.a one/net.relay -o p.tar.gz
quiet "$tvmcc" pack one/net.json one/net.h changed.a one/net.relay -o q.tar.zst
differs "net/lib/x86_64-unknown-linux-gnu/libnet.a: net.o: section '.text', '" p.tar.gz q.tar.zst
quiet "$tvmcc" pack one/net.json one/net.h one/net.a -o r.tar
differs "only the first has 'net/share/net/model.relay'" p.tar.gz r.tar
quiet "$tvmcc" pack one/net.json one/net.h one/net.a one/net.relay -o p.tar
differs "not the file around them" p.tar p.tar.gz
quiet "$tvmcc" pack one/net.json one/net.h one/net.a one/net.relay -o t.tar --epoch=5
differs "sbom.spdx.json: line 3" p.tar t.tar
mkdir loose && tar xf p.tar -C loose && tar cf again.tar -C loose net
differs "the" p.tar again.tar
echo more >>loose/net/include/net.h
differs "include/net.h: line" p.tar loose/net
differs "offset 0x" one/libnet.so "$digits"
refused 2 "takes two products" "$tvmcc" diff p.tar
refused 2 "cannot read" "$tvmcc" diff p.tar missing
cd / && rm -rf "$work"
