#!/bin/sh
# Every document is in the index docs/README.md, and every link in a document leads somewhere: to a file, and to a
# heading of it where it has a #.
cd "$(dirname "$0")/../.." || exit 2
status=0
for file in $(find docs -name '*.md' ! -path docs/README.md | sort); do
    grep -qF "](${file#docs/})" docs/README.md || { echo "docs/README.md does not list $file"; status=1; }
done
documents="README.md ARCHITECTURE.md CONTRIBUTING.md $(find docs -name '*.md')"

# Where a # may lead, as FILE#HEADING: lower case, a hyphen for a space, nothing else but letters, digits, - and _.
headings=$(for file in $documents; do
    sed -n 's/^##* //p' "$file" | tr A-Z a-z | sed "s/[^a-z0-9_ -]//g; s/ /-/g; s,^,$file#,"
done)
for file in $documents; do
    grep -oE '\]\([^)]+\)' "$file" | sed 's/^](//; s/)$//' | grep -vE '^[a-z]+:' | sort -u | while read -r link; do
        to=${link%%#*}
        [ -z "$to" ] && to=$file || to=$(dirname "$file")/$to
        [ -e "$to" ] || { echo "$file: no $link"; exit 1; }
        case $link in
        *#*)
            to=$(realpath --relative-to=. "$to")
            echo "$headings" | grep -qxF "$to#${link#*#}" || { echo "$file: no heading $link"; exit 1; }
            ;;
        esac
    done || status=1
done
exit $status
