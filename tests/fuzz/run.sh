#!/bin/sh
# A fuzz target under libFuzzer: from the recorded corpus and a fixed seed, for FUZZ_SECONDS
# (default 60).  An input that fails is left in build/fuzz/.
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
"$fuzzer" -seed=1 -max_total_time="${FUZZ_SECONDS:-60}" -timeout=20 -rss_limit_mb=2048 \
    -artifact_prefix="build/fuzz/$name-" "$found" "tests/fuzz/corpus/$name" >"$log" 2>&1
status=$?
if [ $status = 0 ]; then tail -n 1 "$log"; else grep -vE '^#[0-9]+\s+(NEW|REDUCE)' "$log" | tail -n 60; fi
exit $status
