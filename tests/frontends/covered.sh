#!/bin/sh
# Operators of a format that TVM 0.14 converts: each is in the table of that format, or says why it cannot be.
#
#     covered.sh TVMCC FORMAT LIST COUNT
#
# The list has COUNT lines: NAME, `NAME = NAME` where the table has it by another name, or `NAME: reason`.
tvmcc=$1
format=$2
list=$3
count=$4
have=$("$tvmcc" "-print-ops=$format" | awk '{ print $1 }') || exit 2
failed=0

fail() {
    echo "FAIL $format: $*"
    failed=$((failed + 1))
}

found=$(sort -u "$list" | grep -c .)
[ "$found" = "$count" ] || fail "$found names, not $count"
while read -r name sign other; do
    case $sign in
    '') want=$name ;;
    =) want=$other ;;
    *)
        want=
        case $name in
        *:) ;;
        *) fail "what is '$name $sign $other'?" ;;
        esac
        echo "$have" | grep -qxF "${name%:}" && fail "${name%:} is in the table"
        ;;
    esac
    [ -z "$want" ] || echo "$have" | grep -qxF "$want" || fail "$want is not in the table"
done <"$list"
[ "$failed" = 0 ] && echo "$found operators, $(grep -c ': ' "$list") with a reason"
exit $((failed > 0))
