#!/bin/bash
# completion.sh <build folder> <source folder>
#
# The completions and the manual page that tools/cmddoc.c makes: what bash offers for a command line,
# that zsh takes its file, that the page has every option.
share=$1/share driver=$1/bin/tvmcc source=$2
status=0
work=$(mktemp -d) && cd "$work" && trap 'rm -rf "$work"' EXIT || exit 2
touch net.onnx "two words.onnx" in.npz
mkdir models

complete -p tvmcc >/dev/null 2>&1 && complete -r tvmcc
. "$share/tvmcc.bash" || exit 1
complete -p tvmcc | grep -q -- '-F _tvmcc tvmcc' || { echo "no completion is registered"; exit 1; }

# offers <line> <word>...: exactly these, in any order.
offers() {
    local line=$1 got want
    shift
    COMP_LINE=$line COMP_POINT=${#line} COMPREPLY=()
    _tvmcc tvmcc "" "" 2>/dev/null
    got=$(printf '%s\n' "${COMPREPLY[@]}" | sort -u | tr '\n' '|')
    want=$(printf '%s\n' "$@" | sort -u | tr '\n' '|')
    [ "$got" = "$want" ] || { echo "$line"; echo "  got  $got"; echo "  want $want"; status=1; }
}

# offered <line> <word>...: these among others; `no:word` must not be.
offered() {
    local line=$1 word
    shift
    COMP_LINE=$line COMP_POINT=${#line} COMPREPLY=()
    _tvmcc tvmcc "" "" 2>/dev/null
    for word in "$@"; do
        case $word in
            no:*) printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -e "${word#no:}" &&
                { echo "$line: offers ${word#no:}"; status=1; } ;;
            *) printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -e "$word" ||
                { echo "$line: does not offer $word but ${COMPREPLY[*]}"; status=1; } ;;
        esac
    done
}

offered "tvmcc " compile run bench inspect opt net.onnx "two words.onnx" models
offers "tvmcc ins" inspect
offers "tvmcc ne" net.onnx
offers "tvmcc cache st" stat
offered "tvmcc --verify" --verify-each
offered "tvmcc run -" --print-top= --inputs= -i --help no:-MD no:--steps=
offered "tvmcc -" -MD -c -S --emit= no:--print-top=
offers "tvmcc net.onnx --stop-after=fuse" fuse_ops
offers "tvmcc net.onnx --stop-after fuse" fuse_ops
offers "tvmcc net.onnx --print-after=al" all alter_layout
offers "tvmcc net.onnx --emit=rel" relay
offers "tvmcc net.onnx --emit=relay,jso" relay,json
offers "tvmcc net.onnx --passes=infer_type,fuse" infer_type,fuse_ops
offers "tvmcc net.onnx -x on" onnx
offers "tvmcc net.onnx -fweights=f" file
offers "tvmcc net.onnx -O" -O0 -O1 -O2 -O3 -Os
offers "tvmcc net.onnx -Wno-dim" -Wno-dim-bound -Wno-dim-default
offers "tvmcc net.onnx -o ne" net.onnx
offers "tvmcc run net.onnx --inputs in" in.npz
offers "tvmcc run net.onnx --inputs=in" in.npz
offers "tvmcc run net.onnx --fill-mode=" random zeros ones
offered "tvmcc --help=E03" E0301 E0302
offers "tvmcc @ne" @net.onnx
# Values that the tool knows, and closed sets.
export PATH=$(dirname "$driver"):$PATH
offered "tvmcc net.onnx -mcpu=" native haswell x86-64-v3 cortex-a53
offers "tvmcc net.onnx -mcpu=hasw" haswell
offers "tvmcc net.onnx -mcpu cortex-m5" cortex-m55
offers "$driver net.onnx -mcpu=hasw" haswell
offered "tvmcc net.onnx -mtriple=" aarch64-linux-gnu x86_64-linux-gnu thumbv7em-none-eabi
offers "tvmcc net.onnx -mtriple=risc" riscv64-linux-gnu
offers "tvmcc net.onnx --cpu-variants=x86-64-v3,x86-64-v4" x86-64-v3,x86-64-v4
offers "tvmcc pack a.json --contents=lib,he" lib,header
offers "tvmcc pack a.json --layout=" bundle mlf tvmc
offers "tvmcc net.onnx --output-add=" softmax argmax topk=
offers "tvmcc net.onnx --shard=" host weights
# Whatever the help calls a|b|c has values.
sed -n 's/^[A-Z_]*OPTION("\([^"]*\)", *ARG_[A-Z]*, *"\([a-z0-9-]*\)|[^"]*", *"\([*a-zA-Z]\).*/\1 \2 \3/p' "$source/driver/options.def" "$source/compile/options.def" |
while read -r option first letter; do
    verb=$(sed -n "s/^COMMAND(\"\([a-z]*\)\", *'$letter',.*/\1/p" "$source/driver/commands.def")
    case $option in *=) line="tvmcc ${verb:-compile} x $option" ;; -O) continue ;; *) line="tvmcc ${verb:-compile} x $option=" ;; esac
    offered "$line" "$first"
    [ $status = 0 ] || exit 1
done || status=1
offered "tvmcc net.onnx --target=" llvm opencl

# The same by a bash that a person types at: readline splits words at = itself.
if command -v python3 >/dev/null; then
    python3 - "$share/tvmcc.bash" <<'PY' || status=1
import os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(PS1="> ", INPUTRC="/dev/null", TERM="dumb")
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
def read(until, limit=20):
    text, end = "", time.time() + limit
    while until not in text and time.time() < end:
        if select.select([fd], [], [], 0.2)[0]:
            text += os.read(fd, 4096).decode(errors="replace")
    return text
os.write(fd, b". %s; PS1='rea''dy> '; bind 'set bell-style none'\n" % sys.argv[1].encode())
read("ready> ")
bad = 0
for typed, want in [("tvmcc net.onnx --emit=rel\t", "--emit=relay"),
                    ("tvmcc insp\t", "inspect "),
                    ("tvmcc net.onnx --stop-after=fuse\t", "--stop-after=fuse_ops"),
                    ("tvmcc net.onnx --emit=relay,sch\t", "--emit=relay,sched"),
                    ("tvmcc run net.onnx --print-t\t", "--print-t")]:
    os.write(fd, typed.encode())
    got = read(want)
    if want not in got:
        print("typed %r: got %r" % (typed, got)); bad = 1
    os.write(b"\x15" and fd, b"\x15\n")
    read("ready> ")
os.write(fd, b"exit\n")
sys.exit(bad)
PY
else
    echo "SKIP the typed part (no python3)"
fi

# zsh reads its file.
if command -v zsh >/dev/null; then
    zsh -fn "$share/_tvmcc" || status=1
    # and completes: compsys in a terminal of its own is too slow for a test; the function must load.
    grep -q "_tvmcc_cpus" "$share/_tvmcc" || { echo "_tvmcc has no processors"; status=1; }
    zsh -fc "fpath=('$share' \$fpath); autoload -Uz compinit && compinit -u -d '$work/dump' && whence -w _tvmcc" |
        grep -q function || { echo "zsh does not load _tvmcc"; status=1; }
fi

# The manual page: all options and verbs are there, and man has no complaint.
page=$share/tvmcc.1
plain=$(sed 's/\\-/-/g; s/\\f[BIR]//g' "$page")
sed -n 's/^[A-Z_]*OPTION("\([^"]*\)".*/\1/p' "$source/driver/options.def" "$source/compile/options.def" | sort -u | while read -r option; do
    printf '%s\n' "$plain" | grep -qF -e "$option" || { echo "tvmcc.1 lacks $option"; exit 1; }
done || status=1
sed -n 's/^COMMAND("\([^"]*\)".*/\1/p' "$source/driver/commands.def" | while read -r verb; do
    printf '%s\n' "$plain" | grep -q "^$verb " || { echo "tvmcc.1 lacks the command $verb"; exit 1; }
done || status=1
sed -n 's/^VARIABLE("\([A-Z_]*\)".*/\1/p' "$source/driver/environment.def" | while read -r variable; do
    printf '%s\n' "$plain" | sed -n '/^.SH ENVIRONMENT/,/^.SH EX/p' | grep -qx ".B $variable" ||
        { echo "tvmcc.1 lacks $variable"; exit 1; }
done || status=1
if command -v man >/dev/null; then
    complaints=$(LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" 2>&1 >/dev/null)
    [ -z "$complaints" ] || { echo "$complaints"; status=1; }
fi
# Every command's help is a topic.
sed -n 's/^COMMAND("\([^"]*\)".*/\1/p' "$source/driver/commands.def" | while read -r verb; do
    "$driver" --help="$verb" >help 2>&1 && grep -q "^usage: tvmcc" help || { echo "no --help=$verb"; exit 1; }
done || status=1
exit $status
