# Sums in floats that a quantized model is left with, by its formulas: not those of exponentials (softmax), nor of whole numbers
# that were turned to floats, which are exact.
float_sums() { # model, how many
    found=$("$tvmcc" "$1" -mcpu=haswell -Wno-dim-default --emit=te -o - | grep -E ': f(16|32|64) = sum\[' | grep -cvE '%exp\[|\] f32\(%')
    if [ "$found" != "$2" ]; then
        echo "FAIL $1: $found sums in floats, not $2"
        failed=$((failed + 1))
    fi
}
