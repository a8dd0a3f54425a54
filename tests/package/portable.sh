#!/bin/bash
# portable.sh <cmake> <build of tvmcc> <source>
#
# The portable driver of `scripts/package tar`, and its libtvmcc: they need nothing newer than GLIBC_2.31, by the file's own
# list of versions, and compile to the same bytes as the ordinary ones.  packages.sh runs them on a
# system that has no newer library; this runs always.
cmake=$1 build=$2 source=$3
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT || exit 2
ninja -C "$build" -t query tvmcc_portable >/dev/null 2>&1 || { echo "SKIP (not built here)"; exit 77; }
targets=tvmcc_portable files=$build/bin/portable/tvmcc driver=$build/bin/portable/tvmcc library=
if ninja -C "$build" -t query tvmcc_portable_library >/dev/null 2>&1; then
    library=$build/lib/portable/libtvmcc.so
    targets="$targets tvmcc_portable_library" files="$files $library"
fi
"$cmake" --build "$build" --target $targets >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
for file in $files; do
    readelf -W -V "$file" | grep -o 'Name: GLIBC_[0-9.]*' | sed 's/.*_//' | sort -u -V >"$work/versions"
    [ -s "$work/versions" ] || { echo "no versions were read of $file"; exit 1; }
    if [ "$( (cat "$work/versions"; echo 2.31) | sort -V | tail -n 1)" != 2.31 ]; then
        echo "newer than GLIBC_2.31 in $file:"
        readelf -W --dyn-syms "$file" | grep -E '@GLIBC_2\.(3[2-9]|[4-9][0-9])'
        echo "hint: add rows to cmake/old_glibc.c"
        exit 1
    fi
    needed=$(readelf -W -d "$file" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
        grep -v -E '^(lib(c|m|pthread|dl|rt)\.so\.[0-9]+|ld-linux.*)$')
    [ -z "$needed" ] || { echo "$file needs $needed"; exit 1; }
    ! readelf -W -d "$file" | grep -E 'RPATH|RUNPATH' || { echo "$file looks for libraries beside it"; exit 1; }
done
! grep -n 'lib[a-z]*\.so\b' "$source/scripts/package" | grep -v 'libtvmcc\.so' || { echo "scripts/package brings a library along"; exit 1; }
# It starts, and constructors ran (LLVM's command line options are made in them); threads, stat, dlopen.
for d in "$build/bin/tvmcc" "$driver"; do
    "$d" "$source/examples/digits/digits.onnx" --emit=o,h,tar.zst --entry=digits -mcpu=native -j2 -o "$work/$(echo "$d" | md5sum | cut -c1-8)" || exit 1
done
set -- "$work"/*.o && cmp "$1" "$2" || exit 1
set -- "$work"/*.h && diff "$1" "$2" || exit 1
"$driver" run "$source/examples/digits/digits.onnx" --inputs "$source/examples/digits/inputs.npz" \
    --expect "$source/examples/digits/outputs.npz" --rtol 1e-4 --threads 2
# The library exports what the header declares, and a program that loads it compiles.
[ -n "$library" ] || exit 0
nm -D --defined-only "$library" | sed -n 's/.* [A-TV-Z] \([^@]*\)@.*/\1/p' | grep -v '^TVMCC_' | sort -u >"$work/exported"
grep -o 'tvmcc_[a-z_]*;' "$source/cmake/libtvmcc.map" | tr -d ';' | sort -u | diff - "$work/exported" || exit 1
"${CC:-cc}" -D_GNU_SOURCE "-I$source/include" "$source/examples/library/main.c" "$library" "-Wl,-rpath,${library%/*}" -pthread \
    -o "$work/compile" && mkdir "$work/cpus" && cp "$source/examples/digits/digits.onnx" "$work" || exit 1
(cd "$work" && ./compile digits.onnx cpus haswell && "$build/bin/tvmcc" -c digits.onnx -mcpu=haswell -o driver.o &&
    cmp cpus/haswell.o driver.o)
