#!/bin/sh
# Every document is in the index docs/README.md, and every link in a document leads somewhere.
cd "$(dirname "$0")/../.." || exit 2
status=0
for file in $(find docs -name '*.md' ! -path docs/README.md | sort); do
    grep -qF "](${file#docs/})" docs/README.md || { echo "docs/README.md does not list $file"; status=1; }
done
for file in README.md ARCHITECTURE.md CONTRIBUTING.md $(find docs -name '*.md'); do
    grep -oE '\]\([^)#]+\)' "$file" | sed 's/^](//; s/)$//' | grep -vE '^[a-z]+:' | while read -r link; do
        [ -e "$(dirname "$file")/$link" ] || { echo "$file: no $link"; exit 1; }
    done || status=1
done
exit $status
