#!/bin/bash
# cache.sh <tvmcc> <source> <work folder>
#
# Whatever lies in the cache, a compile gives the same bytes and status 0: entries that are cut,
# empty, of another machine, no object at all (under a hash that fits), links and folders in place
# of entries, a cache that is a file or that cannot be written.  Broken ones are replaced.
tvmcc=$1 source=$2 work=$3
. "$(dirname "$0")/../lib.sh"
enter "$work"
model=$source/examples/digits/digits.onnx

compile() { # <what is tested> <options...>
    rm -f m.o
    quiet "$tvmcc" -mtriple=x86_64-linux-gnu -mcpu=haswell -c "$model" -o m.o "${@:2}"
    cmp -s m.o good.o || die "$1: other bytes"
}
entries() { find cache -path '*/??/*' -type f | LC_ALL=C sort; }
# Every entry by its content after <python> of it, with the header that fits.
forge() { # <python: content, i -> bytes>
    python3 - "$1" $(entries) <<'END'
import hashlib, struct, sys
for i, path in enumerate(sys.argv[2:]):
    old = open(path, "rb").read()
    content = eval(sys.argv[1], {"content": old[80:], "i": i, "struct": struct})
    with open(path, "wb") as f:
        f.write(old[:8] + struct.pack("<Q", len(content)) + old[16:48] + hashlib.sha256(content).digest() + content)
END
}

"$tvmcc" -mtriple=x86_64-linux-gnu -mcpu=haswell -c "$model" -o good.o -fno-cache || die "a compile"
compile "an empty cache"
compile "a full cache"
cp -r cache full
[ "$(entries | wc -l)" -ge 4 ] || die "too few entries"
arm=$work/arm
TVMCC_CACHE_DIR=$arm quiet "$tvmcc" -mtriple=aarch64-linux-gnu -mcpu=generic -c "$model" -o arm.o
export FOREIGN=$(find "$arm" -path '*/??/*' -type f | head -1)

while read -r what; do
    rm -rf cache && cp -r full cache
    forge "$what"
    compile "$what"
    diff -r -x tvmcc-size full cache >log || { cat log; die "$what: broken entries stay"; }
    compile "$what, again"
done <<'END'
b''
b'\x7fELF'
b'x' * len(content)
content[:40]
content[:len(content) // 2]
content[:-1]
bytes(len(content))
content[:18] + b'\xb7\x00' + content[20:]
content[:40] + struct.pack('<Q', 1 << 63) + content[48:]
content[:60] + b'\xff\xff' + content[62:]
content.replace(b'\x00f\x00', b'\x00g\x00')
open(__import__('os').environ['FOREIGN'], 'rb').read()[80:]
END

# Every byte of the ELF header, another in each entry.
for ((at = 0; at < 64; at += 4)); do
    rm -rf cache && cp -r full cache
    forge "content if i > 3 else content[:$at + i] + bytes([content[$at + i] ^ 255]) + content[$at + i + 1:]"
    quiet "$tvmcc" -mtriple=x86_64-linux-gnu -mcpu=haswell -c "$model" -o m.o
done

# What the file itself can be.
each() { for entry in $(entries); do rm -f "$entry"; "$@" "$entry"; done; }
for what in truncate mkdir link dangling loop fifo; do
    rm -rf cache && cp -r full cache
    case $what in
    truncate) each truncate -s 0 ;;
    mkdir) each mkdir ;;
    link) cp good.o keep && each ln -s "$work/keep" ;;
    dangling) each ln -s nowhere ;;
    loop) for entry in $(entries); do ln -sf "$(basename "$entry")" "$entry"; done ;;
    fifo) each mkfifo ;;
    esac
    compile "$what"
    compile "$what, again"
    [ $what != link ] || cmp good.o keep || die "what an entry links to is written"
done

# What the folder itself can be.
rm -rf cache && touch cache && compile "a file for a cache"
rm -rf cache && ln -s nowhere cache && compile "a dangling link for a cache"
rm -rf cache && mkdir cache && chmod 555 cache && compile "a cache that cannot be written"
rm -rf cache && cp -r full cache
for name in tvmcc-size tvmcc-tmp; do
    rm -rf "cache/$name" && mkdir "cache/$name" && rm -rf cache/?? && compile "$name is a folder"
    rm -rf "cache/$name" && touch "cache/$name" && rm -rf cache/?? && compile "$name is a file"
done

# Links below it are nobody's folders: nothing there is read, written or removed.
for name in tvmcc-tmp $(cd full && ls -d ?? | head -1); do
    rm -rf cache victim && cp -r full cache && mkdir victim
    for file in 1-1 4711-0 precious $(ls "full/$name"); do echo "$file" >"victim/$file"; done
    cp -r victim before
    rm -rf "cache/$name" && ln -s "$work/victim" "cache/$name"
    compile "$name is a link"
    quiet "$tvmcc" cache stat
    quiet "$tvmcc" cache clean
    diff -r victim before || die "$name is a link: what it points to changed"
    rm -rf before
done
rm -rf cache && cp -r full cache && echo precious >precious && rm cache/tvmcc-size &&
    ln -s "$work/precious" cache/tvmcc-size && rm -rf cache/??
compile "tvmcc-size is a link"
[ "$(cat precious)" = precious ] || die "tvmcc-size is followed"
cd / && rm -rf "$work"
