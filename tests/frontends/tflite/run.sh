#!/bin/sh
# Compiles and runs each model against the results beside it (make_ops.py): run_* in floats and whole
# numbers, step_* in quantized integers, at most one step away, words_* in the integers of the reference kernels.
#
#     run.sh TVMCC FOLDER
. "$(dirname "$0")/../agree.sh"
. "$(dirname "$0")/integers.sh"
tvmcc=$(realpath "$1")
cd "$2" || exit 2

for model in *.tflite; do
    name=${model%.tflite}
    case $name in
    step_*) tolerance="--rtol=0 --atol=1.001" ;;
    words_*) tolerance="--rtol=0 --atol=0" ;;
    *) tolerance="--rtol=1e-4 --atol=1e-5" ;;
    esac
    case $name in
    *_kept) state='--state=*_out=*' ;; # layers of sequences, which begin each run anew otherwise
    *) state= ;;
    esac
    agree "$model" "$name.in.npz" "$name.out.npz" $tolerance $state
done
# Of two signatures the one that is not the first: what the other file has as its first one.
agree run_signatures_first.tflite run_signatures_second.in.npz run_signatures_second.out.npz --signature=shift
agree run_signatures_second.tflite run_signatures_first.in.npz run_signatures_first.out.npz --signature=scale
# The same with a batch that the run decides.
for model in run_lstm_full:4,3 run_volume:5,6,4,3; do
    name=${model%:*}
    agree "$name.tflite" "$name.in.npz" "$name.out.npz" --shape "x:[N,${model#*:}]" --dim N=1..4 -Wno-shape-override \
        --rtol=1e-4 --atol=1e-5
done
# What a layer keeps is no state where its size is another one.
if ! "$tvmcc" -E run_svdf.tflite --shape "x:[1,3]" -o /dev/null 2>&1 | grep -q "'plain_s' from run to run, here each begins"; then
    echo "FAIL run_svdf.tflite: no warning that a state begins anew"
    failed=$((failed + 1))
fi
# Quantized models run in integers; floats are the whole numbers of five products of two activations of 8 bits.
for model in step_*.tflite words_*.tflite run_dynamic_range*.tflite; do
    case ${model%.tflite} in
    step_attention) float_sums "$model" 5 ;;
    *) float_sums "$model" 0 ;;
    esac
done
# Sums of bytes are products of 32 bits.
found=$("$tvmcc" -E words_pairs_8.tflite -o - | grep -cE 'multiply\(.*_i64\) loc\(.*:(add|sub)[_a-z0-9]*"\)')
if [ "$found" != 0 ]; then
    echo "FAIL words_pairs_8.tflite: $found products of sums in 64 bits"
    failed=$((failed + 1))
fi
# Between convolutions images stay as these have them: one transpose where the picture comes in, one
# each where rows of columns and all cells go out in the model's order.
transposes run_between_convs.tflite 3
# Padded channels stay in blocks: the picture is turned round and then blocked, the result is not.
transposes run_padded_channels.tflite 2 'transpose\(|layout_transform\('
agree_end
