#!/bin/bash
# pages.sh TVMCC SOURCE: the pages of profile and inspect, opened in Chromium at two widths: nothing
# lies on something else, nothing is wrong on the console, names are text.  Screenshots are left in
# the folder it runs in, driver_pages/.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../lib.sh"
tvmcc=$1 source=$2
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
[ -n "$browser" ] || { echo "SKIP (no Chromium)"; exit 77; }
rm -rf driver_pages
mkdir driver_pages && cd driver_pages || exit 2
export TVMCC_CACHE_DIR="$PWD/cache" HOME="$PWD" XDG_CONFIG_HOME="$PWD" XDG_CACHE_HOME="$PWD"

chromium() { # <width> <arguments...>
    local width=$1
    shift
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
        --enable-logging=stderr --virtual-time-budget=3000 --window-size="$width,1000" "$@"
}

# open NAME WIDTH..: NAME.html with the checks in it.
open() {
    local name=$1 width
    shift
    ! grep -nE "(src|href) *= *[\"']?https?:|@import" "$name.html" || die "$name.html needs the network"
    { cat "$name.html"; echo "<script>"; cat "$here/check.js"; echo "</script>"; } >"$name.check.html"
    for width; do
        chromium $width --dump-dom "file://$PWD/$name.check.html" >dom 2>console
        grep -qE "<title>no faults in [0-9]+ nodes" dom ||
            die "$name at $width: $(grep -o '<title>[^<]*' dom | head -n 1)"
        ! grep "CONSOLE" console || die "$name at $width: see above"
    done
    echo "$name: $(grep -o 'no faults in [0-9]* nodes' dom | head -n 1)"
}

digits=$source/examples/digits/digits.onnx
quiet "$tvmcc" profile "$digits" -mcpu=native --repeat=3 --html profile.html
quiet "$tvmcc" inspect "$digits" --html digits.html
quiet "$tvmcc" "$digits" -mcpu=native -o digits.so
quiet "$tvmcc" inspect digits.so --html product.html
quiet "$tvmcc" profile digits.so --repeat=3 --html product_profile.html

# Names that would be markup, or end the script.
hostile='</script><img src=x onerror=throw(1)><!-- &lt; ]]> \\u003c é 中 '"'"'`${1}'
cat >'<b>&"x".relay' <<EOF
outputs "$hostile"
fn @main(%x: Tensor[(1, 4), f32]) { nn.relu(%x) loc("m":1:"$hostile") }
EOF
quiet "$tvmcc" inspect -x relay '<b>&"x".relay' --html hostile.html
[ "$(grep -c '</script' hostile.html)" = 2 ] || die "a name ends the script"
grep -qF 'img src=x' hostile.html || die "the name is not in the page"
! grep -qF '<img' hostile.html || die "a name is markup"

# 2,000 nodes with edges that pass layers.
awk 'BEGIN {
    print "fn @main(%x: Tensor[(1, 64), f32]) {"
    for (i = 0; i < 667; i++) {
        k = 3 * i
        printf "  %%%d = nn.relu(%s);\n  %%%d = sigmoid(%s);\n  %%%d = add(%%%d, %%%d);\n",
            k, (i ? "%" (k - 1) : "%x"), k + 1, (i && i >= i % 5 + 1 ? "%" (k - 1 - 3 * (i % 5)) : "%x"), k + 2, k, k + 1
    }
    printf "  %%%d\n}\n", 2000
}' >large.relay
quiet "$tvmcc" inspect large.relay --html large.html

open profile 1280 800
open digits 800
open product 1280
open product_profile 800
open hostile 1280
open large 1280 800
for page in profile digits; do
    chromium 1280 --screenshot="$page.png" "file://$PWD/$page.html" >/dev/null 2>&1
    [ "$(head -c 4 $page.png | tail -c 3)" = PNG ] || die "no screenshot of $page"
done
