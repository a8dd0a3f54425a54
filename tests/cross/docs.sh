#!/bin/bash
# docs.sh TVMCC SOURCE: the commands of the how-tos about other machines, where their tools are.
tools="qemu-system-arm qemu-aarch64-static qemu-arm-static qemu-riscv64-static clang-19 ld.lld-19 make"
for tool in $tools; do
    command -v $tool >/dev/null || { echo "SKIP (no $tool)"; exit 77; }
done
for triple in aarch64-linux-gnu arm-linux-gnueabihf riscv64-linux-gnu; do
    [ -e /usr/$triple/lib/libc.a ] || { echo "SKIP (no C library for $triple)"; exit 77; }
done
exec "$2/tests/docs/commands.sh" "$1" "$2" docs/how-to/cross-compile.md docs/how-to/bare-metal.md
