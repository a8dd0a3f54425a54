#!/bin/bash
# sequences.sh <tvmcc> <folder> <work folder>
#
# Models with sequences and optional values (make_sequences.py) or strings (make_strings.py): their values come from and go to folders of .pb
# files, and what was written is what was expected.
set -e
. "$(dirname "$0")/../../lib.sh"
tvmcc=$1 folder=$2
enter "$3"

while read -r name cases dims; do
    for options in "-O0" "-O3 -mcpu=x86-64-v3"; do
        k=0
        while [ $k -lt "$cases" ]; do
            rm -rf out in
            mkdir in
            cp "$folder/$name.$k"/input_*.pb in 2>/dev/null || true
            "$tvmcc" run "$folder/$name.onnx" $dims $options --inputs in --outputs out --expect "$folder/$name.$k" \
                --rtol 1e-4 --atol 1e-5 >messages 2>&1 || die "$name, case $k, $options: $(cat messages)"
            "$tvmcc" run "$folder/$name.onnx" $dims $options --inputs in --expect out >messages 2>&1 ||
                die "$name, case $k, $options, what it wrote: $(cat messages)"
            k=$((k + 1))
        done
    done
done <"$folder/cases.txt"

# More elements, or a larger state, than there is room for.
for dims in "grown.1 s=0..4" "growing.2 y.0=1..4"; do
    set -- $dims
    [ -d "$folder/$1" ] || continue
    ! "$tvmcc" run "$folder/${1%.?}.onnx" --dim "$2" --inputs "$folder/$1" >messages 2>&1 ||
        die "$dims: the run did not end"
    grep -q "beyond its bounds" messages || die "$dims: $(cat messages)"
done
