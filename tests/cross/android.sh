#!/bin/bash
# android.sh TVMCC SOURCE
#
# A shared library for Android without an NDK: pages of 16 KiB, its own name, the libraries that the
# loader has to bring, no text relocations, the same bytes again.  With an NDK (a folder that looks
# like one stands in) its compiler is asked.
set -u
tvmcc=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
readelf=$(command -v llvm-readelf-19 readelf | head -1)
command -v ld.lld-19 ld.lld >/dev/null || { echo "SKIP (no ld.lld)"; exit 77; }
failed=0
die() { echo "FAILED: $*"; failed=1; }

cat >"$work/power.relay" <<'END'
fn @main(%x: Tensor[(4), f32], %y: Tensor[(4), f32]) { power(%x, %y) }
END
for triple in aarch64-linux-android29 armv7a-linux-androideabi21 x86_64-linux-android30; do
    so=$work/libpower.so
    for round in 1 2; do
        rm -f "$so"
        if ! env -u ANDROID_NDK -u ANDROID_NDK_ROOT -u ANDROID_NDK_HOME "$tvmcc" "$work/power.relay" \
            -mtriple=$triple -o "$so" -Wno-baseline-cpu >"$work/log" 2>&1; then
            die "$triple: $(cat "$work/log")"
            continue 2
        fi
        cp "$so" "$work/$round.so"
    done
    cmp "$work/1.so" "$work/2.so" || die "$triple: other bytes the second time"
    "$readelf" -W -d -l "$so" >"$work/elf"
    for want in 'SONAME.*\[libpower.so\]' 'NEEDED.*\[libm.so\]' 'NEEDED.*\[libc.so\]'; do
        grep -q "$want" "$work/elf" || die "$triple: no $want"
    done
    grep -q TEXTREL "$work/elf" && die "$triple: text relocations"
    [ "$(grep -c ' LOAD ' "$work/elf")" = "$(grep ' LOAD ' "$work/elf" | grep -c ' 0x4000$')" ] ||
        die "$triple: pages are not of 16 KiB"
done

bin=$work/ndk/toolchains/llvm/prebuilt/linux-x86_64/bin
mkdir -p "$bin"
cat >"$bin/aarch64-linux-android29-clang" <<'END'
#!/bin/sh
echo "$@" >"$0.args"
exit 1
END
chmod +x "$bin/aarch64-linux-android29-clang"
ANDROID_NDK=$work/ndk "$tvmcc" "$work/power.relay" -mtriple=aarch64-linux-android29 -o "$work/n.so" \
    -Wno-baseline-cpu >"$work/log" 2>&1 && die "an NDK that fails was not asked"
grep -q -- '-Wl,-z,max-page-size=16384' "$bin/aarch64-linux-android29-clang.args" || die "the NDK's options"
exit $failed
