#!/bin/sh
# Each operator that TVM registers is read, or the page of operators says why not; none is both.
#
#     registry.sh TVMCC PAGE
cd "$(dirname "$0")" || exit 2
read=$("$1" -print-ops=tvm | cut -d' ' -f1)
refused=$(sed -n '/^## Not read/,$s/^| \([a-z][^ ]*\) |.*/\1/p' "$2")
failed=0 count=0
for op in $(grep -v '^#' registry.txt); do
    count=$((count + 1))
    known=$(printf '%s\n' "$read" "$refused" | grep -cxF "$op")
    [ "$known" = 1 ] || {
        echo "FAIL $op: $known times"
        failed=$((failed + 1))
    }
done
echo "$count operators, $failed failures"
[ $count -gt 0 ] && [ $failed = 0 ]
