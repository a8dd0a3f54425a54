# Numbers that decide: names of numbers, comparisons with a number, shares, factors and rates.  Prints each
# that stands in the code of the files given, but for names in the list `known` (see layers.sh).
# Comments and strings are no code.

function code(line,   out, i, c, two) {
    out = ""
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        two = substr(line, i, 2)
        if (comment) {
            if (two == "*/") { comment = 0; i++ }
        } else if (string) {
            if (c == "\\") i++
            else if (c == "\"") { string = 0; out = out "\"" }
        } else if (two == "/*") {
            comment = 1
            i++
        } else {
            if (c == "\"") string = 1
            out = out c
        }
    }
    return out
}

function report(what) { print FILENAME ":" FNR ": " what ":" $0 }

BEGIN {
    n = split(known, list, " ")
    for (i = 1; i <= n; i++) is_known[list[i]] = 1
}

FNR == 1 { comment = string = named = 0 }

{
    line = code($0)
    string = 0
    # #define NAME 12, enum { NAME = 12 }, also over several lines
    if (line ~ /^#define [A-Z_0-9]+ .*[0-9]/ || line ~ /enum [A-Za-z]*\{/ || line ~ /enum \{$/) named = 1
    if (named) {
        rest = line
        sub(/^#define /, "", rest)
        while (match(rest, /[A-Z][A-Z_0-9]*( *= *| +)\(?[0-9]+/)) {
            name = substr(rest, RSTART, RLENGTH)
            sub(/[ =(].*/, "", name)
            if (!(name in is_known)) report("a number with a name")
            rest = substr(rest, RSTART + RLENGTH)
        }
        if (line ~ /}/ || line ~ /^#/) named = 0
        next
    }
    # Ranks, widths of types, dimensions of an array, rounding.
    gsub(/(->|\.)(n|ndim|bits|nspatial) *[<>]=? *[0-9]+/, "", line)
    gsub(/for \([^;]*; i < [0-9]; i\+\+\)/, "", line)
    gsub(/\[[0-9]+\]/, "", line)
    gsub(/1e-9/, "", line)
    gsub(/device_[a-z]*_cycles\(/, "", line) # whose last is bytes of a number
    gsub(/ 1\.0 /, " 1 ", line)
    gsub(/ 1\.0\)/, " 1)", line)
    gsub(/<< *[0-9]+/, "", line)
    if (line ~ /[<>]=? *-?([3-9]|[0-9][0-9])/) report("a comparison with a number")
    else if (line ~ /[^A-Za-z_0-9.][0-9]*\.[0-9]/ || line ~ /[^A-Za-z_0-9.][0-9]+e-?[0-9]/) report("a share or a factor")
    else if (line ~ /\?.*[?:] *[0-9][0-9]/) report("a choice of a number")
    else if (line ~ /(macs|cycles)[^;,]*\/ *[0-9]/ || line ~ /cycles\(.*, *[2-9]\)/) report("a rate or a figure")
}
