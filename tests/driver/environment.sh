#!/bin/bash
# environment.sh <source folder>
#
# Every variable of the environment that the driver or the CMake modules read has a row in
# driver/environment.def, and every row is read somewhere.
cd "$1" || exit 2
status=0
rooms="base formats objects manifest ir tune ops schedules passes frontends backends packaging driver runtime"
# getenv("X"), lists of names that are given to it, REPORT_VARIABLE; $ENV{X} of CMake.
{
    grep -rhoE --include='*.[ch]' 'getenv\("[A-Z_]+"\)' $rooms | grep -oE '"[A-Z_]+"' | tr -d '"'
    grep -rhE --include='*.[ch]' -A6 'static const char \*const [a-z]+\[\] = \{"(PATH|TVMCC|ANDROID)' driver packaging |
        grep -oE '"(PATH|TVMCC_[A-Z_]+|ANDROID_[A-Z_]+)"' | tr -d '"'
    sed -n 's/^#define REPORT_VARIABLE "\([A-Z_]*\)".*/\1/p' driver/build.h
    grep -rhoE 'ENV\{[A-Z_]+\}' cmake-modules | sed 's/ENV{\(.*\)}/\1/'
} | sort -u >"${TMPDIR:-/tmp}/read.$$"
sed -n 's/^VARIABLE("\([A-Z_]*\)".*/\1/p' driver/environment.def | sort -u >"${TMPDIR:-/tmp}/told.$$"
diff "${TMPDIR:-/tmp}/read.$$" "${TMPDIR:-/tmp}/told.$$" || { echo "< read and not told, > told and not read"; status=1; }
# What is read by a name that is no literal would escape the above.
grep -rnE --include='*.[ch]' 'getenv\([^")]' $rooms | grep -vE 'getenv\((REPORT_VARIABLE|names\[i\]|variables\[i\])\)' && status=1
rm -f "${TMPDIR:-/tmp}/read.$$" "${TMPDIR:-/tmp}/told.$$"
exit $status
