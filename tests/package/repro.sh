#!/bin/bash
# repro.sh <tvmcc> <source> <work folder>
#
# `tvmcc repro`: builds are the same under all conditions; a difference that a wrapper plants is
# found, named, and its condition blamed; nothing is left behind.
set -e
tvmcc=$1 source=$2 work=$3
. "$(dirname "$0")/../lib.sh"

"$(dirname "$0")/../fresh" "$work" && mkdir -p "$work/tmp" && cd "$work" || exit 2
export TMPDIR=$work/tmp
cp "$source/examples/digits/digits.onnx" .
cat >manifest.yaml <<'END'
schema: tvm-manifest/1
project: {name: vision, version: "1.0", license: Apache-2.0}
hosts:
  server: {triple: x86_64-linux-gnu, mcpu: x86-64}
  board: {triple: aarch64-linux-gnu, mcpu: cortex-a53}
targets:
  cpu: {kind: llvm}
pairs:
  srv: {host: server, target: cpu}
  arm: {host: board, target: cpu}
models:
  digits:
    source: {path: digits.onnx}
    pairs: [srv, arm]
bundles:
  release: {models: [digits], format: tar.zst}
END

# Equal: a command line with every kind of product, archives of products, a manifest.
quiet "$tvmcc" repro -- digits.onnx -mcpu=x86-64 --emit=o,a,so,h,json,relay,plan,tar,tar.gz,tar.zst,tar.xz,zip -o net
grep -q "13 products are equal in 3 runs" log || { cat log; die "products"; }
for what in folder HOME umask locale "time zone" jobs order environment cache; do
    grep -q "^varied: .*$what" log || die "$what was not varied"
done
if [ "$(id -u)" != 0 ]; then grep -q "^not varied: user, only root" log || die "user"; fi
grep -q "^not varied: date, 'faketime' cannot run this build" log || command -v faketime >/dev/null ||
    grep -q "^not varied: date, 'faketime' is not installed" log || die "date"
quiet "$tvmcc" digits.onnx -mcpu=x86-64 --emit=a,h,json -o net
quiet "$tvmcc" repro -- pack net.json net.h net.a --name=vision -o vision.tar.zst
grep -q "^1 products are equal" log || { cat log; die "an archive"; }
quiet "$tvmcc" repro -m manifest.yaml
grep -q "products are equal" log || { cat log; die "a manifest"; }
[ -z "$(ls -A "$TMPDIR")" ] && [ ! -e build ] || die "something was left behind"

# Planted differences.
mkdir small && mv manifest.yaml digits.onnx small && cd small
cat >m.relay <<'END'
const @c: Tensor[(4), f32] = [1, 2, 4, 3]

fn @main(%x: Tensor[(1, 4), f32]) { nn.softmax(add(nn.softmax(%x), const @c)) }
END
plant() { # <condition> <text of the report> <shell text, with $file>
    cat >plant.sh <<END
#!/bin/sh
"\$@" || exit \$?
for file in net.o build/srv/digits/libdigits.a; do
    [ -f \$file ] || continue
    $3
done
exit 0
END
    chmod +x plant.sh
    refused 10 "$2" "$tvmcc" repro --launcher "$PWD/plant.sh" -- m.relay -mcpu=x86-64 --emit=o,h -o net
    grep -qx "note: what made the difference: $1" log || { cat log; die "$1 was not blamed"; }
    [ -z "$(ls -A "$TMPDIR")" ] || die "something was left behind"
}
poke() { echo "printf '$2' | dd of=\$file bs=1 seek=$1 conv=notrunc 2>/dev/null"; }
plant umask "net.o: section '.text', " "[ \$(umask) = 0022 ] || $(poke 300 x)"
plant folder "net.o: offset 0x" "pwd >>\$file"
plant "time zone" "net.o: " "date +%Z | head -c 3 | dd of=\$file bs=1 seek=300 conv=notrunc 2>/dev/null"
plant jobs "net.h: line" "case \"\$*\" in *-j3*) echo '/* more */' >>net.h;; esac"
plant "nothing: two plain runs differ too" "net.o: " "date +%N >>\$file"
plant environment "only the second run made it" "[ -z \"\$TVMCC_REPRO_UNRELATED\" ] || touch more.h"
cat >plant.sh <<'END'
#!/bin/sh
"$@" && case $LC_ALL in tr*) exit 3;; esac
END
refused 10 "ends with status 3 under other conditions" "$tvmcc" repro --launcher "$PWD/plant.sh" -- m.relay -mcpu=x86-64 -c
cat >plant.sh <<'END'
#!/bin/sh
"$@" || exit $?
for f; do case $f:$LC_ALL in *srv/digits/*.o:tr*) printf x | dd of="$f" bs=1 seek=300 conv=notrunc 2>/dev/null;; esac; done
END
refused 10 "build/srv/digits/digits.0.o: section " "$tvmcc" repro --launcher "$PWD/plant.sh" -m manifest.yaml digits.srv
grep -q "what made the difference: locale" log || { cat log; die "locale in a manifest"; }

# Commands that are no use.
refused 1 "the command ends with status 74" "$tvmcc" repro -- missing.onnx -c
refused 2 "say what is built" "$tvmcc" repro
refused 2 "is not repeated by itself" "$tvmcc" repro -- repro -- digits.onnx
refused 2 "made no file to compare" "$tvmcc" repro -- check manifest.yaml
refused 2 "is not below this one" "$tvmcc" repro -m ../manifest.yaml
[ -z "$(ls -A "$TMPDIR")" ] || die "something was left behind"
cd / && rm -rf "$work"
