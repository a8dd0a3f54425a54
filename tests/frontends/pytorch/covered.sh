#!/bin/sh
# covered.sh <tvmcc> <source>
#
# Operators of PyTorch's core set (core.txt, written by make_core.py), an overload each, and those that TVM's
# converter knew (tvm.txt) are all among the rows of frontends/pytorch, or are functions of numbers there.
here=$(dirname "$0") missing=0
rows=$("$1" -print-ops=pytorch | awk '{n = split($2, o, ","); for (i = 1; i <= n; i++) print $3 "." $1, o[i]}') || exit 1
numbers=$(sed -n 's/^BUILTIN("torch\.\([^"]*\)".*/aten.\1/p; s/^BUILTIN("ops\.\([^"]*\)".*/\1/p' "$2/frontends/pytorch/script.def")

has() {
    printf '%s\n' "$2" | grep -qxF "$1"
}

# Names that end in "_" change their first argument, and have the row without it; __iand__ that of __and__.
row_of() {
    case $1 in
    *.__i*__) echo "$1" | sed 's/\.__i/.__/' ;;
    *__) echo "$1" ;;
    *) echo "${1%_}" ;;
    esac
}

while read -r name overload; do
    has "aten.$name $overload" "$rows" || has "$(row_of "aten.$name") $overload" "$rows" || {
        echo "no row for $name $overload of the core set"
        missing=$((missing + 1))
    }
done <"$here/core.txt"
names=$(printf '%s\n' "$rows" | cut -d' ' -f1)
while read -r name; do
    has "$name" "$names" || has "$(row_of "$name")" "$names" || has "$name" "$numbers" || {
        echo "no row for $name, which TVM reads"
        missing=$((missing + 1))
    }
done <"$here/tvm.txt"
echo "$(wc -l <"$here/core.txt") of the core set, $(wc -l <"$here/tvm.txt") of TVM: $missing missing"
[ $missing = 0 ]
