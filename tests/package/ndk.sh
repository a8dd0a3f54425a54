#!/bin/bash
# ndk.sh <folder>
#
# A stand-in for the Android NDK with what CMake's own Android mode looks for: clang for arm64, and a
# system whose libraries are lists of symbols (llvm-ifs), enough to link.  The static libc has the few
# functions that a test program needs, so that such programs run under qemu-aarch64.
set -e
ndk=$1
tools=$ndk/toolchains/llvm/prebuilt/linux-x86_64
lib=$tools/sysroot/usr/lib/aarch64-linux-android
rm -rf "$ndk" && mkdir -p "$tools/bin" "$lib/21" "$tools/sysroot/usr/include" "$tools/resource"
printf 'Pkg.Desc = Android NDK\nPkg.Revision = 26.1.10909125\n' >"$ndk/source.properties"
mkdir -p "$ndk/build/cmake"
printf 'set(NDK_MIN_PLATFORM_LEVEL "21")\nset(NDK_MAX_PLATFORM_LEVEL "34")\n' >"$ndk/build/cmake/platforms.cmake"

llvm=$(llvm-config-19 --prefix 2>/dev/null || echo /usr/lib/llvm-19)
ln -s "$(clang-19 -print-resource-dir)/include" "$tools/resource/include"
cat >"$tools/bin/clang" <<END
#!/bin/sh
exec clang-19 -resource-dir "$tools/resource" --sysroot="$tools/sysroot" "\$@"
END
chmod +x "$tools/bin/clang"
for tool in llvm-ar llvm-ranlib llvm-strip llvm-objcopy llvm-objdump llvm-readelf llvm-nm; do
    [ ! -x "$llvm/bin/$tool" ] || ln -s "$llvm/bin/$tool" "$tools/bin/$tool"
done
ln -s "$(command -v ld.lld-19)" "$tools/bin/ld.lld"

stub() { # <name> <symbol>...
    {
        printf -- '--- !ifs-v1\nIfsVersion: 3.0\nSoName: lib%s.so\nTarget: { ObjectFormat: ELF, Arch: AArch64, Endianness: little, BitWidth: 64 }\nSymbols:\n' "$1"
        shift
        for symbol; do
            printf '  - { Name: %s, Type: Func }\n' "$symbol"
        done
    } >"$ndk/stub.ifs"
    llvm-ifs-19 --output-elf="$lib/21/$so" "$ndk/stub.ifs"
}
so=libc.so stub c memcpy memset memmove exit printf __libc_init
so=libm.so stub m expf logf tanhf sinf cosf powf sqrtf exp log
so=libdl.so stub dl dlopen dlsym dlclose

cc="$tools/bin/clang --target=aarch64-none-linux-android21 -O1 -ffreestanding -c -x c"
$cc -o "$lib/21/crtbegin_dynamic.o" - <<'END'
int main(int argc, char **argv);
__attribute__((noreturn)) void exit(int status);
__asm__(".globl _start\n_start: mov x29, #0\n ldr x0, [sp]\n add x1, sp, #8\n bl main\n bl exit\n");
END
cp "$lib/21/crtbegin_dynamic.o" "$lib/21/crtbegin_static.o"
for empty in crtbegin_so crtend_so crtend_android; do
    echo | $cc -o "$lib/21/$empty.o" -
done
$cc -fno-builtin -o "$ndk/libc.o" - <<'END'
typedef __SIZE_TYPE__ size_t;
void *memcpy(void *d, const void *s, size_t n)
{
    for (size_t i = 0; i < n; i++) ((volatile char *)d)[i] = ((const char *)s)[i];
    return d;
}
void *memmove(void *d, const void *s, size_t n)
{
    if (d < s) return memcpy(d, s, n);
    while (n--) ((volatile char *)d)[n] = ((const char *)s)[n];
    return d;
}
void *memset(void *d, int c, size_t n)
{
    for (size_t i = 0; i < n; i++) ((volatile char *)d)[i] = (char)c;
    return d;
}
__attribute__((noreturn)) void exit(int status)
{
    register long x0 __asm__("x0") = status, x8 __asm__("x8") = 94;
    for (;;) __asm__ volatile("svc 0" : : "r"(x0), "r"(x8));
}
END
llvm-ar-19 rc "$lib/libc.a" "$ndk/libc.o"
for empty in m dl gcc atomic unwind; do
    llvm-ar-19 rc "$lib/lib$empty.a"
done
