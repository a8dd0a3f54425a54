#!/bin/bash
# diff.sh <tvmcc> <work folder>
#
# tvmcc diff of two releases: models that are new, gone, changed in weights, graph, shape or target;
# what that means for a program that uses them; statuses as those of diff(1).
set -e
tvmcc=$1 work=$2
. "$(dirname "$0")/../lib.sh"
enter "$work"

net() { # <file> <first weight> <operator before> <behind> <height>
    {
        printf 'const @w: Tensor[(4, 3, 3, 3), f32] = [%s.0' "$2"
        for ((i = 1; i < 108; i++)); do printf ', %s.0' $((i % 5)); done
        printf ']\n\nfn @main(%%x: Tensor[(1, 3, %s, 16), f32]) {\n' "$5"
        printf '  %snn.conv2d(%%x, const @w, padding=[1, 1, 1, 1])%s\n}\n' "$3" "$4"
    } >"$1"
}
mkdir v1 v2 one two
net v1/net.relay 0 'nn.relu(' ')' 16
net v2/weights.relay 7 'nn.relu(' ')' 16
net v2/graph.relay 0 'nn.softmax(nn.relu(' '))' 16
net v2/shape.relay 0 'nn.relu(' ')' 32
model() { # <release> <entry> <file> [<option>...]
    quiet "$tvmcc" "$3" --entry="$2" -mtriple=x86_64-linux-gnu -mcpu=x86-64 --emit=a,h,json,relay -o "$1/$2" "${@:4}"
    rm -f "$1/$2.relay.consts"
}
for entry in same weights graph shape cpu old; do model one $entry v1/net.relay; done
for entry in same added; do model two $entry v1/net.relay; done
for entry in weights graph shape; do model two $entry v2/$entry.relay; done
model two cpu v1/net.relay -mcpu=haswell
quiet "$tvmcc" pack one/* --name=vision --version=1.0 --license=MIT -o v1.tar.zst
echo notes >two/NOTICE
quiet "$tvmcc" pack two/* --name=vision --version=1.1 --license=Apache-2.0 -o v2.tar.gz

# The text: a section for the release, one for each model that changed.
"$tvmcc" diff v1.tar.zst v2.tar.gz >out 2>err && die "status 0" || [ $? = 1 ] || die "status $?"
[ ! -s err ] || { cat err; die "messages"; }
section() { awk -v name="$1" 'BEGIN { RS = ""; FS = "\n" } index($0, name) == 1' out; }
says() { # <section> <text>...
    local name=$1 text
    for text in "${@:2}"; do
        section "$name" | tr -s ' ' | grep -qF -- "$text" || { cat out; die "$name: no '$text'"; }
    done
}
says "vision 1.0 -> 1.1" "vision 1.0 -> 1.1"
says "models" "1 gone" "- old, x86_64-unknown-linux-gnu" "1 new" "+ added," "4 changed" "1 the same" \
    "licence MIT -> Apache-2.0" "+ licenses/NOTICE" "+ vision 1.1, licence Apache-2.0"
says "weights, " "weights changed" "the same structure, interface, operators, kernels, latency"
says "graph, " "structure changed" "nn.softmax 0 -> 1" "1 new, 0 gone, 1 the same" "+ softmax." \
    "interface compatible, but programs that use it are compiled again" "the same weights"
says "shape, " "interface not compatible" "input 'x' is float32[1, 3, 32, 16], was float32[1, 3, 16, 16]" \
    "multiply-adds 27648 -> 55296 (+100.0 %)" "latency higher: 2.00 times"
says "cpu, " "latency unknown: another target" "-mcpu=haswell" "the same structure, weights,"
[ -z "$(section "same, ")" ] || die "a section for a model that did not change"
! grep -q ' $' out || die "blanks at ends of lines"

# The same as JSON.
"$tvmcc" diff v1.tar.zst v2.tar.gz --json >out.json || [ $? = 1 ] || die "status"
python3 - <<'END' || die "JSON"
import json
d = json.load(open("out.json"))
m = {x["entry"]: x for x in d["models"]}
assert d["schema"] == "tvmcc-diff/1" and d["same"] is False and d["one"]["version"] == "1.0", d
assert {k: v["change"] for k, v in m.items()} == {"added": "new", "cpu": "changed", "graph": "changed", "old": "gone",
    "same": "same", "shape": "changed", "weights": "changed"}, m
assert [m[k]["interface"] for k in ("same", "weights", "graph", "shape")] == ["same", "same", "compile", "broken"], m
assert m["weights"]["weights_changed"] is True and m["weights"]["structure_changed"] is False, m["weights"]
assert m["graph"]["operators"] == {"nn.softmax": [0, 1]} and m["graph"]["latency"] == "near", m["graph"]
assert m["cpu"]["kernels"]["new"] and m["cpu"]["kernels"]["gone"] and m["cpu"]["kernels"]["same"] == 0, m["cpu"]
assert d["files"] == ["+ licenses/NOTICE"], d["files"]
END

# The other layouts of the same content, and metadata alone.
mkdir at && tar xzf v2.tar.gz -C at
quiet "$tvmcc" diff v2.tar.gz at/vision-1.1
quiet "$tvmcc" pack two/* --name=vision --version=1.1 --license=Apache-2.0 -o v2.zip
quiet "$tvmcc" diff v2.tar.gz v2.zip
refused 1 "the time is" "$tvmcc" diff --bytes v2.tar.gz v2.zip
refused 1 "weights   changed" "$tvmcc" diff one/weights.json two/weights.json
"$tvmcc" diff v2.tar.gz v2.zip --json | grep -q '"same": true' || die "same as JSON"
# A folder or archive that is not what its SHA256SUMS says is no release; --bytes finds out where.
echo more >>at/vision-1.1/licenses/tvmcc.txt
refused 2 "member 'licenses/tvmcc.txt' has other bytes than SHA256SUMS says" "$tvmcc" diff v2.tar.gz at/vision-1.1
refused 2 "at/vision-1.1: error: " "$tvmcc" diff at/vision-1.1 v2.tar.gz
tar cf edited.tar -C at vision-1.1
refused 2 "edited.tar: error: member 'licenses/tvmcc.txt'" "$tvmcc" diff v2.tar.gz edited.tar
refused 1 "licenses/tvmcc.txt" "$tvmcc" diff --bytes v2.tar.gz at/vision-1.1
sums() { (cd at/vision-1.1 && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS); }
# What tells nothing of the models is told as it is.
sums
refused 1 "~ licenses/tvmcc.txt" "$tvmcc" diff v2.tar.gz at/vision-1.1
printf '\n' >>at/vision-1.1/lib/cmake/vision/visionConfig.cmake
cp at/vision-1.1/licenses/NOTICE notice && tar xzf v2.tar.gz -C at
printf '\n' >>at/vision-1.1/lib/cmake/vision/visionConfig.cmake
sums
refused 1 "first difference: lib/cmake/vision/visionConfig.cmake: " "$tvmcc" diff v2.tar.gz at/vision-1.1

# Trouble is 2, whatever it is.
head -c 3000 v1.tar.zst >cut.tar.zst
refused 2 "[E0802]" "$tvmcc" diff cut.tar.zst v1.tar.zst
refused 1 "offset" "$tvmcc" diff --bytes cut.tar.zst v1.tar.zst
refused 2 "cannot read" "$tvmcc" diff v1.tar.zst missing
refused 2 "takes two products" "$tvmcc" diff v1.tar.zst
refused 2 "[E0102]" "$tvmcc" diff --nonsense v1.tar.zst v1.tar.zst

# The operators are in metadata that build steps write too.
quiet "$tvmcc" v2/graph.relay --entry=graph -mtriple=x86_64-linux-gnu -mcpu=x86-64 --emit=plan,id,weights -o steps
quiet "$tvmcc" steps.plan steps.id --emit=json -o steps.json
cmp steps.json two/graph.json || die "metadata from a plan differ"
cd / && rm -rf "$work"
