#!/bin/sh
# A fuzz target under libFuzzer, from the recorded corpus: the same inputs each time, on a busy machine too, so
# neither addresses nor what comparisons see (which differ from run to run) guide it.  For FUZZ_SECONDS where they
# are given, with all that libFuzzer has.  An input that fails is left in build/fuzz/.
#
#     run.sh onnx      needs build/fuzz: scripts/test makes it, or
#                      cmake --preset fuzz && cmake --build --preset fuzz --target fuzz_onnx
cd "$(dirname "$0")/../.." || exit 2

name=$1
fuzzer=build/fuzz/tests/fuzz_$name
if [ ! -x "$fuzzer" ]; then
    echo "SKIP (no $fuzzer)"
    exit 77
fi
found=$(mktemp -d) # new inputs go to the first folder; the recorded ones are only read
log=$(mktemp)
trap 'rm -rf "$found" "$log"' EXIT
if [ -n "$FUZZ_SECONDS" ]; then
    set -- "$fuzzer" -max_total_time="$FUZZ_SECONDS"
else
    set -- "$fuzzer" -runs=150000 -max_total_time=600 -use_cmp=0 -reload=0
    ! setarch -R true 2>/dev/null || set -- setarch -R "$@"
fi
"$@" -seed=1 -timeout=60 -rss_limit_mb=2048 -artifact_prefix="build/fuzz/$name-" \
    "$found" "tests/fuzz/corpus/$name" >"$log" 2>&1
status=$?
if [ $status = 0 ]; then tail -n 1 "$log"; else grep -vE '^#[0-9]+\s+(NEW|REDUCE)' "$log" | tail -n 60; fi
exit $status
