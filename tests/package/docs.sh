#!/bin/bash
# docs.sh <build of tvmcc> <work folder>
#
# Every complete project of docs/how-to/cmake.md is configured and built, as it is printed; every keyword
# is in its tables.
set -e
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh" "$1" "$2"
top=$(cd "$here/../.." && pwd)
awk '/^    cmake_minimum_required/ { n++ } /^[^ ]/ { open = 0 } /^    cmake_minimum_required/ { open = 1 }
     open { sub(/^    /, ""); print > ("project" n) }' "$top/docs/how-to/cmake.md"
count=0
for text in project*; do
    mkdir "p.$text" && mv "$text" "p.$text/CMakeLists.txt"
    cp "$top/examples/digits/digits.onnx" "p.$text/"
    printf '#include "digits.h"\nint main(void) { return digits_info() == 0; }\n' >"p.$text/main.c"
    grep -q 'STATIC main.c' "p.$text/CMakeLists.txt" && echo 'int mine(void) { return 0; }' >"p.$text/main.c"
    grep -v '^int mine' "p.$text/main.c" >/dev/null || printf 'int mine(void);\nint mine(void) { return 0; }\n' >"p.$text/main.c"
    configure "p.$text" "p.$text/b" -G Ninja
    quiet "$cmake" --build "p.$text/b"
    count=$((count + 1))
done
[ $count -ge 4 ] || die "only $count projects in the page"
sed -n '/macro(_tvm_tables)/,/^endmacro/p' "$top/cmake-modules/tvmcc/keywords.cmake" | grep -v VALUES_REFUSED |
    sed 's/^ *set(TVM_KEYWORD_[A-Z]*//; s/"\([A-Z_]*\) .*/\1/; s/#.*//; s/set(.*//' | grep -oE '\b[A-Z][A-Z_]{3,}\b' | sort -u >keywords
while read -r keyword; do
    grep -q "$keyword" "$top/docs/how-to/cmake.md" || die "$keyword is not in the page"
done <keywords
cd / && rm -rf "$work"
