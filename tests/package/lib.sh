# What the tests of this folder share; they are bash with `set -e`.
#
#     . lib.sh <build of tvmcc> <work folder>           enters the empty work folder

build=$(realpath "$1")
cmake=${CMAKE:-cmake}
"$(dirname "$0")/../fresh" "$2" && cd "$2" || exit 2
work=$PWD
export CTEST_OUTPUT_ON_FAILURE=1 TVMCC_CACHE_DIR=$work/cache

die() { echo "FAILED: $*" >&2; exit 1; }
# The output of a command goes to `log`, and is shown if it fails.
quiet() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; die "$*"; }; }
skip() { echo "SKIP ($*)"; cd / && rm -rf "$work"; exit 77; }
configure() { quiet "$cmake" -S "$1" -B "$2" -DTvmcc_DIR="$build" "${@:3}"; }
# Time stamps of files may have the grain of a clock tick.
later() { sleep 0.05; }

# The configuration of <text> as CMakeLists.txt must fail, and say <words>.
refuse() { # <words> <text> [<option of cmake>...]
    mkdir -p refused
    printf 'cmake_minimum_required(VERSION 3.23)\nproject(r C)\nfind_package(Tvmcc REQUIRED)\n%s\n' "$2" >refused/CMakeLists.txt
    ! "$cmake" -S refused -B refused.build -G Ninja -DTvmcc_DIR="$build" "${@:3}" >log 2>&1 || die "accepted: $2"
    tr -s ' \n' ' ' <log | grep -qF -- "$1" || { cat log; die "not said: $1"; }
}
