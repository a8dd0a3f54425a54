#!/bin/sh
# codes.sh <tvmcc> <source folder> [--write]
#
# Every row of base/diag.def is explained by --help=<code>: why, what to do, an example that bears the
# code; docs/errors.md says the same (--write makes it).  Its message is in at least one golden file,
# whole: the line from "error:" to the code.  So is every warning, by code and by flag.
tvmcc=$1
cd "$2" || exit 2

# base/diag.def and base/diag_help.def as a page.
page() {
    cat <<'END'
# Errors and warnings

What each code means, how one comes to it, what to do, and an example. `tvmcc --help=E0301` says the same. The table of
all codes with their exit statuses is in [exit-status.md](exit-status.md).
END
    awk '
        function text(line) { sub(/^ *"/, "", line); sub(/"[,)]*$/, "", line); gsub(/\\"/, "\"", line); return line }
        # Options as code, but where they are in backticks already.
        function ticks(line, part, word, n, m, i, k, out, head, tail) {
            n = split(line, part, "`")
            for (i = 1; i <= n; i++) {
                m = i % 2 ? split(part[i], word, " ") : 0
                out = out (i > 1 ? "`" : "") (m && part[i] ~ /^ / ? " " : "") (m ? "" : part[i])
                for (k = 1; k <= m; k++) {
                    head = tail = ""
                    if (word[k] ~ /^\(?--?[A-Za-z#]/) {
                        if (word[k] ~ /^\(/) { head = "("; word[k] = substr(word[k], 2) }
                        match(word[k], /[,.:;)]*$/)
                        tail = substr(word[k], RSTART); word[k] = "`" substr(word[k], 1, RSTART - 1) "`"
                    }
                    out = out (k > 1 ? " " : "") head word[k] tail
                }
                out = out (m && part[i] ~ / $/ ? " " : "")
            }
            return out
        }
        FILENAME ~ /diag.def/ && /^DIAG\(/ {
            id = $1; sub(/^DIAG\(/, "", id); sub(/,.*/, "", id)
            match($0, /"[EW][0-9]+"/); code[id] = substr($0, RSTART + 1, RLENGTH - 2)
            about = $0; sub(/"\)$/, "", about); sub(/.*, *"/, "", about); what[id] = about
        }
        FILENAME ~ /diag_help/ && /^DIAG_HELP\(/ { id = $0; sub(/^DIAG_HELP\(/, "", id); sub(/,.*/, "", id); n = 0; next }
        FILENAME ~ /diag_help/ && id && /^ *"/ {
            n++
            if (n == 1) printf "\n## %s\n\n%s.\n\nWhy: %s\n", code[id], toupper(substr(what[id], 1, 1)) substr(what[id], 2), ticks(text($0))
            if (n == 2) printf "\nDo: %s\n", ticks(text($0))
            if (n == 3) printf "\n    $ %s\n", text($0)
            if (n == 4) printf "    %s\n", text($0)
        }' base/diag.def base/diag_help.def |
        awk '/^    / { print; next } { print | "fold -s -w 120 | sed \"s/ *$//\""; close("fold -s -w 120 | sed \"s/ *$//\"") }'
}
if [ "$3" = --write ]; then
    page >docs/errors.md
    exit
fi
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
    [ "$(printf '%s\n' "$said" | head -n 1)" = "$code: $text" ] || { echo "--help=$code says: $said"; status=1; }
    for part in '^  why   [^ ]' '^  do    [^ ]' '^        \$ tvmcc' "^        .*: \(error\|warning\): .* \[$code\]$"; do
        printf '%s\n' "$said" | grep -q "$part" || { echo "--help=$code lacks '$part'"; status=1; }
    done
    grep -qF "[$code]" "$messages" || { echo "$code: no golden has a message of it"; status=1; }
    if [ "$flag" != none ]; then
        flag=$(echo "$flag" | tr -d '" ')
        grep -qE "\[-W(error=)?$flag\] \[$code\]" "$messages" ||
            { echo "$code: no golden has it with its flag"; status=1; }
        "$tvmcc" --help=warnings | grep -q "^  -W$flag " || { echo "-W$flag is not in --help=warnings"; status=1; }
    fi
done <"$messages.rows"
rm -f "$messages.rows"
page | cmp -s - docs/errors.md || { echo "docs/errors.md is old: tests/driver/codes.sh <tvmcc> . --write"; status=1; }
# A code that is printed but has no row cannot be: the messages are made from the rows.
echo "$count codes"
[ "$count" -gt 20 ] || status=1
exit $status
