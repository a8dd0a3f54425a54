#!/bin/sh
# What headers say of files: a section `/* ---- x.c .. */` or a row ` *   x.c  what it is` of the opening comment
# names a file of the header's folder.
cd "$(dirname "$0")/../.." || exit 2

status=0
for header in $(find base formats objects manifest ir tune machine ops schedules passes frontends backends packaging driver -name '*.h' | sort); do
    folder=$(dirname "$header")
    rows=$(sed -n '1,/\*\//s,^ \*   \([a-z0-9_/]*\.c\)  .*,\1,p' "$header")
    sections=$(sed -n 's,^/\* ---- \([a-z0-9_/]*\.c.*\) ---.*,\1,p' "$header" | grep -oE '[a-z0-9_/]+\.c\b')
    for file in $rows $sections; do
        [ -f "$folder/$file" ] && continue
        echo "$header: names $file, which is not in $folder/"
        status=1
    done
done
exit $status
