#!/usr/bin/env bash
# Real models against the outputs that their own framework gave.
#
#     run.sh TVMCC quick|all [MODEL FOLDER or FILE.onnx]...
#
# A folder holds model.onnx, inputs.npz and outputs.npz; beside a FILE.onnx lie FILE.in.npz and
# FILE.out.npz.  Without arguments: examples/digits and what ../shared/models/onnx has (skipped, saying
# so, where that is absent).  Each model runs at -O0 and -O3 with one and two threads; the largest
# error of an output must be at most 1e-3 of its largest value, and one and two threads must give the
# same bits.  Models with integer operators are judged by the mean error: engines round differently.
set -u
tvmcc=$1 mode=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

if [ $# -eq 0 ]; then
    set -- "$root/examples/digits"
    if [ -d "$root/../shared/models/onnx" ]; then
        for folder in "$root"/../shared/models/onnx/*/; do set -- "$@" "$folder"; done
    else
        echo "SKIP (no ../shared/models: only the bundled model is tested)"
    fi
fi

check() { # model inputs outputs name level
    local options=(-O"$5" --inputs "$2" --expect "$3" -Wno-schedule-refused)
    "$tvmcc" inspect "$1" 2>/dev/null | grep -q ' qnn\.' && options+=(--mean)
    for threads in 1 2; do
        if ! "$tvmcc" run "$1" "${options[@]}" --threads $threads --output "$work/$threads.npz" >"$work/log" 2>&1; then
            echo "FAIL $4 -O$5, $threads threads"
            cat "$work/log"
            return 1
        fi
    done
    if ! cmp -s "$work/1.npz" "$work/2.npz"; then
        echo "FAIL $4 -O$5: one and two threads give other bits"
        return 1
    fi
    echo "ok   $4 -O$5: $(sed -n 's/.*agrees: //p' "$work/log" | head -1)"
}

for model in "$@"; do
    case $model in
    *.onnx) name=$(basename "$model" .onnx) file=$model in=${model%.onnx}.in.npz out=${model%.onnx}.out.npz ;;
    *) name=$(basename "$model") file=$(ls "$model"/*.onnx | head -1) in=$model/inputs.npz out=$model/outputs.npz ;;
    esac
    for level in 0 3; do
        [ "$mode" = quick ] && [ $level = 0 ] && [ "$(stat -c %s "$file")" -gt 1200000 ] && continue
        if check "$file" "$in" "$out" "$name" $level; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    done
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
