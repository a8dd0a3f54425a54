#!/bin/sh
# A stand-in for the compiler that knows its command line and nothing of models: the "model" is C
# text whose first line may name a side input (`//depends <file>`).  So the CMake package is tested by
# itself, in seconds.  Every call is a line in $TVMCC_LOG.
[ -z "$TVMCC_LOG" ] || echo "$*" >>"$TVMCC_LOG"
mode=compile model= out= emit= depfile= target= entry= pic=
while [ $# -gt 0 ]; do
    case $1 in
    run) mode=run ;;
    -MD | -O? | -v | --input-shapes=* | --target=* | --host=* | -mcpu=* | -fweights=file) ;;
    -fPIC | -fno-pic) pic=$1 ;;
    -o) out=$2; shift ;;
    -MF) depfile=$2; shift ;;
    -MT) target=$2; shift ;;
    --emit=*) emit=${1#*=} ;;
    --entry=*) entry=${1#*=} ;;
    --inputs | --expect) [ -f "$2" ] || exit 74; shift ;;
    --rtol=* | --atol=*) ;;
    -*) echo "tvmcc: error: no option '$1'" >&2; exit 2 ;;
    *) model=$1 ;;
    esac
    shift
done
[ -f "$model" ] || exit 74
[ $mode = compile ] || exit 0

put() { # keeps files whose bytes do not change
    if cmp -s "$1.tmp" "$1"; then rm "$1.tmp"; else mv "$1.tmp" "$1"; fi
}
case $emit in
o,h,json*)
    ${CC:-cc} -x c $pic -DENTRY="${entry}_answer" -c "$model" -o "$out.o.tmp" && put "$out.o" || exit 1
    echo "#include \"tvmcc/abi.h\"
#ifdef __cplusplus
extern \"C\"
#endif
int ${entry}_answer(void);" >"$out.h.tmp"
    put "$out.h"
    echo "{}" >"$out.json.tmp"
    put "$out.json"
    ;;
"") cp "$model" "$out.tmp" && put "$out" ;;
esac
case $emit in *weights) echo weights >"$out.weights.tmp" && put "$out.weights" ;; esac
side=$(sed -n '1s/^\/\/depends //p' "$model")
echo "$target: $model $side" >"$depfile"
