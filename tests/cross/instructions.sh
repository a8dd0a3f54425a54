#!/bin/bash
# instructions.sh TVMCC
#
# Instructions of other machines than this one, by the steps of a tuning log: the code has them, and an
# emulator computes what this machine computes; where the CPU lacks one, it is written out.
set -u
tvmcc=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
[ -e /usr/aarch64-linux-gnu/lib/libc.a ] && command -v qemu-aarch64-static >/dev/null || exit 77
failed=0
die() { echo "FAILED: $*"; failed=1; }

# Rows and columns by twos, k by eights, in the order that the instruction reads them.
mmla='split %m by 2 -> %mo, %mi; split %n by 2 -> %no, %ni; split %k by 8 -> %ko, %ki'
mmla+='; reorder %mo, %no, %ko, %ki, %mi, %ni; cache_write dense reg at %no'
mmla+='; cache_read %p0 dense private at %mo; cache_read %w dense private at %mo'
mmla+='; transform_layout %p0.private (a, b) -> (b//8, a, b%8)'
mmla+='; transform_layout %w.private (a, b) -> (a//2, b//8, a%2, b%8)'
mmla+='; tensorize %ki with @mmla'

check() { # CPU, type of data, of weights, instruction
    local cpu=(-mtriple=aarch64-linux-gnu -mcpu="$1") log
    cat >net.relay <<END
fn @main(%x: Tensor[(8, 32), $2], %w: Tensor[(12, 32), $3]) { nn.dense(%x, %w, out_dtype="i32") }
END
    "$tvmcc" net.relay "${cpu[@]}" --emit=log -o net.log || die "log"
    sed -i "s#| - |.*#| - | $mmla#" net.log
    log=(--tuning=net.log --tuning-policy=require)
    "$tvmcc" run net.relay --outputs want.npz >log 2>&1 || die "run here: $(cat log)"
    "$tvmcc" run net.relay "${cpu[@]}" "${log[@]}" --expect want.npz --rtol 0 >log 2>&1 ||
        die "$*: $(cat log)"
    "$tvmcc" -S net.relay "${cpu[@]}" "${log[@]}" -o net.s || die "-S"
    if [ -n "$4" ]; then grep -q "\s$4\s" net.s || die "$*: no $4"; fi
}
check neoverse-n1+i8mm i8 i8 smmla
check neoverse-v2 u8 u8 ummla
check neoverse-v2 u8 i8 usmmla
check neoverse-n1 i8 i8 ""

# Tile registers: no emulator of Debian 12 has them, so here they are written out.
tile='split %m by 16 -> %mo, %mi; split %n by 16 -> %no, %ni; split %k by 64 -> %ko, %ki'
tile+='; split %ki by 4 -> %kq, %kd; reorder %mo, %no, %ko, %kq, %kd, %mi, %ni'
tile+='; cache_write dense reg at %no; cache_read %p0 dense private at %ko'
tile+='; cache_read %w dense private at %ko; transform_layout %w.private (a, b) -> (b//4, a, b%4)'
tile+='; tensorize %kq with @tile4'
cat >net.relay <<END
fn @main(%x: Tensor[(32, 128), u8], %w: Tensor[(48, 128), i8]) { nn.dense(%x, %w, out_dtype="i32") }
END
"$tvmcc" run net.relay --outputs want.npz >log 2>&1 || die "run here: $(cat log)"
for cpu in "-mcpu=native" "-mtriple=x86_64-linux-gnu -mcpu=sapphirerapids+amx-int8"; do
    "$tvmcc" net.relay $cpu --emit=log -o net.log || die "log"
    sed -i "s#| - |.*#| - | $tile#" net.log
    if [ "$cpu" = "-mcpu=native" ]; then
        "$tvmcc" run net.relay --tuning=net.log --tuning-policy=require --expect want.npz --rtol 0 >log 2>&1 ||
            die "tile4 here: $(cat log)"
    else
        "$tvmcc" -S net.relay $cpu --tuning=net.log --tuning-policy=require -o net.s || die "-S"
        for word in ldtilecfg tileloadd tdpbusd; do
            grep -q "\s$word\s" net.s || die "tile4: no $word"
        done
    fi
done
exit $failed
