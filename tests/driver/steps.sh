#!/bin/bash
# steps.sh TVMCC MODEL: a compile in steps (docs/design/build.md) gives what one command gives, and
# what does not fit together is refused.
tvmcc=$1
model=$2
. "$(dirname "$0")/../lib.sh"
trap 'rm -rf "$work"' EXIT
enter "$(mktemp -d)"

for pair in "-mtriple=x86_64-linux-gnu -mcpu=haswell" "-mtriple=riscv64-linux-gnu -fweights=section" \
    "-mtriple=x86_64-linux-gnu -mcpu=x86-64 -fweights=extern" "-mtriple=aarch64-linux-gnu -fweights=file"; do
    # shellcheck disable=SC2086
    set -- $pair --entry=net
    quiet "$tvmcc" -c "$model" -o one.o "$@" -Wno-baseline-cpu
    quiet "$tvmcc" -c "$model" -o one.a "$@" -Wno-baseline-cpu
    quiet "$tvmcc" "$model" --emit=plan,id,weights -o S -MD -MF S.d "$@"
    grep -qF "S.plan S.id S.weights:" S.d || die "the depfile: $(cat S.d)"
    quiet "$tvmcc" S.plan --emit=plan -o again.plan
    same S.plan again.plan
    ! grep -q "$(dirname "$model")" S.plan || die "the plan names a folder"
    quiet "$tvmcc" S.plan --shard=0/1 -c -o net.0.o
    quiet "$tvmcc" S.plan S.id --shard=host -c -o net.host.o
    quiet "$tvmcc" S.plan S.weights --shard=weights -c -o net.weights.o
    quiet "$tvmcc" net.0.o net.host.o net.weights.o -o two.o
    same one.o two.o
    quiet "$tvmcc" S.plan S.id S.weights -c -o three.o
    same one.o three.o
    quiet "$tvmcc" S.plan S.id --emit=h,json -o two
    same one.h two.h
    for i in 0 1 2; do quiet "$tvmcc" S.plan --shard=$i/3 -c -o net.$i.o; done
    quiet "$tvmcc" net.0.o net.1.o net.2.o net.host.o net.weights.o -o libnet.a
done

# Devices: their code is the host step's, as is that of several targets.
for targets in opencl vulkan metal "opencl vulkan llvm"; do
    # shellcheck disable=SC2086,SC2046
    set -- $(printf -- '--target=%s ' $targets) --entry=net -Wno-baseline-cpu
    quiet "$tvmcc" -c "$model" -o device.o "$@"
    quiet "$tvmcc" "$model" --emit=plan,id,weights -o D "$@"
    quiet "$tvmcc" D.plan --emit=plan -o again.plan
    same D.plan again.plan
    quiet "$tvmcc" D.plan D.id --shard=host -c -o D.host.o
    quiet "$tvmcc" D.plan D.weights --shard=weights -c -o D.weights.o
    quiet "$tvmcc" D.host.o D.weights.o -o pieces.o
    same device.o pieces.o
done

# The cache: all kernels are there now, and bytes do not depend on it.
quiet "$tvmcc" -c "$model" -o warm.o -mtriple=x86_64-linux-gnu -mcpu=haswell --entry=net -v
grep -qE "kernels: ([0-9]+), \1 from the cache, 0 compiled" log || { cat log; die "cache not used"; }
quiet "$tvmcc" -c "$model" -o cold.o -mtriple=x86_64-linux-gnu -mcpu=haswell --entry=net -fno-cache -j1 -v
grep -qE "kernels: ([0-9]+), 0 from the cache, \1 compiled" log || { cat log; die "cache used"; }
same warm.o cold.o
# Another name for the model is no other kernel.
quiet "$tvmcc" -c "$model" -o other.o -mtriple=x86_64-linux-gnu -mcpu=haswell --entry=other -v
grep -qE ", 0 compiled" log || { cat log; die "the entry counts"; }

refused 2 "'--shard' is for plans" "$tvmcc" -c "$model" --shard=0/2 -o x.o
refused 2 "'-mcpu' comes too late" "$tvmcc" S.plan --shard=0/2 -mcpu=haswell -c -o x.o
refused 2 "takes 'host', 'weights' or a shard" "$tvmcc" S.plan --shard=2/2 -c -o x.o
refused 2 "needs the .id file" "$tvmcc" S.plan --shard=host -c -o x.o
refused 2 "needs the .weights file" "$tvmcc" S.plan S.id -c -o x.o
refused 2 "no 'tar' can be made" "$tvmcc" S.plan S.id S.weights -o x.tar
refused 2 "is no object" "$tvmcc" net.0.o S.id -o x.a
refused 2 "say which with -o" "$tvmcc" net.0.o
cp S.plan T.plan
sed -i 's/^entry "net"/entry "ten"/' T.plan
refused 1 "is of another plan" "$tvmcc" T.plan S.id --shard=host -c -o x.o
head -c 70 S.weights >T.weights
refused 4 "bytes of data" "$tvmcc" S.plan T.weights --shard=weights -c -o x.o
sed 1d S.id >T.id
refused 4 "no id of a plan" "$tvmcc" S.plan T.id --shard=host -c -o x.o
sed 's/^tvmcc plan 1/tvmcc plan 9/' S.plan >T.plan
refused 4 "another version of tvmcc" "$tvmcc" T.plan --shard=0/1 -c -o x.o
sed '/^arena/d' S.plan >T.plan
refused 4 "expected 'arena'" "$tvmcc" T.plan --shard=0/1 -c -o x.o
head -c 2000 S.plan >T.plan
refused 4 "[E0305]" "$tvmcc" T.plan --shard=0/1 -c -o x.o
refused 1 "is defined twice" "$tvmcc" net.host.o net.host.o -o x.o
echo x >T.o
refused 1 "no ELF object" "$tvmcc" T.o net.0.o -o x.o
refused 1 "is no object for the machine" "$tvmcc" one.o two.o cold.o -o x.o
echo "steps and one command agree"
