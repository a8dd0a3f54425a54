# What shell tests share; they are bash.  Output goes to `log` in the folder they work in.

# An empty folder to work in, with a cache of its own.
enter() {
    "$(dirname "${BASH_SOURCE[0]}")/fresh" "$1" && cd "$1" || exit 2
    work=$PWD
    export TVMCC_CACHE_DIR=$work/cache
}
die() { echo "FAILED: $*"; exit 1; }
# The output of a command is shown if it fails.
quiet() { "$@" >log 2>&1 || { cat log; die "$*"; }; }
# It must end with that status and say that text.
refused() { # <status> <text> <command...>
    local status=$1 text=$2 got=0
    shift 2
    "$@" >log 2>&1 || got=$?
    [ $got = "$status" ] || { cat log; die "status $got instead of $status: $*"; }
    grep -qF -- "$text" log || { cat log; die "no '$text': $*"; }
}
# Two files are equal.
same() { cmp "$1" "$2" || die "$1 and $2 differ"; }
# A model with other weights: in the middle of digits.onnx there is nothing else.
other_weights() { # <model> <new model>
    python3 - "$1" "$2" <<'END'
import sys
b = bytearray(open(sys.argv[1], "rb").read())
for at in range(len(b) // 3, 2 * len(b) // 3, 97): b[at] ^= 1
open(sys.argv[2], "wb").write(b)
END
}
