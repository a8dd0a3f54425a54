#!/bin/sh
# Runs the lines of a golden file that begin with "$ " and compares what they print.
#
#     golden.sh [--bless] PROGRAM GOLDEN FOLDER
#
# A line is the arguments of PROGRAM, which runs in FOLDER; its output follows the line, and
# "[exit N]" unless it is 0.  Lines that begin with "#" stay.  --bless rewrites the file.
bless=
if [ "$1" = --bless ]; then
    bless=1
    shift
fi
program=$(realpath "$1")
golden=$(realpath "$2")
cd "$3" || exit 2
new=$(mktemp)
trap 'rm -f "$new"' EXIT

grep -E '^(\$ |#)' "$golden" | while IFS= read -r line; do
    case $line in
    '#'*) printf '\n%s\n' "$line" ;;
    *)
        printf '\n%s\n' "$line"
        eval "\"\$program\" ${line#\$ }" </dev/null 2>&1
        status=$?
        [ $status = 0 ] || echo "[exit $status]"
        ;;
    esac
done | sed '1{/^$/d}' >"$new"

if [ -n "$bless" ]; then
    cp "$new" "$golden"
elif ! diff -u "$golden" "$new"; then
    echo "the output differs (--bless accepts it, after a look at the diff)"
    exit 1
fi
