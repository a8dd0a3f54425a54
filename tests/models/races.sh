#!/usr/bin/env bash
# Every kernel of the public models under what finds races between threads, accesses out of bounds and barriers that not all
# threads come to: the interpreter (races.c) and oclgrind.
#
#     races.sh TVMCC RACES [FORMAT..]
#
# At -O0 and -O3, or at the LEVELS given: by the interpreter all threads, with results that device.sh compares; by oclgrind, which
# is slow, the first and the last block of each kernel, so results are not looked at.  QUICK=0 has it run all blocks, too, which
# takes hours.  That oclgrind does find a race is seen first, in a network without its barriers.  WATCHERS: one of the two.
set -u
tvmcc=$(realpath "$1") races=$(realpath "$2") status=0
shift 2
here=$(cd "$(dirname "$0")" && pwd)
digits=$here/../../examples/digits
watched=$here/../backends/watched.sh

planted() {
    local work library
    work=$(mktemp -d)
    library=$work/libdigits.so
    "$tvmcc" compile "$digits/digits.onnx" --target=opencl --emit=so -o "$library" || return
    for round in with without; do
        "$watched" oclgrind "$tvmcc" run "$library" --inputs "$digits/inputs.npz" >"$work/$round" 2>&1
        echo $? >>"$work/found"
        sed -i 's/barrier(CLK_LOCAL_MEM_FENCE);/                            ;/' "$library"
    done
    if [ "$(echo $(cat "$work/found"))" = "0 1" ] && grep -q 'data race' "$work/without"; then
        echo "ok   oclgrind finds a race"
    else
        echo "FAIL oclgrind, of digits with and without its barriers"
        head -20 "$work/with" "$work/without"
        false
    fi
    local result=$?
    rm -rf "$work"
    return $result
}

for watcher in ${WATCHERS:-interpreter oclgrind}; do
    echo "$watcher:"
    case $watcher in
    interpreter) RUN=$races "$here/device.sh" "$tvmcc" opencl "$@" || status=1 ;;
    oclgrind)
        [ "${QUICK:-1}" = 0 ] || export OCLGRIND_QUICK=1 TOLERANCE=none
        planted && RUN="$watched oclgrind $tvmcc" "$here/device.sh" "$tvmcc" opencl "$@" || status=1
        ;;
    esac
done
exit $status
