#!/bin/sh
# size.sh <size> <library> <limit>: the sum of the text of all members, without debug information.
text=$("$1" "$2" | awk 'NR > 1 { sum += $1 } END { print sum }')
echo "the runtime has $text bytes of code and constants, the limit is $3"
[ "$text" -gt 0 ] && [ "$text" -le "$3" ]
