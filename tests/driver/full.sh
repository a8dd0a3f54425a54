#!/bin/bash
# full.sh <tvmcc> <source> <work folder>
#
# A disk that fills at any moment: status 0, or 74 with an error that says so; every file is whole or is
# not there, nothing else stays, and what was there before is unharmed.
# On a small tmpfs where one can be mounted, within RLIMIT_FSIZE in any case.
tvmcc=$1 source=$2 work=$3
. "$(dirname "$0")/../lib.sh"
"$(dirname "$0")/../fresh" "$work" && mkdir -p "$work/out" "$work/whole" && cd "$work" || exit 2
model=$source/examples/digits/digits.onnx
export TVMCC_CACHE_DIR=$work/cache
options="-mtriple=x86_64-linux-gnu -mcpu=x86-64"
kinds="o so h weights plan tar tar.gz"

for kind in $kinds a json; do quiet "$tvmcc" "$model" $options -MD -o "whole/m.$kind"; done
quiet "$tvmcc" pack whole/m.json whole/m.h whole/m.a -o whole/p.tar

# <what> <command...>: into the folder `out`, from nothing and over an older file
attempt() {
    local what=$1 status=0
    shift
    "$@" >log 2>&1 || status=$?
    case $status in
    0) ok=$((ok + 1)) ;;
    74) grep "cannot write .*\[E0903\]" log | grep -qv "tmp-" || { cat log; die "$what: not said, or of a temporary file"; } ;;
    *) cat log; die "$what: status $status" ;;
    esac
    for file in out/*; do
        case $file in
        "out/*") ;;
        out/m.d | out/m.*.d) ;; # names files, and is as whole as they
        out/unpacked) diff -r out/unpacked unpacked >log || { cat log; die "$what: half a folder"; } ;;
        out/*) cmp -s "$file" "whole/${file#out/}" || [ "$(cat "$file")" = old ] || die "$what: half of $file" ;;
        esac
    done
    [ -z "$(ls -A out | grep -vE '^(m|p)\.[a-z.]+$|^unpacked$')" ] || die "$what leaves $(ls -A out)"
}
all() { # <what>
    for kind in $kinds; do
        rm -rf out/*
        attempt "$1, $kind" "$tvmcc" "$model" $options -MD -fno-cache -o "out/m.$kind"
    done
    rm -rf out/*
    attempt "$1, pack" "$tvmcc" pack whole/m.json whole/m.h whole/m.a -o out/p.tar
    rm -rf out/*
    attempt "$1, unpack" "$tvmcc" unpack whole/u.tar -C out
    rm -rf out/*
    status=0
    TVMCC_CACHE_DIR=$work/out/cache "$tvmcc" "$model" $options -c -o m.o >log 2>&1 || status=$?
    case $status in
    0) cmp -s m.o whole/m.o || die "$1: a cache that is full changes the object" ;;
    74) [ ! -e m.o ] || die "$1: status 74 and an object" ;;
    *) cat log; die "$1, a cache: status $status" ;;
    esac
    rm -rf m.o m.h out/*
}
(cd whole && mkdir u && tar xf p.tar -C u && mv u/* u/unpacked && tar cf u.tar -C u unpacked && mv u/unpacked .. && rmdir u)

ok=0
for limit in 3 40 56; do
    (ulimit -f $limit; all "ulimit -f $limit"; exit 0) || exit 1
done
if mount -t tmpfs -o size=4k none out 2>log; then
    trap 'cd /; umount "$work/out"' EXIT
    for size in 16 56 100 1000; do
        mount -o remount,size=${size}k none out || break
        ok=0
        all "$size KiB of disk"
    done
    [ $ok -ge 9 ] || die "a megabyte is not enough"
    cd / && umount "$work/out" && trap - EXIT
else
    echo "SKIP (a file system that is full: $(cat log))"
fi

# An older product stays.
cd "$work" && rm -rf out && mkdir out
for kind in so tar o; do
    echo old >out/m.$kind
    (ulimit -f 6; refused 74 "cannot write" "$tvmcc" "$model" $options -fno-cache -o out/m.$kind) || exit 1
    [ "$(cat out/m.$kind)" = old ] || die "an older .$kind"
done
for kind in o a so tar h s; do
    refused 74 "cannot write" "$tvmcc" "$model" $options -o /dev/full --emit=$kind
    [ -c /dev/full ] || die "/dev/full is no device any more"
done
cd / && rm -rf "$work"
