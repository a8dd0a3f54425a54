#!/bin/sh
# dot.sh <tvmcc>: that products of bytes are the device's own function where it has one (Intel's runtime has): a product
# runs whose other arm is no C.
tvmcc=$(realpath "$1") work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
cat >dot.relay <<'END'
const @w: Tensor[(20, 64), i8] = splat(-3)
fn @main(%x: Tensor[(37, 64), u8]) { nn.dense(%x, const @w, out_dtype="i32") }
END
"$tvmcc" compile dot.relay --target=opencl --emit=so -o libdot.so || exit 1
sed 's/const uchar4 x=as_uchar4(a);/no such thing is taken here;/' libdot.so >libown.so
cmp -s libdot.so libown.so && echo "the text has changed: there is no such line" && exit 1
"$tvmcc" run ./libown.so --fill-mode=ones >said 2>&1 && grep -q -e '-192 to -192' said && exit
cat said
exit 1
