#!/bin/bash
# layers.sh TVMCC SOURCE
#
# `tvmcc verify --per-layer`: steps of right products agree, here and on another machine; in a product
# with one kernel that is not its plan's, that kernel is named.
set -u
tvmcc=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
failed=0
die() { echo "FAILED: $*"; failed=1; }
status() { # expected status, a pattern of what is said, a command
    local want=$1 pattern=$2 got
    shift 2
    "$@" >log 2>&1
    got=$?
    [ $got = "$want" ] || die "status $got and not $want: $* $(cat log)"
    grep -qE "$pattern" log || die "$* does not say '$pattern': $(cat log)"
}
digits=$source/examples/digits
golden=(--inputs "$digits/inputs.npz" --expect "$digits/outputs.npz" --per-layer)

status 0 '^[0-9]+ steps agree' "$tvmcc" verify "$digits/digits.onnx" "${golden[@]}"
status 0 '"layers": [0-9]+' "$tvmcc" verify "$digits/digits.onnx" "${golden[@]}" --json
if command -v clang-19 ld.lld-19 qemu-aarch64-static >/dev/null && [ -e /usr/aarch64-linux-gnu/lib/libc.a ]; then
    status 0 '^[0-9]+ steps agree' "$tvmcc" verify "$digits/digits.onnx" -mtriple=aarch64-linux-gnu "${golden[@]}"
    "$tvmcc" "$digits/digits.onnx" -mtriple=aarch64-linux-gnu --emit=plan,o,tar.zst -o digits -Wno-baseline-cpu || die compile
    status 0 '^[0-9]+ steps agree' "$tvmcc" verify digits.o --plan digits.plan "${golden[@]}"
    status 0 '^[0-9]+ steps agree' "$tvmcc" verify digits.tar.zst --plan digits.plan "${golden[@]}"
else
    echo "SKIP (no aarch64 C library or emulator)"
fi
status 3 "tells of no steps" "$tvmcc" verify "$digits/digits.onnx" -fthreads=none "${golden[@]}"

# The wrong product is like the right one, but for one number in its second kernel.
for slope in 0.25 0.5; do
    cat >m$slope.relay <<END
fn @main(%image: Tensor[(1, 1, 16, 16), f32]) {
  %a = nn.softmax(%image);
  %b = nn.leaky_relu(negative(%a), alpha=$slope);
  nn.softmax(%b)
}
END
    "$tvmcc" m$slope.relay --emit=plan,o -o m$slope --entry=m -Wno-baseline-cpu >log 2>&1 || die "compile: $(cat log)"
done
own=(--inputs "$digits/inputs.npz" --expect out.npz --per-layer)
"$tvmcc" run m0.5.relay --inputs "$digits/inputs.npz" --outputs out.npz >log 2>&1 || die "run: $(cat log)"
status 0 '^[0-9]+ steps agree' "$tvmcc" verify m0.5.o --plan m0.5.plan "${own[@]}"
status 7 'step [0-9]+, @[a-z_.]*leaky_relu[0-9a-f.]*, is the first that differs: by .* in ' \
    "$tvmcc" verify m0.5.o --plan m0.25.plan "${own[@]}"
grep -q "'output0' agrees" log || die "the outputs themselves agree: $(cat log)"
status 2 "needs the plan of a product" "$tvmcc" verify m0.5.o "${own[@]}"
"$tvmcc" "$digits/digits.onnx" --emit=plan -o digits.plan -Wno-baseline-cpu || die compile
status 1 "the product is not of this plan" "$tvmcc" verify m0.5.o --plan digits.plan "${own[@]}"
exit $failed
