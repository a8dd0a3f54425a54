#!/bin/bash
# Which models have a parallel part (docs/design/schedules.md, "Small work"): not those whose second thread would save
# less than it costs to call.  Structure only, nothing is timed.
#
#     threads.sh TVMCC SOURCE WORK
tvmcc=$1 root=$2
. "$(dirname "$0")/../lib.sh"
enter "$3"

# regions NUMBER MODEL
regions() {
    quiet "$tvmcc" "$2" -mtriple=x86_64-linux-gnu -mcpu=haswell --emit=plan -o plan
    found=$(grep -c ' region ' plan)
    [ "$found" = "$1" ] || die "$2 has $found regions, not $1"
}
# lstm STEPS UNITS
lstm() {
    cat >"lstm$1x$2.relay" <<END
const @w: Tensor[(1, $((4 * $2)), $2), f32] = splat(0.5)
const @b: Tensor[(1, $((8 * $2))), f32] = splat(0)
const @h: Tensor[(1, 1, $2), f32] = splat(0)
fn @main(%x: Tensor[($1, 1, $2), f32]) {
  %0 = nn.lstm(%x, const @w, const @w, const @b, const @h, const @h, hidden_size=$2);
  %0.0
}
END
}
# dense LAYERS UNITS
dense() {
    echo "const @w: Tensor[($2, $2), f32] = splat(0.5)"
    echo "fn @main(%x: Tensor[(1, $2), f32]) {"
    last=%x
    for i in $(seq "$1"); do
        echo "  %$((2 * i)) = nn.dense($last, const @w);"
        echo "  %$((2 * i + 1)) = tanh(%$((2 * i)));"
        last=%$((2 * i + 1))
    done
    echo "  $last }"
}

for size in 1x64 3x100 2x128 16x32; do
    lstm ${size%x*} ${size#*x}
    regions 0 lstm$size.relay
done
lstm 64 256
regions 1 lstm64x256.relay
dense 4 128 >small.relay
regions 0 small.relay
dense 8 512 >large.relay
regions 1 large.relay
regions 0 "$root/examples/digits/digits.onnx"
echo "as it should be"
