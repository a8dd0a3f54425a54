#!/bin/bash
# refit.sh <tvmcc> <source> <work folder>
#
# `tvmcc refit`: a new checkpoint in every kind of archive gives, without code generation, the bytes
# that a build of the new model gives; a model that needs other code is refused, and says which
# kernel is another.
set -e
tvmcc=$1 source=$2 work=$3
. "$(dirname "$0")/../lib.sh"

"$(dirname "$0")/../fresh" "$work" && mkdir -p "$work/new" && cd "$work" || exit 2
cp "$source/examples/digits/digits.onnx" .
other_weights digits.onnx new/digits.onnx
x86="-mtriple=x86_64-linux-gnu -mcpu=x86-64"
for weights in embed file; do
    for suffix in tar tar.zst zip; do
        quiet "$tvmcc" digits.onnx $x86 -fweights=$weights -o "old.$suffix"
        quiet "$tvmcc" new/digits.onnx $x86 -fweights=$weights -o "new/net.$suffix"
        cmp -s "old.$suffix" "new/net.$suffix" && die "the checkpoint is not new"
        quiet "$tvmcc" refit "old.$suffix" new/digits.onnx -o "refitted.$suffix"
        quiet "$tvmcc" diff "refitted.$suffix" "new/net.$suffix"
        cmp "refitted.$suffix" "new/net.$suffix" || die "$weights $suffix: other bytes than a build"
    done
done
quiet "$tvmcc" audit refitted.tar

# A folder, another machine, another level, another name of the file.
mkdir folder && quiet "$tvmcc" digits.onnx -mtriple=aarch64-linux-gnu -mcpu=cortex-a53 -O1 --entry=net -o arm.tar
quiet "$tvmcc" unpack arm.tar -C folder
cp new/digits.onnx checkpoint-2.onnx
quiet "$tvmcc" new/digits.onnx -mtriple=aarch64-linux-gnu -mcpu=cortex-a53 -O1 --entry=net -o new/arm.tar
quiet "$tvmcc" refit folder/net checkpoint-2.onnx -o again.tar
quiet "$tvmcc" diff again.tar new/arm.tar
cmp again.tar new/arm.tar || die "aarch64"

# Name, version and licence stay; so do files that were added.
quiet "$tvmcc" digits.onnx $x86 --emit=a,h,json -o net --entry=net
echo x >LICENSE.model
quiet "$tvmcc" pack net.json net.h net.a LICENSE.model --name=vision --version=1.2 --license=MIT -o vision.tar
quiet "$tvmcc" refit vision.tar new/digits.onnx -o vision2.tar
quiet "$tvmcc" new/digits.onnx $x86 --emit=a,h,json -o net --entry=net
quiet "$tvmcc" pack net.json net.h net.a LICENSE.model --name=vision --version=1.2 --license=MIT -o vision3.tar
quiet "$tvmcc" diff vision2.tar vision3.tar

# A release of several models for two machines: one of them, then all; the bytes are those of a build.
release() { # <archive> <digits> <other> <third>
    local files=LICENSE.model
    rm -rf parts && mkdir parts
    for arch in x86_64 aarch64; do
        quiet "$tvmcc" "$2" -mtriple=$arch-linux-gnu --emit=a,h,json -o parts/$arch-digits --entry=digits
        quiet "$tvmcc" "$3" -mtriple=$arch-linux-gnu -fweights=file --emit=a,h,json,weights -o parts/$arch-other --entry=other
        quiet "$tvmcc" "$4" -mtriple=$arch-linux-gnu -O1 --emit=a,h,json -o parts/$arch-third --entry=third
        files="$files $(ls parts/$arch-* | grep -v consts | tr '\n' ' ')"
    done
    echo '{"ok": true}' >digits.verify.json && echo '{"ok": true}' >third.verify.json
    quiet "$tvmcc" pack $files digits.verify.json third.verify.json --name=vision --version=2.0 --license=MIT -o "$1"
}
# A refitted model has no report of a verification any more: that is all the difference.
same_release() { # <refitted> <built>
    "$tvmcc" diff "$1" "$2" >log 2>&1 || grep -qE 'verify.json' log || { cat log; die "$1: other bytes than a build"; }
    rm -rf one two && mkdir one two && quiet "$tvmcc" unpack "$1" -C one && quiet "$tvmcc" unpack "$2" -C two
    for folder in one two; do
        (cd $folder/* && rm -f reports/*.verify.json SHA256SUMS manifest.json) # which list the reports
    done
    diff -r one two >log || { cat log; die "$1: other files than a build"; }
    quiet "$tvmcc" audit "$1"
}
release all.tar digits.onnx digits.onnx digits.onnx
release want.tar digits.onnx new/digits.onnx digits.onnx
quiet "$tvmcc" refit all.tar other=new/digits.onnx -o fitted.tar
cmp fitted.tar want.tar || die "one of three models: other bytes than a build"
release want.tar new/digits.onnx new/digits.onnx digits.onnx
quiet "$tvmcc" refit fitted.tar digits=new/digits.onnx -o fitted2.tar
same_release fitted2.tar want.tar
tar tf fitted2.tar | grep -q reports/third.verify.json || die "the report of a model that stays"
tar tf fitted2.tar | grep -q reports/digits.verify.json && die "the report of a model that is new"
release want.tar new/digits.onnx new/digits.onnx new/digits.onnx
quiet "$tvmcc" refit all.tar third=new/digits.onnx digits=new/digits.onnx other=new/digits.onnx -o fitted3.tar
same_release fitted3.tar want.tar
refused 2 "it has several models: say '<model>=new/digits.onnx'" "$tvmcc" refit all.tar new/digits.onnx -o none.tar
grep -qF "its models are 'digits', 'other', 'third'" log || { cat log; die "the models are not named"; }
refused 2 "it has no model 'fourth'" "$tvmcc" refit all.tar fourth=new/digits.onnx -o none.tar
grep -qF "its models are 'digits', 'other', 'third'" log || { cat log; die "the models are not named"; }
refused 2 "two files for the model 'other'" "$tvmcc" refit all.tar other=digits.onnx other=new/digits.onnx -o none.tar
refused 74 "cannot read 'missing.onnx'" "$tvmcc" refit all.tar other=missing.onnx -o none.tar

# Only the weights file.
quiet "$tvmcc" digits.onnx $x86 -fweights=file --emit=so,json -o libnet --entry=net
quiet "$tvmcc" refit libnet.json new/digits.onnx -o alone.weights
quiet "$tvmcc" new/digits.onnx $x86 -fweights=file --emit=weights -o want.weights
cmp alone.weights want.weights || die "the weights file"

# Other code is needed, or nobody can say.
cat >a.relay <<'END'
const @c: Tensor[(4), f32] = [1, 2, 4, 3]

fn @main(%x: Tensor[(1, 4), f32]) { nn.softmax(add(nn.softmax(%x), const @c)) }
END
sed 's/nn.softmax(add(/nn.relu(add(/' a.relay >b.relay
sed 's/4, 3/5, 6/' a.relay >c.relay
quiet "$tvmcc" a.relay $x86 -o a.tar
quiet "$tvmcc" refit a.tar c.relay -o c.tar
refused 1 "the new model needs other code: kernel 1 is 'add_relu" "$tvmcc" refit a.tar b.relay -o none.tar
quiet "$tvmcc" a.relay $x86 -fno-pic --emit=a,h,json -o fixed
quiet "$tvmcc" pack fixed.json fixed.h fixed.a -o fixed.tar
refused 1 "needs another plan" "$tvmcc" refit fixed.tar c.relay -o none.tar
quiet "$tvmcc" refit fixed.tar c.relay -fno-pic -o fixed2.tar
refused 2 "a product, a model, and -o" "$tvmcc" refit a.tar -o none.tar
refused 1 "there is no metadata of a model in it" "$tvmcc" refit <(tar c a.relay) a.relay -o none.tar
[ -e none.tar ] && die "a product in spite of errors"
cd / && rm -rf "$work"
