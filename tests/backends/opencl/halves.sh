#!/bin/sh
# halves.sh <tvmcc>: products with sums of f16 by numbers of 16 bits (cl_khr_fp16), where the device has them (Intel's runtime
# has): values that need no rounding, so that every order of a sum gives the same.
tvmcc=$(realpath "$1") work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
cat >net.relay <<'END'
const @w: Tensor[(20, 64), f32] = splat(-3)
const @v: Tensor[(24, 3, 3, 3), f32] = splat(0.5)
fn @main(%x: Tensor[(37, 64), f32], %y: Tensor[(1, 3, 14, 15), f32]) {
  (nn.dense(%x, const @w), nn.relu(nn.conv2d(%y, const @v, padding=[0, 0, 0, 0])))
}
END
set -- --mixed-precision --mixed-precision-accumulate=float16 --fill-mode=ones
"$tvmcc" compile net.relay --mixed-precision --mixed-precision-accumulate=float16 --target="opencl -supports_float16=1" --emit=cl -o net.cl || exit 1
grep -q 'half b[0-9]*;' net.cl || { echo "no sum is half" && exit 1; }
"$tvmcc" run net.relay "$@" --target="opencl -supports_float16=1" >said 2>&1 && grep -q -e '-192 to -192' said && grep -q '13.5 to 13.5' said && exit
cat said
exit 1
