#!/bin/sh
# Who may include whom: each room its own headers and those of the rooms on its line, which is the
# table in ARCHITECTURE.md.  Names every include that breaks it.
cd "$(dirname "$0")/.." || exit 2

status=0
check() {
    room=$1
    shift
    [ -d "$room" ] || return 0
    allowed="$room/|tvmcc/"
    for other in "$@"; do
        case $other in
        *.def) allowed="$allowed|$other" ;;
        *) allowed="$allowed|$other/" ;;
        esac
    done
    # Only our own folders count; <system> and third-party headers are another matter.
    bad=$(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"[a-z-]+/' "$room" \
            --include='*.c' --include='*.h' --include='*.def' |
        grep -vE "include[[:space:]]*\"($allowed)")
    if [ -n "$bad" ]; then
        echo "$room may include only: $*"
        echo "$bad"
        status=1
    fi
}

check base
check formats base
check objects base
check manifest base backends/backends.def # the names of backends
check ir base
check tune ir base
check machine ir base
check ops ir base
check schedules ops machine ir base
check passes schedules ops machine ir base
check frontends formats ops ir base
check backends objects ir base
check packaging backends objects formats ir base
check compile packaging backends frontends passes schedules ops tune machine ir objects formats base
check library compile packaging backends frontends passes schedules ops tune machine ir objects formats base
check driver compile tune manifest packaging backends frontends passes schedules ops machine ir objects formats base runtime
check runtime include

# Frontends never see each other, nor do backends.
for room in frontends backends; do
    for folder in "$room"/*/; do
        [ -d "$folder" ] || continue
        bad=$(grep -rnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*\"$room/[a-z0-9_]+/" "$folder" |
            grep -vE "\"$folder|\"$room/(clike|common)/")
        if [ -n "$bad" ]; then
            echo "neighbours in $room/ do not include each other"
            echo "$bad"
            status=1
        fi
    done
done

# Which backend writes the code is no matter of anybody but the backends: others ask for the target's
# class, for what a backend can do, or for rows of backends.def.
bad=$(grep -rniE '\b(backend|tvmrt|device)_(llvm|c|opencl|aocl|aocl_sw_emu|cuda|nvptx|rocm|vulkan|metal)\b|\bopencl|OpenCL|KIND_(LLVM|OPENCL)' \
        --include='*.c' --include='*.h' --include='*.def' \
        base formats objects manifest ir tune machine ops schedules passes frontends packaging compile driver |
    grep -vE '^[^:]*:[0-9]*:([[:space:]]*(/?\*|//)|.*/\*.*[oO]pen[cC][lL].*\*/)')
if [ -n "$bad" ]; then
    echo "a backend is named outside backends/"
    echo "$bad"
    status=1
fi

# Limits of a target and the tables by its class say what is to be done; who else asks for its class or
# for a name has a case of its own that the next target would need, too.
bad=$(grep -rnE '\bCLASS_(CPU|GPU)\b|\b(target|t|s->target|c->target)->(cls|arch|cpu|mcpu|features|triple|abi)\b' \
        --include='*.c' --include='*.h' ops schedules passes tune frontends |
    grep -vE 'row->cls == (s->target|t)->cls')
bad="$bad$(grep -rnE '\bCLASS_(CPU|GPU)\b' --include='*.c' --include='*.h' compile driver packaging)"
if [ -n "$bad" ]; then
    echo "a target is asked for its kind or name outside backends/ and machine/"
    echo "$bad"
    status=1
fi

# What an operator is does not depend on where it runs: rules and passes ask for the target.
bad=$(grep -rnE -e '->target\b|\bTarget\b' ops)
if [ -n "$bad" ]; then
    echo "an operator asks for the target"
    echo "$bad"
    status=1
fi

# How object files are laid out is known in objects/ alone.  The run-time library, which has no room
# below it, looks at a header of its own.
bad=$(grep -rnE '\b(Elf(32|64)_|SH[TFN]_[A-Z]|ST[BTV]_[A-Z]|DT_(NEEDED|SONAME|TEXTREL)|R_(X86_64|386|AARCH64|ARM|RISCV)_|LC_S[EY]|IMAGE_SCN)|<elf\.h>|"\\(177|x7f)"? ?"?ELF|!<arch>|\\0asm|xfeedfac' \
        --include='*.c' --include='*.h' --include='*.def' \
        base formats manifest ir tune machine ops schedules passes frontends backends packaging compile driver |
    grep -v '^frontends/looks\.def:')
if [ -n "$bad" ]; then
    echo "an object format is read or written outside objects/"
    echo "$bad"
    status=1
fi

# What work costs stands in machine/, as far as names tell: cycles, nanoseconds and rates.
bad=$(grep -rnE '(#define|enum \{|static const).*\b([A-Z]+_)*(NS|CYCLES|RATE|LATENCY|BANDWIDTH)\b' ops schedules passes)
if [ -n "$bad" ]; then
    echo "a cost of the machine stands outside machine/"
    echo "$bad"
    status=1
fi

# Nor do thresholds, shares of caches and factors: an estimate decides, or a row of machine/limits.def,
# which says what was measured.  What is left are the sizes of
known="LONG_TAPS LONG_COLUMN FEW_CELLS MOST_LINE MOST_PHASES UNROLL_LIMIT LONG_NAME" # code: what is written out
known="$known MAX_LOOPS MAX_PARTS MAX_DIMS MAX_IN MAX_CHOICES MAX_SIBLINGS MAX_GROUP MAX_BLOCKS MAX_WIDTHS MAX_LOADS MAX_CUTS MAX_TERMS MAX_GATES MOST_RUNS MOST_STRIPS MAX_JOINED" # arrays,
known="$known MOST_TAPS MOST_INDICES MAX_VARS MAX_BOUND MOST_LANES MOST_CELLS MOST_REGS" # ...
known="$known MAX_RUN MAX_CHAIN ROUNDS HASHED MOST_STRIDE MOST_PARTS MOST_REACH MAX_NESTING MAX_DEPTH MAX_CALLS MAX_ROUNDS MOST_ROUNDS MAX_FACTS" # searches,
known="$known MAX_HALO SMALL_RESULT ARENA_ALIGN STACK_LIMIT STACK_TOTAL LOCAL_LIMIT" # the product,
known="$known LEAST LEAST_PANELS FEW_TILES" # loops worth the name,
known="$known LEAST_SIDE MOST_SIDE LEAST_THREADS MOST_THREADS MOST_GROUPS TILE_PARTS TILE_SIDES TILE_GROUPS" # a space of candidates;
known="$known PLACE BANKS BORDER THREADS WORD ACCESS QUAD ASIDE" # of the instructions of warps;
known="$known NEVER INIT_PLACED INIT_INSIDE" # and what is no size.
# Passes that rewrite formulas have numbers of these, and the host's program those of the ABI.
bad=$(find schedules passes/graph passes/lower passes/tir -name '*.[ch]' ! -name 'quantized_*' ! -name 'simplify_*' \
        ! -name keep_floats.c ! -name space.c ! -name lower_math.c ! -path '*/entry/*' | sort | xargs awk -v known="$known" -f tests/numbers.awk
    grep -rnE '(\.|->)(l[123](_rate|_store)?|memory_(rate|store)|[a-z]+_ns)\b' ops schedules passes --include='*.c' --include='*.h')
if [ -n "$bad" ]; then
    echo "a number that decides stands outside machine/"
    echo "$bad"
    status=1
fi

# A switch over the kind of a node names every kind, so that -Wswitch finds what a new one forgot.
bad=$(find base formats objects manifest ir tune machine ops schedules passes frontends backends packaging compile driver -name '*.c' |
    xargs awk '
        FNR == 1 { split("", node) }
        match($0, /^ *switch \(/) { node[index($0, "s")] = /switch \([a-z_>.-]*(->|\.)kind\)/ }
        /^ *default:/ && node[index($0, "d")] { print FILENAME ":" FNR ":" $0 }')
if [ -n "$bad" ]; then
    echo "a switch over kinds of nodes has a default"
    echo "$bad"
    status=1
fi

# LLVM and the vendors' headers stay in one backend's folder.
bad=$(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]llvm' --include='*.c' --include='*.h' . |
    grep -vE '^\./(backends/llvm|build)/')
if [ -n "$bad" ]; then
    echo "LLVM is included outside backends/llvm/"
    echo "$bad"
    status=1
fi
exit $status
