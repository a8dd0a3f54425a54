#!/bin/sh
# What scripts/package makes, tried on systems that have nothing else: the .deb on a minimal Debian
# 12, the tarball on a minimal Debian 11, whose C library is glibc 2.31.  Needs root, debootstrap
# and a Debian mirror.
#
#     MIRROR      http://deb.debian.org/debian unless apt here uses another
#     ROOTS       where the systems are made and kept; a temporary folder unless given
cd "$(dirname "$0")/../.." || exit 2
source=$PWD

if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null 2>&1; then
    echo "SKIP (debootstrap needs root)"
    exit 0
fi
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 2>/dev/null |
    grep '/debian/\{0,1\}$' | head -n 1)}
mirror=${mirror:-http://deb.debian.org/debian}
roots=${ROOTS:-$(mktemp -d)}
log=$(mktemp)

cleanup() {
    umount "$roots/bookworm/proc" "$roots/bullseye/proc" 2>/dev/null
    [ -n "$ROOTS" ] || rm -rf --one-file-system "$roots"
    rm -f "$log"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

fail() {
    tail -n 100 "$log" >&2
    echo "this failed: $1" >&2
    exit 1
}

make_root() {
    [ -x "$roots/$1/bin/sh" ] ||
        debootstrap --variant=minbase "$1" "$roots/$1" "$mirror" >"$log" 2>&1 || fail "debootstrap $1"
    for file in /etc/resolv.conf /etc/hosts; do
        [ ! -f "$file" ] || cp "$file" "$roots/$1$file"
    done
    for file in /etc/apt/apt.conf.d/*proxy*; do
        [ ! -f "$file" ] || cp "$file" "$roots/$1/etc/apt/apt.conf.d/"
    done
    mount -t proc proc "$roots/$1/proc" 2>/dev/null
    rm -rf "$roots/$1/work" && mkdir "$roots/$1/work"
    cp "$source"/examples/digits/*.onnx "$source"/examples/digits/*.npz "$source/examples/make/main.c" \
        "$roots/$1/work/" || exit 74
}

inside() {
    chroot "$roots/$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
        DEBIAN_FRONTEND=noninteractive http_proxy="$http_proxy" https_proxy="$https_proxy" \
        /bin/sh -ec "cd /work; $2" >"$log" 2>&1 || fail "on $1: $2"
}

[ -n "$SKIP_PACKAGE" ] || scripts/package || exit 1

# ---- Debian 12: the package brings what it needs -------------------------------------------------

make_root bookworm
cp build/packages/tvmcc_*.deb "$roots/bookworm/work/" || exit 74
inside bookworm 'apt-get update || true; apt-get install -y --no-install-recommends ./tvmcc_*.deb'
inside bookworm 'tvmcc --version; test -s /usr/share/man/man1/tvmcc.1.gz
    test -s /usr/share/bash-completion/completions/tvmcc -a -s /usr/share/zsh/vendor-completions/_tvmcc
    bash -c ". /usr/share/bash-completion/completions/tvmcc; complete -p tvmcc"'
inside bookworm 'tvmcc -c digits.onnx -o digits.o -mcpu=native
    tvmcc run digits.onnx --inputs inputs.npz --expect outputs.npz --rtol 1e-4'
inside bookworm 'apt-get install -y --no-install-recommends gcc libc6-dev
    cc -O1 -I. main.c digits.o -o app -lm; ./app
    tvmcc digits.onnx -mcpu=native -o digits.tar.zst
    tvmcc run digits.tar.zst --inputs inputs.npz --expect outputs.npz --rtol 1e-4'
inside bookworm 'apt-get purge -y tvmcc; test ! -e /usr/bin/tvmcc -a ! -e /usr/lib/cmake/Tvmcc'
echo "the .deb works on Debian 12"

# ---- Debian 11: the tarball needs nothing -----------------------------------------------------------

make_root bullseye
tar xf build/packages/tvmcc-*-linux-*.tar.xz -C "$roots/bullseye/work" || exit 74
inside bullseye 'top=$(echo tvmcc-*-linux-*[0-9]); bin=$top/bin/tvmcc; $bin --version
    $bin -c digits.onnx -o digits.o -mcpu=native
    $bin run digits.onnx --inputs inputs.npz --expect outputs.npz --rtol 1e-4
    command -v cc || { $bin digits.onnx -o digits.so -mcpu=native && exit 1; test $? = 9; }'
inside bullseye '{ apt-get update || true; apt-get install -y --no-install-recommends gcc libc6-dev; }
    top=$(echo tvmcc-*-linux-*[0-9]); bin=$top/bin/tvmcc
    cc -O1 -I. -I$top/include main.c digits.o -o app -lm; ./app
    $bin digits.onnx -mcpu=native -o digits.tar.zst
    $bin run digits.tar.zst --inputs inputs.npz --expect outputs.npz --rtol 1e-4
    printf "#include <tvmcc/runtime.h>\nint main(void) { return tvmrt_pool_new(0, 0, 2) != 0; }\n" >pool.c
    cc -I$top/include pool.c $top/lib/libtvmcc_runtime.a -o pool -pthread -ldl -lm; ./pool
    cc -D_GNU_SOURCE -I$top/include $top/share/doc/tvmcc/examples/library/main.c -L$top/lib -ltvmcc -Wl,-rpath,$PWD/$top/lib \
        -pthread -o compile; mkdir -p cpus; ./compile digits.onnx cpus haswell; test -s cpus/haswell.o'
echo "the tarball works on Debian 11, $(chroot "$roots/bullseye" ldd --version | head -n 1)"
