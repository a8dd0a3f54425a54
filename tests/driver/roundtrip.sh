#!/bin/bash
# roundtrip.sh TVMCC MODEL..: whatever --emit prints as text is read back, and prints as the same.
. "$(dirname "$0")/../lib.sh"
tvmcc=$1
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2
export TVMCC_CACHE_DIR="$dir/cache"

same() { cmp "$1" "$2" || die "$1 and $2 differ"; }

# twice SUFFIX OPTION..: what opt makes of m.SUFFIX, it makes of its own output.
twice() {
    local kind=$1
    shift
    quiet "$tvmcc" opt "m.$kind" -o "a.$kind" "$@"
    quiet "$tvmcc" opt "a.$kind" -o "b.$kind" "$@"
    same "a.$kind" "b.$kind"
}

target="-mtriple=x86_64-linux-gnu -mcpu=haswell"
for model; do
    rm -f m.* a.* b.*
    # shellcheck disable=SC2086
    quiet "$tvmcc" "$model" $target --entry=m --emit=relay,te,sched,tir,log,plan,id,weights -o m
    # Relay, with the data beside it: the same module, and the same product.
    twice relay
    [ ! -e m.relay.consts ] || same m.relay.consts a.relay.consts
    # shellcheck disable=SC2086
    quiet "$tvmcc" a.relay $target --entry=m --emit=o -o again.o
    # Expressions of several kernels, their first nests, and the schedules on them.
    quiet "$tvmcc" opt m.te -o te.tir
    quiet "$tvmcc" opt te.tir -o again.tir
    same te.tir again.tir
    quiet "$tvmcc" opt m.te --target="llvm $target" --sched=m.sched -o nest.tir
    quiet "$tvmcc" opt nest.tir -o again.tir
    same nest.tir again.tir
    # Loops, plans and records.
    quiet "$tvmcc" opt m.tir -o again.tir
    same m.tir again.tir
    quiet "$tvmcc" m.plan --emit=plan -o again.plan
    same m.plan again.plan
    # shellcheck disable=SC2086
    quiet "$tvmcc" "$model" $target --entry=m --tuning m.log --tuning-policy=require -o again.tir
    same m.tir again.tir
done
# Names of kernels join expressions and steps; a name that is not there is an error.
quiet "$tvmcc" opt m.te --target="llvm $target" --steps="$(cat m.sched)" -o steps.tir
same nest.tir steps.tir
refused 1 "there is no function '@nobody'" "$tvmcc" opt m.te --steps=@nobody
refused 1 "stand under their names" "$tvmcc" opt m.te --steps="unroll %x"
cat m.te m.te >twice.te
refused 4 "is there twice" "$tvmcc" opt twice.te
echo "$# models are read back from text"
