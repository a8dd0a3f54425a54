#!/bin/sh
# codes.sh <tvmcc> <source folder>
#
# Every row of base/diag.def is explained by --help=<code>, and its message is in at least one golden
# file, whole: the line from "error:" to the code.  So is every warning, by code and by flag.
tvmcc=$1
cd "$2" || exit 2
status=0 count=0

messages=$(mktemp) && trap 'rm -f "$messages"' EXIT || exit 2
# What tests expect: goldens, and messages that scripts compare.
grep -rhE '(error|warning): .*\[[EW][0-9]{4}\]' tests --include='*.test' --include='goldens.txt' \
    --include='*.golden' --include='*.expected' >"$messages"

sed -n 's/^DIAG([A-Z_0-9]*, *"\([EW][0-9]*\)", *\([0-9]*\), *\([^,]*\), *"\(.*\)")$/\1|\2|\3|\4/p' \
    base/diag.def >"$messages.rows"
[ "$(wc -l <"$messages.rows")" = "$(grep -c '^DIAG(' base/diag.def)" ] || {
    echo "rows of base/diag.def that this script does not understand"
    exit 1
}
while IFS='|' read -r code number flag text; do
    count=$((count + 1))
    said=$("$tvmcc" "--help=$code" 2>&1) || { echo "--help=$code fails"; status=1; }
    text=$(printf '%s\n' "$text" | sed 's/\\"/"/g')
    [ "$said" = "$code: $text" ] || { echo "--help=$code says: $said"; status=1; }
    grep -qF "[$code]" "$messages" || { echo "$code: no golden has a message of it"; status=1; }
    if [ "$flag" != none ]; then
        flag=$(echo "$flag" | tr -d '" ')
        grep -qE "\[-W(error=)?$flag\] \[$code\]" "$messages" ||
            { echo "$code: no golden has it with its flag"; status=1; }
        "$tvmcc" --help=warnings | grep -q "^  -W$flag " || { echo "-W$flag is not in --help=warnings"; status=1; }
    fi
done <"$messages.rows"
rm -f "$messages.rows"
# A code that is printed but has no row cannot be: the messages are made from the rows.
echo "$count codes"
[ "$count" -gt 20 ] || status=1
exit $status
