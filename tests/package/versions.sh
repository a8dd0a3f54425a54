#!/bin/bash
# versions.sh <tvmcc> <source> <work folder>
#
# docs/compatibility.md: every reader refuses the next version of its format, and says so.
tvmcc=$1 source=$2 work=$3 status=0
"$(dirname "$0")/../fresh" "$work" && cd "$work" || exit 2
export TVMCC_CACHE_DIR=$work/cache
cc=${CC:-$(command -v cc || command -v clang-19)}

# refused <status> <message> <command>...
refused() {
    local want=$1 message=$2 got
    shift 2
    "$@" >out 2>err
    got=$?
    grep -qF -- "$message" err && [ $got = "$want" ] && return
    echo "$*"; echo "  status $got, not $want; messages:"; cat err; echo "  wanted: $message"
    status=1
}
fine() { "$@" >out 2>err || { echo "$* fails:"; cat err; status=1; }; }

printf 'fn @main(%%x: Tensor[(1, 4), f32]) { nn.relu(%%x) }\n' >net.relay

# Plan and id.
fine "$tvmcc" net.relay --emit=plan,id -o net -mcpu=x86-64
fine "$tvmcc" net.plan net.id --shard=host -c -o host.o
sed '1s/plan 1/plan 2/' net.plan >next.plan
sed '1s/id 1/id 2/' net.id >next.id
refused 4 "a plan of another version of tvmcc; make it anew [E0305]" "$tvmcc" next.plan --shard=0/1 -c -o k.o
refused 4 "an id of another version of tvmcc; make it anew [E0305]" "$tvmcc" net.plan next.id --shard=host -c -o h.o
[ ! -e k.o ] && [ ! -e h.o ] || { echo "something was written"; status=1; }

# Manifest and lock.
printf 'schema: tvm-manifest/2\n' >next.yaml
refused 5 "next.yaml:1:9: error: 'schema' is 'tvm-manifest/1', not 'tvm-manifest/2' [E0203]" "$tvmcc" check next.yaml

# Archives: the .tar, the compressed one, the folder, for every command that reads them.
mkdir pack && cd pack || exit 2
fine "$tvmcc" ../net.relay -o net.tar.gz -mcpu=x86-64
tar xzf net.tar.gz
fine "$tvmcc" inspect net
sed -i 's|tvmcc-archive/1|tvmcc-archive/2|' net/manifest.json
grep -q 'tvmcc-archive/2' net/manifest.json || { echo "the archive has no version"; status=1; }
tar cf next.tar net && gzip -k next.tar
message="the archive's format has version 2; this tvmcc knows version 1 [E0802]"
refused 1 "$message" "$tvmcc" unpack next.tar.gz -C there
[ ! -e there/net ] || { echo "a newer archive was unpacked"; status=1; }
refused 1 "$message" "$tvmcc" audit net
refused 1 "$message" "$tvmcc" audit next.tar
refused 1 "$message" "$tvmcc" inspect next.tar.gz
refused 2 "$message" "$tvmcc" diff net net
cd .. || exit 2

# The ABI, when a library is loaded and when a header is compiled.
mkdir -p abi/tvmcc && cp "$source/include/tvmcc/abi.h" abi/tvmcc/
fine "$tvmcc" net.relay -c -o abi/net.o -mcpu=x86-64
printf '#include "net.h"\nint main(void) { return NET_ABI - 1; }\n' >main.c
fine "$cc" -Iabi -c main.c -o main.o
sed -i 's/^#define TVMCC_ABI 1$/#define TVMCC_ABI 2/' abi/tvmcc/abi.h
"$cc" -Iabi -c main.c -o main.o 2>err && { echo "a header of ABI 1 compiles with ABI 2"; status=1; }
grep -q 'net_abi' err || { echo "the compiler does not name net_abi:"; cat err; status=1; }
cat >fake.c <<'C'
#include <tvmcc/abi.h>
const tvmcc_model_info *fake_info(void);
const tvmcc_model_info *fake_info(void)
{
    static const tvmcc_model_info info = {.abi = TVMCC_ABI, .struct_bytes = sizeof info, .name = "fake"};
    return &info;
}
C
fine "$cc" -shared -fPIC -Iabi fake.c -o libfake.so
refused 1 "was built for another version of the ABI" "$tvmcc" run libfake.so

# A weights file.
fine "$tvmcc" "$source/examples/digits/digits.onnx" -fweights=file -o digits.tar -mcpu=native
tar xf digits.tar
fine "$tvmcc" run digits --fill-mode=zeros
rm digits/SHA256SUMS # which would be what is refused
sed -i '1s/^TVMCCWT1/TVMCCWT2/' digits/share/digits/digits.weights
refused 1 "not a weights file" "$tvmcc" run digits --fill-mode=zeros

# Machine figures.
printf 'tvmcc-machine 2\narch x86\n' >next.machine
refused 4 "version '2' of such files is not known; 1 is" "$tvmcc" -c net.relay --machine=next.machine -o t.o -mcpu=x86-64

# A tuning log.
printf '3\t%064d\tllvm\t-\tsplit\n' 0 >next.log
refused 4 "records of this version are not known; 1 and 2 are" "$tvmcc" -c net.relay --tuning=next.log -o t.o -mcpu=x86-64

# The cache: entries of another version are not there.
fine "$tvmcc" -v -c net.relay -o one.o -mcpu=x86-64
grep -q 'from the cache, 0 compiled' err || { echo "the cache is not used:"; cat err; status=1; }
find cache -type f | while read -r entry; do sed -i '1s/^TVMCCKC1/TVMCCKC2/' "$entry"; done
fine "$tvmcc" -v -c net.relay -o one.o -mcpu=x86-64
grep -q '0 from the cache, 1 compiled' err || { echo "entries of a newer cache are used:"; cat err; status=1; }

# Every number of the page is that of the code.
for word in "TVMCCWT1" "tvmcc-archive/1" "tvm-manifest/1" "tvm-lock/1" "TVMCCKC1"; do
    grep -qF "\`$word\`" "$source/docs/compatibility.md" || { echo "docs/compatibility.md lacks $word"; status=1; }
done
cd / && [ $status = 0 ] && rm -rf "$work"
exit $status
