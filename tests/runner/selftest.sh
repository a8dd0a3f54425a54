#!/bin/sh
# selftest.sh <run>: the golden runner passes, fails, shows what differs, and blesses.
run=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

cat >tvmcc <<'SCRIPT'
#!/bin/sh
case $1 in
    opt) for file; do :; done; tr a-z A-Z <"$file" ;;
    fail) echo out; echo "$2: error" >&2; exit 3 ;;
    die) kill -9 $$ ;;
esac
SCRIPT
chmod +x tvmcc

failures=0
expect() {
    if ! eval "$2"; then
        echo "FAIL: $1"
        cat log
        failures=$((failures + 1))
    fi
}

mkdir good bad
printf '# passes: up\nfn a\nb\n----\nFN A\nB\n' >good/a.test
printf '# tvmcc fail %%s\n# file: x.relay\n----\nout\nx.relay: error\n[exit 3]\n' >good/b.test
printf '# a remark\n# tvmcc fail %%d/%%s\n# tvmcc die\n----\nout\n%%d/input: error\n[exit 3]\n[signal 9]\n' \
    >good/c.test
printf '# tvmcc opt %%s\na\nb\nc\n----\nA\nX\nC\n' >bad/differs.test
printf '# tvmcc opt %%s\na\n' >bad/dashes.test
printf '# nothing to run\na\n----\n' >bad/command.test

"$run" --tvmcc ./tvmcc good >log 2>&1
expect "good tests pass" '[ $? = 0 ] && grep -qx "3 passed, 0 failed" log'
"$run" --tvmcc ./tvmcc bad >log 2>&1
expect "bad tests fail" '[ $? = 1 ] && grep -qx "0 passed, 3 failed" log'
expect "the difference is shown" 'grep -qx -- "- X" log && grep -qx -- "+ B" log'
expect "dashes are asked for" 'grep -q "dashes.test:1:1: error: there is no line ----" log'
"$run" --tvmcc ./tvmcc no/such.test >log 2>&1
expect "a missing file fails" '[ $? = 1 ]'
mkdir none
"$run" --tvmcc ./tvmcc none >log 2>&1
expect "no test is a failure" '[ $? = 1 ]'
"$run" --bless --tvmcc ./tvmcc bad/differs.test >log 2>&1
expect "bless writes" '[ $? = 0 ] && [ "$(tail -n 4 bad/differs.test | tr "\n" " ")" = "---- A B C " ]'
"$run" --tvmcc ./tvmcc bad/differs.test >log 2>&1
expect "blessed tests pass" '[ $? = 0 ]'
exit $failures
