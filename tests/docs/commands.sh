#!/bin/sh
# Runs the commands that the docs show: lines of indented blocks that begin with one of the words
# below.  Each must end with status 0.
#
#     commands.sh <tvmcc> <source folder> <file>...
#
# They run in a folder of their own that looks like a built clone: examples/, tests/ and include/ are
# copies or links, and tvmcc on PATH is the driver under test.
driver=$1 source=$2
shift 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" || exit 2
ln -s "$driver" "$work/bin/tvmcc"
PATH=$work/bin:$PATH
export PATH
cp -R "$source/examples" "$work/examples"
ln -s "$source/tests" "$work/tests"
ln -s "$source/include" "$work/include"

for file in "$@"; do
    grep -E '^    (tvmcc|make|cc) ' "$source/$file" | sed -E 's/^ +//' |
        while IFS= read -r line; do printf '%s\t%s\n' "$file" "$line"; done
done >"$work/commands"

count=0 status=0
# Documents are installed too, where there is no build folder.
if grep -rn 'build/release/bin/tvmcc' "$source/README.md" "$source/docs" --include='*.md' | grep -v '/docs/benchmarks/'; then
    echo "say 'tvmcc'"
    status=1
fi
while IFS="$(printf '\t')" read -r file line; do
    count=$((count + 1))
    if ! (cd "$work" && sh -c "$line") >"$work/out" 2>&1 </dev/null; then
        echo "$file: $line"
        tail -n 20 "$work/out"
        status=1
    fi
done <"$work/commands"
echo "$count commands"
[ "$count" -gt 5 ] || status=1 # or the pattern above finds nothing any more
exit $status
