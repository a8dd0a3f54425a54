#!/bin/bash
# hostile.sh <tvmcc> <source> <work folder>
#
# The whole driver against broken files, signals and places that cannot be written: an exit status
# that is listed, no product after an error, no temporary file ever; and that a run writes nothing,
# gives the same bits on any number of threads, and that progress is shown and wiped.
set -u
tvmcc=$1 source=$2 work=$3
model=$source/examples/digits/digits.onnx
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
"$(dirname "$0")/../fresh" "$work" && mkdir -p "$work/out" "$work/empty" && cd "$work" || exit 2

compile() { # file
    rm -f out/*
    timeout 60 "$tvmcc" -mcpu=x86-64 -O0 -j1 -c "$1" -o out/m.o >log 2>&1
    local status=$?
    case $status in
    0) [ -s out/m.o ] || fail "$1 ($2): no object" ;;
    1 | 3 | 4) [ -z "$(ls out)" ] || fail "$1 ($2): an error leaves $(ls out)" ;;
    *) fail "$1 ($2): status $status"; tail -3 log ;;
    esac
}

# Truncated at many places; single bits flipped, most of them where the graph is told.
size=$(stat -c %s "$model")
for ((i = 0; i < 24; i++)); do
    head -c $((size * i / 24)) "$model" >m.onnx
    compile m.onnx "$((size * i / 24)) bytes"
done
for ((i = 0; i < 40; i++)); do
    at=$(((i * 7919 + 13) % (i % 2 ? size : 1200)))
    cp "$model" m.onnx
    byte=$(od -An -tu1 -j $at -N1 m.onnx)
    printf "\\x$(printf %02x $((byte ^ (1 << i % 8))))" | dd of=m.onnx bs=1 seek=$at conv=notrunc status=none
    compile m.onnx "bit $((i % 8)) of byte $at"
done

# What is no file, or no model: said so, and at once.
refused() { # status, text, arguments
    local status=$1 text=$2
    shift 2
    timeout 60 "$tvmcc" "$@" -mcpu=x86-64 -o out/m.o >log 2>&1
    [ $? = "$status" ] && grep -qF -- "$text" log || fail "$*: no '$text' with status $status: $(head -1 log)"
}
refused 74 "cannot read '/dev/zero': it is a device" -c /dev/zero
refused 74 "cannot read '-': it is a device" -c - </dev/zero
refused 4 "it looks like an empty file" -c /dev/null
mkdir -p saved plain
touch saved/saved_model.pb
refused 4 "saved/saved_model.pb: error: not a model in a known format; it looks like an empty file" -c saved
refused 4 "it looks like a folder" -c plain
printf '\x89PNG\r\n\x1a\n\0\0\0\rIHDR' >picture.onnx
refused 4 "picture.onnx: error: not a model in a known format; it looks like a PNG picture" -c picture.onnx
refused 4 "it looks like a PNG picture" -c picture.onnx --model-format=onnx
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n' >lfs.onnx
refused 4 'git lfs pull' -c lfs.onnx
# A model that is no file is read once, and its hash is in the product nevertheless.
hash=$(sha256sum <"$model" | head -c 64 | sed 's/../\\x&/g')
from() { # what it is read from, as an argument
    timeout 60 "$tvmcc" -mcpu=x86-64 -O0 -c "$1" -o out/m.o >log 2>&1 || fail "a model from $1: $(head -1 log)"
    LC_ALL=C grep -qaP "$hash" out/m.o || fail "a model from $1: the hash is another"
    rm -f out/*
}
mkfifo pipe
from "$model"
from - <"$model"
cat "$model" | from -
from <(cat "$model")
cat "$model" >pipe &
from pipe

# Places that cannot be written.
"$tvmcc" -mcpu=x86-64 -c "$model" -o missing/m.o 2>log
[ $? = 74 ] || fail "a missing folder: status $?"
rm -f out/*
"$tvmcc" -mcpu=x86-64 -c "$model" -o /dev/full 2>log
[ $? = 74 ] || fail "/dev/full: status $?"

# Signals: whole files or none.
cp "$model" m.onnx
for after in 0.02 0.05 0.1 0.2; do
    for signal in TERM KILL; do
        rm -f out/*
        timeout -s $signal $after "$tvmcc" -mcpu=x86-64 -O3 m.onnx -o out/m.tar >log 2>&1
        left=$(ls out)
        case $signal,$left in
        *, | *,m.tar) ;;
        KILL,*) ;; # what a linker reads and writes has a name
        *) fail "SIG$signal after $after s leaves $left" ;;
        esac
        [ ! -e out/m.tar ] || tar tf out/m.tar >log 2>&1 || fail "half a product after SIG$signal"
    done
done

# What we write has no name before it is whole, so not even SIGKILL leaves anything.
case $(stat -f -c %T out) in
ext2/ext3 | xfs | btrfs | tmpfs | f2fs)
    for after in 0.02 0.04 0.06 0.08 0.1 0.13 0.16 0.2; do
        rm -f out/*
        timeout -s KILL $after "$tvmcc" -mcpu=x86-64 -O3 m.onnx --emit=a,weights,tir -o out/m >log 2>&1
        for file in out/*; do
            case $file in "out/*" | out/m.a | out/m.h | out/m.weights | out/m.tir) ;; *) fail "SIGKILL leaves $file" ;; esac
        done
    done
    ;;
*) echo "SKIP (files without names on $(stat -f -c %T out))" ;;
esac

# Two at once, to one place.
rm -f out/*
"$tvmcc" -mcpu=x86-64 -c m.onnx -o out/m.o & one=$!
"$tvmcc" -mcpu=x86-64 -c m.onnx -o out/m.o & two=$!
wait $one && wait $two || fail "two compiles at once"
[ "$(ls out | tr '\n' ' ')" = "m.h m.o " ] || fail "two compiles at once leave $(ls out)"

# A run writes nothing, and gives the same bits on any number of threads.
(cd empty && TMPDIR=$work/empty "$tvmcc" run ../m.onnx --print-top=1 >../log 2>&1) || fail "a run"
[ -z "$(ls -A empty)" ] || fail "a run leaves $(ls -A empty)"
for threads in 1 2 3 8; do
    "$tvmcc" run m.onnx --threads=$threads --outputs=$threads.npz >log 2>&1 || fail "$threads threads"
    cmp -s 1.npz $threads.npz || fail "$threads threads give other bits"
done

# Progress: on a terminal only, and wiped.
if command -v script >/dev/null; then
    TERM=xterm script -qec "'$tvmcc' bench m.onnx --repeat=3 --number=2 -j1" typescript >/dev/null </dev/null
    grep -q "ms min" typescript || fail "no result on a terminal"
    tr '\r' '\n' <typescript | grep -a "\] " | grep -qa "ms min" && fail "progress is not wiped"
fi
cd / && rm -rf "$work"
[ $failures = 0 ]
