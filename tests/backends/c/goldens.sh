#!/bin/bash
# The goldens as C (`--target=c`): recorded values of operators and models, through compilers for
# several machines, strictly, and under emulators.
#
#     goldens.sh WRITE_GOLDENS SOURCE WORK quick|all [COMPILER]...
#
# quick: the first case of each operator and the quantized models, through this machine's compiler.
# A compiler, C library or emulator that is not installed is skipped, saying so.  avr (an int of 16
# bits), msvc (clang in that dialect) and short-enums only read the text, and must not complain.
set -u
. "$(dirname "$0")/../../lib.sh"
write=$(realpath "$1") source=$(realpath "$2") here=$(realpath "$(dirname "$0")") much=$4
enter "$3"
shift 4
strict="-std=c99 -O1 -Wall -Wextra -pedantic -Wconversion -Wcast-qual -Wshadow -Wmissing-prototypes -Werror"
failed=0

# ---- the programs: a folder of sources each -------------------------------------------------------

program() { # name, models, what write_goldens takes
    local name=$1 folder=$work/$sources/$1 models=$2
    shift 2
    mkdir -p "$folder"
    if ! (cd "$source" && "$write" --target="$target" "$@" "$folder" "$name" $models) >log 2>&1; then
        echo "FAIL $name, target $target"
        head -40 log
        failed=1
    fi
    cp "$here/golden.h" "$folder"
}

operators=$(cd "$source/tests/ops" && ls *.case | sed 's/\.case$//')
quantized=$source/tests/models/quantized
[ "$much" = quick ] || python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall("recorded")' \
    "$source/tests/graphs/recorded.zip" || die "recorded.zip"

# For `target`, once, into the folder `sources`.
write_sources() {
    [ -d "$sources" ] && return
    if [ "$much" = quick ]; then
        program operators "$operators" --most=1
    else
        program operators "$operators"
        program recorded "$work/recorded/*.onnx"
        program recorded0 "$work/recorded/*.onnx" -O0
        program onnx "$source/tests/frontends/onnx/models/run_*.onnx" --atol=1e-5 --rtol=1e-3
    fi
    program quantized "$quantized/[!i]*.onnx" --atol=1 # a step of quantization
    program integers "$quantized/integer*.onnx"
}

# ---- compilers ------------------------------------------------------------------------------------

cat >wasi.js <<'END'
const { WASI } = require('node:wasi'), fs = require('node:fs');
const wasi = new WASI({ version: 'preview1', args: [] });
WebAssembly.instantiate(fs.readFileSync(process.argv[2]), wasi.getImportObject())
  .then((w) => { process.exitCode = wasi.start(w.instance); });
END

# What the text is made for; cc, what it says to compile and to link; what runs the program; what the processor needs for it.
choose() {
    local x86="-mtriple=x86_64-linux-gnu" simd="-mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma"
    target=c sources=scalars compile= link= run= needs= reads= files= lacks='@nothing@'
    case $1 in
    gcc | clang-19) cc=$1 ;;
    gcc-avx2) cc=gcc needs=avx2 compile="-mavx2 -mfma" target="c $x86 -mcpu=haswell -mattr=+avx2,+fma" ;;
    clang-avx2) cc=clang-19 needs=avx2 compile="-mavx2 -mfma" target="c $x86 -mcpu=haswell -mattr=+avx2,+fma" ;;
    gcc-avx512) cc=gcc needs=avx512vl compile=$simd target="c $x86 -mcpu=cascadelake -mattr=+avx512f,+fma" ;;
    aarch64) cc=aarch64-linux-gnu-gcc link=-static run=qemu-aarch64-static ;;
    aarch64-neon)
        cc=aarch64-linux-gnu-gcc link=-static run=qemu-aarch64-static
        target="c -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -mattr=+neon"
        ;;
    s390x) # big-endian; in C99 its floats are doubles in between
        cc=s390x-linux-gnu-gcc compile=-fexcess-precision=fast link=-static run=qemu-s390x-static
        ;;
    cortex-m3)
        cc=arm-none-eabi-gcc compile="-mcpu=cortex-m3 -mthumb -ffunction-sections -fdata-sections"
        link="-mcpu=cortex-m3 -mthumb --specs=rdimon.specs -T $here/board.ld -Wl,--gc-sections"
        run="qemu-system-arm -M mps2-an385 -nographic -semihosting-config enable=on,target=native -kernel"
        ;;
    wasm32 | wasm32-simd)
        cc=clang-19 compile=--target=wasm32-wasi link=--target=wasm32-wasi run="node --no-warnings $work/wasi.js"
        [ $1 = wasm32 ] || target="c -mtriple=wasm32-wasi -mattr=+simd128" compile="$compile -msimd128"
        ;;
    avr) cc=avr-gcc reads="$strict -mmcu=atmega2560" lacks='rintf\?(\|[0-9]\{5,\} bytes\|DBL_MANT_DIG' ;; # no rint, 64 KiB
    short-enums) cc=gcc reads="$strict -fshort-enums" ;;
    msvc)
        cc=clang-19 reads="--driver-mode=cl --target=x86_64-pc-windows-msvc /std:c11 /W4 /WX /I $work"
        files=-- # or a path that begins with /w would be an option
        for f in sqrt floor ceil trunc rint exp log sin cos tan asin acos atan sinh cosh asinh acosh atanh; do
            echo "double $f(double); float ${f}f(float);"
        done >math.h
        for f in pow fmod atan2; do echo "double $f(double, double); float ${f}f(float, float);"; done >>math.h
        ;;
    *) die "no compiler '$1'" ;;
    esac
    [ "$target" = c ] || sources=$(echo "$target" | tr -c 'a-z0-9\n' _)
    if ! command -v $cc >/dev/null || { [ -n "$run" ] && ! command -v ${run%% *} >/dev/null; }; then
        echo "SKIP (no $cc${run:+ or no ${run%% *}})"
        return 1
    fi
    [ -z "$reads" ] || return 0
    echo 'int main(void) { return 0; }' >try.c
    $cc $compile $link try.c -o try 2>log && return
    echo "SKIP ($cc does not link: $(head -1 log))"
    return 1
}

build() { # compiler, program
    local out=$work/$1/$2
    mkdir -p "$out"
    (cd "$out" && printf '%s\0' "$work/$sources/$2"/*.c | xargs -0 -P2 -n8 $cc $strict $compile -c) >log 2>&1 &&
        (cd "$out" && $cc $link *.o -lm -o program) >>log 2>&1
}

# All models of a program, but for those that want what the machine or its library lacks.
read_all() { # compiler, program
    local all
    all=$(grep -L "$lacks" "$work/$sources/$2"/m*.c)
    echo "$all" | xargs -r -P2 -n16 $cc $reads -fsyntax-only $files >log 2>&1 || return
    echo "$(echo "$all" | grep -c .) of $(ls "$work/$sources/$2"/m*.c | wc -l) models read" >log
}

compute() { # compiler, program
    build "$1" "$2" || return
    if [ -n "$needs" ] && ! grep -qw "$needs" /proc/cpuinfo; then
        echo "compiled; no $needs on this processor" >log
    else
        timeout 300 $run "$1/$2/program" >log 2>&1
    fi
}

[ $# -gt 0 ] || set -- gcc
for name; do
    choose "$name" || continue
    write_sources
    for program in $(ls "$sources"); do
        how=compute
        [ -z "$reads" ] || how=read_all
        if $how "$name" "$program"; then
            echo "ok   $name, $program: $(tail -1 log)"
        else
            echo "FAIL $name, $program"
            head -40 log
            failed=1
        fi
    done
done
exit $failed
