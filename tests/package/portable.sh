#!/bin/bash
# portable.sh <cmake> <build of tvmcc> <source>
#
# The portable driver of `scripts/package tar`: needs nothing newer than GLIBC_2.31, by the file's own
# list of versions, and compiles to the same bytes as the ordinary one.  packages.sh runs it on a
# system that has no newer library; this runs always.
cmake=$1 build=$2 source=$3
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT || exit 2
ninja -C "$build" -t query tvmcc_portable >/dev/null 2>&1 || { echo "SKIP (not built here)"; exit 77; }
"$cmake" --build "$build" --target tvmcc_portable >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
driver=$build/bin/portable/tvmcc
readelf -W -V "$driver" | grep -o 'Name: GLIBC_[0-9.]*' | sed 's/.*_//' | sort -u -V >"$work/versions"
[ -s "$work/versions" ] || { echo "no versions were read"; exit 1; }
if [ "$( (cat "$work/versions"; echo 2.31) | sort -V | tail -n 1)" != 2.31 ]; then
    echo "newer than GLIBC_2.31:"
    readelf -W --dyn-syms "$driver" | grep -E '@GLIBC_2\.(3[2-9]|[4-9][0-9])'
    echo "hint: add rows to cmake/old_glibc.c"
    exit 1
fi
needed=$(readelf -W -d "$driver" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
    grep -v -E '^(lib(c|m|pthread|dl|rt)\.so\.[0-9]+|ld-linux.*)$')
[ -z "$needed" ] || { echo "needs $needed"; exit 1; }
! readelf -W -d "$driver" | grep -E 'RPATH|RUNPATH' || { echo "it looks for libraries beside it"; exit 1; }
! grep -nE '\.so\b' "$source/scripts/package" || { echo "scripts/package brings a library along"; exit 1; }
# It starts, and constructors ran (LLVM's command line options are made in them); threads, stat, dlopen.
for d in "$build/bin/tvmcc" "$driver"; do
    "$d" "$source/examples/digits/digits.onnx" --emit=o,h,tar.zst --entry=digits -mcpu=native -j2 -o "$work/$(echo "$d" | md5sum | cut -c1-8)" || exit 1
done
set -- "$work"/*.o && cmp "$1" "$2" || exit 1
set -- "$work"/*.h && diff "$1" "$2" || exit 1
"$driver" run "$source/examples/digits/digits.onnx" --inputs "$source/examples/digits/inputs.npz" \
    --expect "$source/examples/digits/outputs.npz" --rtol 1e-4 --threads 2
