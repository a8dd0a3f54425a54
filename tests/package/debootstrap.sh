#!/bin/sh
# The promise of scripts/demo, tried where nothing is installed: makes a minimal Debian 12, clones
# this repository into it and runs scripts/demo there.  Needs root and a Debian mirror; takes
# minutes and about 3 GB.
#
#     debootstrap.sh [<command>]    another command than scripts/demo
#
#     MIRROR    http://deb.debian.org/debian unless apt here uses another
#     ROOT      where the system is made; a temporary folder, removed at the end, unless given
cd "$(dirname "$0")/../.." || exit 2

if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null 2>&1; then
    echo "SKIP (debootstrap needs root)"
    exit 0
fi
command=${1:-scripts/demo}
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 2>/dev/null |
    grep '/debian/\{0,1\}$' | head -n 1)}
mirror=${mirror:-http://deb.debian.org/debian}
root=${ROOT:-$(mktemp -d)}
log=$(mktemp)

cleanup() {
    umount "$root/proc" 2>/dev/null
    [ -n "$ROOT" ] || rm -rf --one-file-system "$root"
    rm -f "$log"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

fail() {
    tail -n 200 "$log" >&2
    echo "this failed: $1" >&2
    exit 1
}

debootstrap --variant=minbase --include=ca-certificates,git bookworm "$root" "$mirror" \
    >"$log" 2>&1 || fail debootstrap
# Newer compilers come with the updates of the release.
cat >"$root/etc/apt/sources.list" <<LIST
deb $mirror bookworm main
deb $mirror bookworm-updates main
deb ${mirror%/debian*}/debian-security bookworm-security main
LIST
for file in /etc/resolv.conf /etc/hosts; do
    [ -f "$file" ] && cp "$file" "$root$file"
done
for file in /etc/apt/apt.conf.d/*proxy*; do # the mirror may be reached only so
    [ -f "$file" ] && cp "$file" "$root/etc/apt/apt.conf.d/"
done
mount -t proc proc "$root/proc" 2>/dev/null
git clone -q --no-local . "$root/tvmcc" >"$log" 2>&1 || fail "git clone"
chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
    http_proxy="$http_proxy" https_proxy="$https_proxy" \
    /bin/sh -c 'git config --global --add safe.directory "*"; cd /tvmcc && '"$command" \
    >"$log" 2>&1 || fail "$command on a bare Debian 12"
tail -n 20 "$log"
