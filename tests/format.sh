#!/bin/sh
# Every C file is as .clang-format says, and none is too long to read at once.
cd "$(dirname "$0")/.." || exit 2

files=$(find . -path ./build -prune -o -path ./.git -prune -o -name '*.[ch]' -print | sort)
long=$(for file in $files; do
    lines=$(wc -l <"$file")
    [ "$lines" -le 800 ] || echo "$file: $lines lines; files split by 800"
done)
if [ -n "$long" ]; then
    echo "$long"
    exit 1
fi
format=$(command -v clang-format-19) || {
    echo "SKIP (no clang-format-19)"
    exit 77
}
wrong=$("$format" --dry-run $files 2>&1 | grep -o '^[^:]*:[0-9]*:[0-9]*: warning:')
if [ -n "$wrong" ]; then
    echo "$wrong" | sed 's/ warning:/ not as .clang-format says/'
    echo "hint: clang-format-19 -i FILE"
    exit 1
fi
