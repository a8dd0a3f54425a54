#!/bin/bash
# make_meson.sh <cmake> <build of tvmcc> <source> <work folder>
#
# examples/make and examples/meson: a model is a source file.  They build, run, have nothing to do a
# second time; a touched model runs the compiler once and relinks nothing, another model does.
cmake=$1 build=$2 source=$3 work=$4 status=0
. "$(dirname "$0")/../lib.sh"

"$(dirname "$0")/../fresh" "$work" && cd "$work" || exit 2
quiet "$cmake" --install "$build" --prefix "$work/prefix"
export PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig" CC="${CC:-$(command -v cc || command -v clang-19)}"
cp -r "$source/examples" examples
chmod -R u+w examples
rm -f examples/make/{app,*.o,*.d,*.stamp}
# The same network with its last scores in another order would be another model: other bytes.
model=examples/digits/digits.onnx
cp $model original.onnx
other() { sed 's/image/imago/g' original.onnx >$model; }

command -v pkg-config >/dev/null || { echo "SKIP (no pkg-config)"; exit 77; }

if command -v make >/dev/null; then
    cd examples/make
    quiet make
    [ "$(./app | wc -l)" = 10 ] || die "make: the program does not run"
    idle() { before=$(stat -c %y app main.o digits.*); quiet make; ! grep -q -e ' -c ' log && [ "$before" = "$(stat -c %y app main.o digits.*)" ]; }
    idle || die "make: a second build has work to do"
    sleep 1.1 # of time stamps that count in seconds
    touch ../digits/digits.onnx
    before=$(stat -c %y app main.o digits.o)
    make >log 2>&1 || { cat log; die "make after a touch"; }
    [ "$(grep -c -- ' -c ' log)" = 1 ] && grep -q 'digits.onnx' log || { cat log; die "make: a touched model does not run tvmcc, and only that"; }
    [ "$before" = "$(stat -c %y app main.o digits.o)" ] || die "make: a touched model changes files"
    idle || die "make: it runs again and again"
    (cd "$work" && other)
    make >log 2>&1 && die "make: main.c compiles with another input's name"
    grep -q 'DIGITS_IN_IMAGE_ELEMS' log || { cat log; die "make: main.c is not compiled against the new header"; }
    cd "$work" && cp original.onnx $model
else
    echo "SKIP make"
fi

if command -v meson >/dev/null; then
    quiet meson setup by_meson examples/meson
    quiet ninja -C by_meson
    [ "$(by_meson/app | wc -l)" = 10 ] || die "meson: the program does not run"
    quiet ninja -C by_meson
    grep -q 'no work to do' log || { cat log; die "meson: a second build has work to do"; }
    ninja -C by_meson -t deps | grep -q 'digits.onnx' || die "meson: the depfile is not read"
    sleep 1.1
    touch $model
    before=$(stat -c %y by_meson/app)
    quiet ninja -C by_meson
    grep -q '\[1/' log || { cat log; die "meson: a touched model runs nothing"; }
    [ "$before" = "$(stat -c %y by_meson/app)" ] || die "meson: a touched model relinks"
    other
    ninja -C by_meson >log 2>&1 && die "meson: main.c compiles with another input's name"
    grep -q 'DIGITS_IN_IMAGE_ELEMS' log || { cat log; die "meson: main.c is not compiled against the new header"; }
else
    echo "SKIP meson (apt-get install meson)"
fi
cd / && rm -rf "$work"
exit $status
