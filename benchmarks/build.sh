#!/bin/bash
# build.sh <tvmcc> <model.onnx>...: how long `tvmcc build` takes for each model on four pairs (two
# levels of x86-64, AArch64, RISC-V): from nothing with -j1 and with -j2, taking turns, without the
# kernel cache; with a cache that has all kernels; and with nothing to do.  Least of ROUNDS (3).
set -eu
tvmcc=$(realpath "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
    cat <<'END'
schema: tvm-manifest/1
hosts:
  old: {triple: x86_64-linux-gnu, mcpu: x86-64-v2}
  new: {triple: x86_64-linux-gnu, mcpu: x86-64-v3}
  board: {triple: aarch64-linux-gnu, mcpu: cortex-a53}
  risc: riscv64-linux-gnu
targets: {cpu: {kind: llvm}}
pairs:
  old: {host: old, target: cpu}
  new: {host: new, target: cpu}
  board: {host: board, target: cpu}
  risc: {host: risc, target: cpu}
models:
END
    n=0
    for model; do
        n=$((n + 1))
        echo "  model$n: {source: '$(realpath "$model")', pairs: [old, new, board, risc]}"
    done
} >"$work/manifest.yaml"
cd "$work"
export TVMCC_CACHE_DIR=$work/cache

spent() { # name, command: milliseconds, kept if they are the least so far
    local name=$1 from ms
    shift
    from=$(date +%s%N)
    "$@" 2>log || { cat log; exit 1; }
    ms=$((($(date +%s%N) - from) / 1000000))
    local -n least=$name
    [ "${least:-0}" -gt 0 ] && [ "$least" -le "$ms" ] || least=$ms
}
for ((round = 0; round < ${ROUNDS:-3}; round++)); do
    for jobs in 1 2; do
        rm -rf out
        spent cold$jobs "$tvmcc" build -C out -fno-cache -j $jobs
    done
    spent nothing "$tvmcc" build -C out -fno-cache -j 2
    [ -d cache ] || "$tvmcc" build -C fill 2>log
    rm -rf out
    spent warm "$tvmcc" build -C out -j 2
done
echo "$n models, 4 pairs: -j1 $cold1 ms, -j2 $cold2 ms, ratio $(awk "BEGIN {printf \"%.2f\", $cold1 / $cold2}")"
echo "kernels from the cache, -j2: $warm ms; nothing to do: $nothing ms"
