#!/bin/bash
# build.sh <tvmcc> <source> <work folder> [<kills>]
#
# `tvmcc build` with the real compiler: three models for four pairs with one command; what runs again
# after which edit; a launcher; two builds at once; SIGKILL at random moments; a full disk; statuses.
# BUILD_KILLS (or the last argument) is how often a build is killed.
set -u
tvmcc=$1 source=$2 work=$3 kills=${4:-${BUILD_KILLS:-3}}
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
command -v ninja >/dev/null || { echo "SKIP (no ninja)"; exit 77; }
"$(dirname "$0")/../fresh" "$work" && cd "$work" || exit 2
work=$PWD
unset XDG_CACHE_HOME TVMCC_CACHE_SIZE NINJA_STATUS
export TVMCC_CACHE_DIR=$work/cache LC_ALL=C

cp "$source/examples/digits/"{digits.onnx,inputs.npz,outputs.npz} .
cat >leaky.relay <<'END'
fn @main(%x: Tensor[(1, 8, 8, 8), f32]) {
  %0 = nn.leaky_relu(%x, alpha=0.1);
  %1 = nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2]);
  nn.softmax(%1, axis=1)
}
END
cat >sums.relay <<'END'
fn @main(%a: Tensor[(4, 32), f32], %b: Tensor[(16, 32), f32]) {
  nn.relu(nn.dense(%a, %b))
}
END
cat >manifest.yaml <<'END'
schema: tvm-manifest/1
project: {name: vision, version: "1.4.0"}
hosts:
  old: {triple: x86_64-linux-gnu, mcpu: x86-64-v2}
  new: {triple: x86_64-linux-gnu, mcpu: x86-64-v3}
  board: {triple: aarch64-linux-gnu, mcpu: cortex-a53}
  risc: {triple: riscv64-linux-gnu}
targets:
  cpu: {kind: llvm}
pairs:
  old: {host: old, target: cpu}
  new: {host: new, target: cpu}
  board: {host: board, target: cpu}
  risc: {host: risc, target: cpu}
models:
  digits:
    source: digits.onnx
    pairs: [old, new, board, risc]
    product: {shards: 2}
    verify: {inputs: inputs.npz, outputs: outputs.npz, rtol: 1e-4}
  leaky:
    source: leaky.relay
    pairs: [old, new, board, risc]
  sums:
    source: sums.relay
    pairs: [old, new, board, risc]
    product: {type: object, weights: file}
bundles:
  release: {models: [digits, leaky]}
END

# build <status expected> <arguments>: the log is in `log`
build() {
    local want=$1 got
    shift
    "$tvmcc" build "$@" >stdout 2>log
    got=$?
    [ $got = "$want" ] || { fail "tvmcc build $*: status $got, not $want"; tail -5 log; }
    [ ! -s stdout ] || fail "tvmcc build $*: something went to standard output"
}
# Edges of a rule that ran.
edges() { grep -c "^\[[0-9/]*\] $1 " log; }
# Hashes of all products of a build folder.
products() {
    (cd "$1" && find . -name 'lib*.a' -o -name '*.h' -o -name '*.json' -o -name sums.o -o -name '*.tar.zst' |
        LC_ALL=C sort | xargs -r sha256sum)
}
same() { # folder, what
    products "$1" >got
    cmp -s expected got || { fail "$2: other products"; diff expected got | head -5; }
}
# The same of `some`: the pairs that the rough tests are content with, unless there is time.
some="old risc" npairs=2 filter='/(old|risc)/'
[ "$kills" -le 3 ] || some=all npairs=4 filter=.
same_some() {
    products "$1" >got
    grep -E "$filter" expected | cmp -s - got || fail "$2: other products"
}
no_temporaries() {
    [ -z "$(find "$1" -name '*.tmp-*')" ] || fail "$2: leaves $(find "$1" -name '*.tmp-*' | head -3)"
}

# ---- cold, then nothing to do ---------------------------------------------------------------------
began=$(date +%s%N)
build 0 -C ref -fno-cache
cold=$((($(date +%s%N) - began) / 1000000))
[ $failures = 0 ] || exit 1
products ref >expected
[ "$(wc -l <expected)" = 40 ] || fail "$(wc -l <expected) products, not 40"
for machine in old:62 board:183 risc:243; do
    found=$(od -An -tu2 -j18 -N2 "ref/${machine%:*}/sums/sums.o")
    [ $found = "${machine#*:}" ] || fail "${machine%:*}: an object of machine $found"
done
# Of the processor's time: on a busy machine all takes longer.
TIMEFORMAT='%U %S'
{ time build 0 -C ref -fno-cache 2>&4; } 4>&2 2>spent
spent=$(awk '{ print int(1000 * ($1 + $2)) }' spent)
grep -q "no work to do" log || { fail "a second build has work to do"; head -3 log; }
echo "cold $cold ms, nothing to do $spent ms"
[ $spent -lt 1000 ] || fail "nothing to do takes $spent ms"

# The cache changes no bytes; a target can be a model, a pair, a product or a file.
build 0 -C out sums
[ -e out/risc/sums/sums.o ] && [ ! -e out/risc/digits ] || fail "target sums"
build 0 -C out board
build 0 -C out digits.new
build 0 -C out out/risc/leaky/libleaky.a
[ -e out/risc/leaky/libleaky.a ] && [ ! -e out/old/leaky ] || fail "a file as target"
build 0 -C out
same out "a build in parts"
build 0 -C warm
same warm "a warm cache"

# The cache goes to another machine; what is damaged there is compiled again.
"$tvmcc" cache export kernels.tar.zst >files && "$tvmcc" cache import kernels.tar.zst \
    --cache-dir=second >>files || fail "tvmcc cache export and import: $(cat files)"
build 0 -C warm2 -v --cache-dir=second
grep -q '^tvmcc: kernels: \([0-9]*\), \1 from the cache, 0 compiled$' log || { fail "the imported cache"; tail -1 log; }
same warm2 "an imported cache"
rm -rf warm2
entry=$(find second -path '*/??/*' -type f -size +1k | LC_ALL=C sort | head -1)
printf x | dd of="$entry" bs=1 seek=600 conv=notrunc status=none
build 0 -C warm2 -v --cache-dir=second
grep -q ' 1 compiled$' log || { fail "a damaged entry"; tail -1 log; }
same warm2 "a damaged entry of the cache"
rm -rf warm2 second

# What it should compute, and that this is looked at.
build 0 -C out out/old/digits/digits.verified
grep -q "'digit' agrees" log || { fail "verify"; cat log; }
cp outputs.npz outputs.saved
"$tvmcc" run digits.onnx --fill-mode=ones -o outputs.npz 2>/dev/null || fail "tvmcc run"
build 7 -C out out/old/digits/digits.verified
cp outputs.saved outputs.npz
build 0 -C out out/old/digits/digits.verified
tar tf out/vision-1.4.0-release-risc.tar.zst >files || fail "the bundle"
for file in lib/riscv64-unknown-linux-gnu/libdigits.a include/leaky.h SHA256SUMS; do
    grep -q "^vision-1.4.0-release-risc/$file$" files || fail "the bundle has no $file"
done

# ---- what runs again -------------------------------------------------------------------------------
touch digits.onnx
build 0 -C out
[ "$(edges lower) $(edges codegen) $(edges link)" = "4 0 0" ] || { fail "touch"; cat log; }
build 0 -C out
grep -q "no work to do" log || fail "work to do after a touch"

cp digits.onnx digits.saved
printf '\x3c' | dd of=digits.onnx bs=1 seek=6001 conv=notrunc status=none
cmp -s digits.onnx digits.saved && fail "no weight was changed"
build 0 -C out
[ "$(edges codegen)" = 0 ] || { fail "new weights run code generation"; grep codegen log; }
[ "$(edges lower) $(edges weights) $(edges link)" = "4 4 4" ] || { fail "new weights"; cat log; }
cp digits.saved digits.onnx
build 0 -C out
same out "the old weights"

sed -i 's/alpha=0.1/alpha=0.3/' leaky.relay
build 0 -C out -v leaky.new
grep -q '^tvmcc: kernels: 3, 2 from the cache, 1 compiled$' log || { fail "one kernel"; tail -1 log; }
build 0 -C out
sed -i 's/alpha=0.3/alpha=0.1/' leaky.relay
build 0 -C out -v
grep -q ' 0 compiled$' log || { fail "a kernel that was there before"; tail -1 log; }
same out "the old kernel"

# ---- the manifest -----------------------------------------------------------------------------------
cp manifest.yaml good.yaml
sed -i 's/mcpu: x86-64-v3/mcpu: x86-64-v9/' manifest.yaml
build 5 -C out
grep -q 'manifest.yaml:.*x86-64-v9' log || { fail "the place of the error"; cat log; }
sed 's/cortex-a53/cortex-a57/' good.yaml >manifest.yaml
build 0 -C out
[ "$(edges lower)" = 3 ] || { fail "another processor for one pair"; cat log; }
[ "$(edges pack)" = 1 ] || { fail "$(edges pack) archives for another processor of one pair"; grep pack log; }
cp good.yaml manifest.yaml
build 0 -C out
same out "the old manifest"
# What the archives hold, or are called, concerns all of them; a remark none.
printf '# a remark\n' >>manifest.yaml
build 0 -C out
[ "$(edges pack)" = 0 ] || { fail "archives after a remark"; grep pack log; }
sed 's/^project: {/project: {license: MIT, /' good.yaml >manifest.yaml
build 0 -C out
[ "$(edges pack) $(edges link)" = "4 0" ] || { fail "another licence"; cat log; }
cp good.yaml manifest.yaml
build 0 -C out
same out "the old licence"
# The archive is the one that `pack --bundle` makes.
"$tvmcc" pack -m manifest.yaml --bundle=release --pair=risc out/risc/{digits,leaky}/*.{json,h,a} -o by_hand.tar.zst &&
    cmp by_hand.tar.zst out/vision-1.4.0-release-risc.tar.zst || fail "pack --bundle makes another archive"
# The lock: all inputs are what they were, or nothing is built.
"$tvmcc" lock || fail "tvmcc lock"
build 0 -C out
cp leaky.relay leaky.saved
sed -i 's/alpha=0.1/alpha=0.4/' leaky.relay
build 5 -C out
grep -q 'E0209' log || { fail "an input is not the locked one"; cat log; }
build 0 -C out --update-lock
cp leaky.saved leaky.relay
build 5 -C out
rm manifest.lock
build 0 -C out
same out "without the lock"
rm manifest.yaml
build 74 -C out
cp good.yaml manifest.yaml

# ---- a launcher: before every code generation, and before nothing else --------------------------------
cat >launch.sh <<'END'
#!/bin/sh
echo "$@" >>"$LAUNCHED"
exec "$@"
END
chmod +x launch.sh
export LAUNCHED=$work/launched
build 0 -C remote $some -fno-cache --launcher="$work/launch.sh"
wanted=$((4 * npairs))
[ "$(grep -c -- --shard=[0-9] "$LAUNCHED")" = $wanted ] && [ "$(wc -l <"$LAUNCHED")" = $wanted ] ||
    fail "the launcher was called $(wc -l <"$LAUNCHED") times"
[ "$(edges codegen)" = $wanted ] || fail "$(edges codegen) code generations"
same_some remote "a launcher"
rm -rf remote

# Ninja alone, from rules in another folder; another order of steps.
"$tvmcc" ninja -o build.ninja -C by-hand -fno-cache 2>log || { fail "tvmcc ninja"; cat log; }
ninja -j1 $some >log 2>&1 || { fail "ninja"; tail -5 log; }
same_some by-hand "ninja by hand"
ninja $some >log 2>&1
grep -q "no work to do" log || { fail "ninja by hand has work to do"; head -3 log; }
rm -rf by-hand build.ninja* .ninja_*

# ---- two at once -------------------------------------------------------------------------------------
# The folder is held until both wait for it.
mkdir twice
exec 3>twice/.tvmcc_lock && flock 3
for i in 1 2; do
    "$tvmcc" build -C twice $some -fno-cache 2>log$i 3>&- &
    builders[i]=$!
    until grep -q "waiting for another build" log$i || ! kill -0 ${builders[i]} 2>/dev/null; do sleep 0.05; done
done
exec 3>&-
for i in 1 2; do
    wait ${builders[i]} || { fail "build $i of two"; tail -3 log$i; }
    grep -q "waiting for another build" log$i || fail "build $i of two did not wait"
done
cat log1 log2 | grep -q "no work to do" || fail "two builds did the work twice"
same_some twice "two builds at once"
rm -rf twice

# ---- signals ------------------------------------------------------------------------------------------
# Everything of a session is killed, or only tvmcc, or only Ninja: what is left goes on, or does not.
kill_some() { # session leader, round
    local victims
    case $(($2 % 3)) in # of /proc/PID/stat: PID (name) state parent group session
    0) victims=$(cat /proc/[0-9]*/stat 2>/dev/null | awk -v s=$1 '$6 == s {print $1}') ;;
    1) victims=$1 ;;
    2) victims=$(cat /proc/[0-9]*/stat 2>/dev/null | awk -v s=$1 '$6 == s && $2 == "(ninja)" {print $1}') ;;
    esac
    [ -z "$victims" ] || kill -KILL $victims 2>/dev/null
}
RANDOM=1
for ((i = 0; i < kills; i++)); do
    rm -rf killed
    cache=-fno-cache
    [ $((i % 2)) = 0 ] || { cache=--cache-dir=killed-cache; rm -rf killed-cache; }
    setsid "$tvmcc" build -C killed $some $cache >log 2>&1 &
    leader=$!
    sleep "$(awk -v r=$RANDOM -v c=$cold 'BEGIN {printf "%.3f", r / 32768 * c / 1000}')"
    kill_some $leader $i
    wait $leader 2>/dev/null
    build 0 -C killed $some $cache
    same_some killed "killed at round $i"
    no_temporaries killed "round $i"
    build 0 -C killed $some $cache
    grep -q "no work to do" log || { fail "round $i: work to do after the work"; head -3 log; }
done
rm -rf killed killed-cache
for signal in INT:130 TERM:143; do
    # in an interactive shell's place: a background job would not see SIGINT
    setsid bash -c 'trap - INT; exec "$@"' - "$tvmcc" build -C stopped $some -fno-cache >log 2>&1 &
    leader=$!
    sleep 0.4
    kill -${signal%:*} $leader
    wait $leader
    got=$?
    [ $got = ${signal#*:} ] || [ $got = 0 ] || { fail "SIG${signal%:*}: status $got"; tail -3 log; }
    no_temporaries stopped "SIG${signal%:*}"
done
build 0 -C stopped $some -fno-cache
same_some stopped "stopped"
rm -rf stopped

# ---- no room ---------------------------------------------------------------------------------------------
# Files may not be larger than 4 KiB: status 74, and whatever is there is whole.
(ulimit -f 4; "$tvmcc" build -C limited $some -fno-cache >log 2>&1)
got=$?
[ $got = 74 ] || { fail "a limit of file sizes: status $got"; tail -5 log; }
grep -q 'E0903' log || { fail "a limit of file sizes: no error"; cat log; }
products limited >got
[ -z "$(comm -13 <(sort expected) <(sort got))" ] || {
    fail "a limit of file sizes leaves half a product"
    comm -13 <(sort expected) <(sort got)
}
no_temporaries limited "a limit of file sizes"
build 0 -C limited $some -fno-cache
same_some limited "room again"
rm -rf limited
mkdir small
if mount -t tmpfs -o size=96k none small 2>/dev/null; then
    "$tvmcc" build -C small $some -fno-cache >log 2>&1
    got=$?
    [ $got = 74 ] || { fail "a full disk: status $got"; tail -5 log; }
    grep -q 'No space left on device' log || { fail "a full disk: no error"; cat log; }
    products small >got
    [ -z "$(comm -13 <(sort expected) <(sort got))" ] || {
        fail "a full disk has half a product"
        comm -13 <(sort expected) <(sort got)
    }
    no_temporaries small "a full disk"
    mount -o remount,size=16m small
    build 0 -C small $some -fno-cache
    same_some small "room on the disk again"
    umount small
else
    echo "no small disk: tmpfs cannot be mounted here"
fi

# ---- the failing step's status --------------------------------------------------------------------------
status_of() { # status expected, text of the model, lines for the model's entry
    printf '%s\n' "$2" >wrong.relay
    cat >wrong.yaml <<END
schema: tvm-manifest/1
hosts: {here: {triple: x86_64-linux-gnu, mcpu: x86-64-v2}}
targets: {cpu: {kind: llvm}}
pairs: {here: {host: here, target: cpu}}
models:
  wrong:
    source: wrong.relay
    pairs: [here]
    ${3-}
END
    build $1 -m wrong.yaml -C wrong
}
status_of 4 'fn @main('
status_of 1 'fn @main(%x: Tensor[(2, 3), f32]) { nn.dense(%x, %x, units=7) }'
status_of 6 "$(cat sums.relay)" 'limits: {code: 16}'
status_of 6 "$(cat leaky.relay)" 'limits: {arena: 16}'
status_of 0 "$(cat sums.relay)"

# ---- other machines: objects that cannot be merged kernel by kernel, a device, variants, buckets -----------------------------
cp "$source/tests/product/data/rows.onnx" .
cat >others.yaml <<'END'
schema: tvm-manifest/1
hosts:
  web: wasm32-unknown-unknown
  windows: x86_64-windows-msvc
  mac: arm64-apple-macos13
  phone: aarch64-linux-android29
  mcu: thumbv7em-none-eabi
  here: x86_64-linux-gnu
  any: {triple: x86_64-linux-gnu, variants: [x86-64-v2, x86-64-v3]}
targets: {cpu: {kind: llvm}, gpu: {kind: opencl}}
pairs:
  web: {host: web, target: cpu}
  windows: {host: windows, target: cpu}
  mac: {host: mac, target: cpu}
  phone: {host: phone, target: cpu}
  mcu: {host: mcu, target: cpu}
  device: {host: here, target: gpu}
  any: {host: any, target: cpu}
models:
  digits: {source: digits.onnx, pairs: [web, windows, mac, phone, mcu, device, any]}
  rows: {source: rows.onnx, dims: {N: {buckets: [1, 4]}}, pairs: [any]}
END
build 0 -m others.yaml -C others
[ "$(ls others/*/*/lib*.a | wc -l)" = 8 ] || fail "other machines: $(ls others/*/digits)"
build 1 -m wrong.yaml -C wrong no-such-target

# A tuning log is an input: unchanged records change nothing, an edit recompiles one kernel, and what
# the logs must cover is status 8.
mkdir -p tuned && cp digits.onnx tuned/
tuned() { # status, tuning
    cat >tuned/manifest.yaml <<END
schema: tvm-manifest/1
hosts: {here: {triple: x86_64-linux-gnu, mcpu: x86-64-v3}}
targets: {cpu: {kind: llvm}}
pairs: {here: {host: here, target: cpu}}
models: {digits: {source: digits.onnx, pairs: [here], tuning: {$2}}}
END
    build $1 -v -m tuned/manifest.yaml -C tuned/build
}
(cd tuned && "$tvmcc" digits.onnx --target=x86_64-linux-gnu -mcpu=x86-64-v3 --emit=log -o here.log)
tuned 0 'logs: [here.log], policy: require, min_coverage: 100'
sha256sum tuned/build/here/digits/digits.0.o >expected.log
sed -i '1i # a remark' tuned/here.log
build 0 -m tuned/manifest.yaml -C tuned/build
[ $(edges lower) = 1 ] && [ $(edges codegen) = 0 ] || { fail "a remark in a log"; cat log; }
sed -i '/^# dense/,+1s/ | - | .*/ | 1e-5 |/' tuned/here.log
build 0 -v -m tuned/manifest.yaml -C tuned/build
grep -q ' 1 compiled' log || { fail "an edit of one record"; cat log; }
sha256sum -c --status expected.log && fail "an edit of one record changed nothing"
sed -i '/^# dense/,+1d' tuned/here.log
tuned 8 'logs: [here.log], policy: require'
tuned 8 'logs: [here.log], min_coverage: 90'
tuned 0 'logs: [here.log]'
sha256sum -c --status expected.log || fail "without its record a kernel is not as the rules have it"

[ $failures = 0 ] && echo "all right"
exit $((failures != 0))
