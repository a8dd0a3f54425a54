#!/bin/bash
# exports.sh <tvmcc> <build folder>
#
# No function of ours has a name of the C library: where libraries are preloaded (profilers, checkers of memory) they would call ours
# in its place, and so would a program that is linked with the static library.
set -u
tvmcc=$1 libraries=$(ls "$2"/lib/libtvmcc_*.a) status=0
exported=$(nm -D --defined-only "$tvmcc" | awk '$2 == "T" { print $3 }')
[ -z "$exported" ] || { echo "the driver exports $exported"; status=1; }
libc=$(ldd "$tvmcc" | awk '$1 ~ /^lib[cm]\.so/ { print $3 }')
[ -n "$libc" ] || { echo "which C library?"; exit 1; }
# Names with one @ are of old versions, which nothing is linked with.
both=$(comm -12 <(nm -g --defined-only $libraries 2>/dev/null | awk 'NF == 3 && $2 ~ /[TDBR]/ { print $3 }' | sort -u) \
    <(nm -D --defined-only $libc | awk '$3 !~ /[^@]@[^@]/ { sub("@@.*", "", $3); print $3 }' | sort -u))
[ -z "$both" ] || { echo "names of the C library: $both"; status=1; }
exit $status
