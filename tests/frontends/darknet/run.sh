#!/bin/sh
# Compiles and runs each network against the results beside it (make_layers.py); what the results are
# named is asked for.
#
#     run.sh TVMCC FOLDER
. "$(dirname "$0")/../agree.sh"
tvmcc=$(realpath "$1")
cd "$2" || exit 2

for model in *.cfg; do
    name=${model%.cfg}
    # Members of the archive are the names of tensors.
    tensors=$(python3 -c 'import sys, zipfile; print(",".join(n[:-4] for n in zipfile.ZipFile(sys.argv[1]).namelist()))' "$name.out.npz")
    case $tensors in
    *_out*) tensors= ;; # states are there without being asked for
    *) tensors=--output-tensors=$tensors ;;
    esac
    agree "$model" "$name.in.npz" "$name.out.npz" $tensors --rtol=1e-4 --atol=1e-5
done
# The same for two pictures at once, and for as many as the run says.
for shape in "data:[2,4,6,6]" "data:[N,4,6,6] --dim N=1..4"; do
    count=$((count + 1))
    "$tvmcc" -c joins.cfg --shape $shape -mcpu=x86-64 -Wno-shape-override -o /dev/null || failed=$((failed + 1))
done
# The picture as a constant: anchors count in cells of it all the same.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])' boxes.in.npz "$work"
count=$((count + 1))
"$tvmcc" run boxes.cfg --value "data=@$work/data.npy" --output-tensors=layer1_boxes,layer4_boxes --outputs "$work/is.npz" >"$work/messages" 2>&1 &&
    "$tvmcc" run boxes.cfg --inputs boxes.in.npz --output-tensors=layer1_boxes,layer4_boxes --expect "$work/is.npz" >"$work/messages" 2>&1 || {
    echo "FAIL boxes.cfg, of a constant"
    cat "$work/messages"
    failed=$((failed + 1))
}
# What a layer keeps goes round in the model's own memory.
count=$((count + 1))
"$tvmcc" -c image_states.cfg -mcpu=x86-64 --state layer0_state_out=layer0_state -o /dev/null || failed=$((failed + 1))
transposes boxes.cfg 0
agree_end
