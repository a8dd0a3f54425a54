# For the scripts of formats: models that are compiled and run, each against the results beside it.
#
#     . "$(dirname "$0")/../agree.sh"
#     agree MODEL INPUTS OUTPUTS [OPTION]...
#     transposes MODEL COUNT [PATTERN]     how many changes of the layout it is left with
#     inspected MODEL WEIGHTS COPY
#     agree_end                      how many there were; fails if one did not agree, or there was none
failed=0 count=0

agree() {
    agree_model=$1 agree_in=$2 agree_out=$3
    shift 3
    count=$((count + 1))
    if ! output=$("$tvmcc" run "$agree_model" --inputs "$agree_in" --expect "$agree_out" "$@" 2>&1); then
        echo "FAIL $agree_model $*"
        echo "$output" | head -20
        failed=$((failed + 1))
    fi
}

transposes() {
    found=$("$tvmcc" -c "$1" -mcpu=haswell --print-after=fuse_ops -o /dev/null 2>&1 | grep -cE "${3:-transpose\(|layout_transform\(.*NHWC}") || :
    if [ "$found" != "$2" ]; then
        echo "FAIL $1: $found transposes, not $2"
        failed=$((failed + 1))
    fi
}

# inspected MODEL WEIGHTS COPY    a copy of the model alone is described by its weights as the model is
inspected() {
    if [ "$("$tvmcc" inspect "$1")" != "$("$tvmcc" inspect "$3" --weights="$2")" ]; then
        echo "FAIL $1: it is another with --weights=$2"
        failed=$((failed + 1))
    fi
}

agree_end() {
    echo "$count models, $failed failures"
    [ $count -gt 0 ] && [ $failed = 0 ]
}
