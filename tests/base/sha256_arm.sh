#!/bin/sh
# SHA-256 by the instructions of ARMv8: the unit test of base/sha256.c for aarch64, under qemu.
#
#     sha256_arm.sh <source folder> <build folder>
source=$1 build=$2
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64)
clang=$(command -v clang-19 || command -v clang)
ld=$(command -v ld.lld-19 || command -v ld.lld || command -v aarch64-linux-gnu-ld)
if [ -z "$qemu" ] || [ -z "$clang" ] || [ -z "$ld" ] ||
    [ ! -d /usr/aarch64-linux-gnu/include ]; then
    echo "SKIP (needs clang, qemu-user-static, lld, libc6-dev-arm64-cross)"
    exit 77
fi
mkdir -p "$build" || exit 1
cd "$build" || exit 1

# Its own small libc calls only, linked without the compiler's libraries, which may be absent.
"$clang" --target=aarch64-linux-gnu -isystem /usr/aarch64-linux-gnu/include -std=c11 -O2 -Wall \
    -Wextra -Werror -D_GNU_SOURCE -I"$source" -c "$source/base/sha256.c" -o sha256.o &&
    "$clang" --target=aarch64-linux-gnu -isystem /usr/aarch64-linux-gnu/include -std=c11 -O2 \
        -D_GNU_SOURCE -I"$source" -c "$source/tests/unit/test_sha256.c" -o test_sha256.o || exit 1
lib=/usr/aarch64-linux-gnu/lib
"$ld" -dynamic-linker "$lib/ld-linux-aarch64.so.1" -rpath "$lib" -o test_sha256 \
    "$lib/crt1.o" "$lib/crti.o" sha256.o test_sha256.o "$lib/libc.so.6" \
    "$lib/ld-linux-aarch64.so.1" "$lib/crtn.o" || exit 1
"$qemu" -L /usr/aarch64-linux-gnu ./test_sha256 >out 2>&1
status=$?
cat out
grep -qx arm out || { echo "the processor has no such instructions" >&2; exit 1; }
exit $status
