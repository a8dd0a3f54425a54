#!/bin/sh
# Tables in docs/ that follow a .def file have a row for each of its rows, and say the same:
#     docs/ir/schedule.md     every step of ir/sched/sched.def with its class
#     docs/ir/tir.md          every mark of ir/tir/mark.def with the step that sets it, which is one
#     docs/opencl.md          every model of backends/common/models.def with its figures
#     docs/exit-status.md     every code of base/diag.def with its status, a warning's name, and its text
cd "$(dirname "$0")/../.." || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# A row that the patterns below do not understand would go unchecked.
understood() {
    want=$(grep -c "^$2(" "$1")
    have=$(wc -l <"$work/rows")
    [ "$want" -eq "$have" ] || echo "$1: $have of $want rows understood"
}

{
    sed -n 's/^STEP([A-Z_]*, *"\([a-z_]*\)".*[ ,]\(EXACT\|ORDER\|MARK\), *.*/\1 \2/p' ir/sched/sched.def >"$work/rows"
    understood ir/sched/sched.def STEP
    while read -r step class; do
        class=$(echo "$class" | tr A-Z a-z)
        grep -E "^\|.*\`$step " docs/ir/schedule.md | grep -q "| $class" ||
            echo "docs/ir/schedule.md: no row for '$step' of class $class"
    done <"$work/rows"

    sed -n 's/^\(LOOP\|BUFFER\)_MARK([A-Z_]*, *[a-z_]*, *[A-Z]*, *"\([a-z]*\)",.* "\([a-z_]*\)", *"[^"]*")$/\1 \2. \3/p' \
        ir/tir/mark.def | tr A-Z a-z >"$work/rows"
    understood ir/tir/mark.def '\(LOOP\|BUFFER\)_MARK'
    while read -r on mark step; do
        mark=${mark%.}
        [ "$step" = none ] || grep -q "\"$step\"" ir/sched/sched.def ||
            echo "ir/tir/mark.def: '$step' is no step"
        grep -E "^\| (\`$mark[\`( ]|an instruction)" docs/ir/tir.md |
            grep -qE "\| $on \| \`?$step\`? \|" ||
            echo "docs/ir/tir.md: no row for '$mark' on a $on, set by '$step'"
    done <"$work/rows"

    sed -n -e 's/^MODEL("\([a-z_]*\)", *\([0-9]*\), *\([0-9]*\), *\([0-9]*\), *\([A-Z0-9_| ]*\))$/| `\1` | \2 KiB | \3 | \4 | \5 |/p' \
        backends/common/models.def | sed 's/| [^|]*HAS_F64[^|]* |$/| yes |/; t; s/| [^|]* |$/| no |/' >"$work/rows"
    understood backends/common/models.def MODEL
    while read -r row; do
        grep -qF "$row" docs/opencl.md || echo "docs/opencl.md: no row '$row'"
    done <"$work/rows"

    sed -n -e 's/^DIAG([A-Z_]*, *"\(E[0-9]*\)", *\([0-9]*\), *none, *"\(.*\)")$/| [\1](errors.md#\1) | \2 | \3 |/p' \
        -e 's/^DIAG([A-Z_]*, *"\(W[0-9]*\)", *\([0-9]*\), *"\(.*\)", *"\(.*\)")$/| [\1](errors.md#\1) | \2 | `\3` | \4 |/p' \
        base/diag.def | sed 's/#E/#e/; s/#W/#w/' >"$work/rows"
    understood base/diag.def DIAG
    while IFS= read -r row; do
        grep -qxF "$row" docs/exit-status.md || echo "docs/exit-status.md lacks: $row"
    done <"$work/rows"
} >"$work/faults"
cat "$work/faults"
[ ! -s "$work/faults" ]
