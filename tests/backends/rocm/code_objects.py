#!/usr/bin/env python3
"""code_objects.py kernels.o folder      writes each code object in it as folder/<kernel>.<gpu>
   code_objects.py kernels.gcn folder    writes the assembly of each kernel as folder/<kernel>
   code_objects.py ours theirs           compares two code objects: code, notes, descriptors, symbols
"""
import os
import re
import struct
import sys

GPUS = {0x3F: "gfx90a", 0x41: "gfx1100", 0x4C: "gfx942"}


class Elf:
    def __init__(self, data):
        self.data = data
        self.at, = struct.unpack_from("<Q", data, 40)
        self.flags, = struct.unpack_from("<I", data, 48)
        self.n, names = struct.unpack_from("<HH", data, 60)
        self.end = self.at + 64 * self.n
        self.sections = {}
        rows = [struct.unpack_from("<IIQQQQIIQQ", data, self.at + 64 * i) for i in range(self.n)]
        for r in rows:
            at = rows[names][4] + r[0]
            self.sections[data[at:data.index(b"\0", at)].decode()] = r

    def bytes(self, name):
        r = self.sections[name]
        return self.data[r[4]:r[4] + r[5]]

    def symbols(self):
        table, names, out = self.bytes(".dynsym"), self.bytes(".dynstr"), {}
        for i in range(24, len(table), 24):
            name, info, other, _, value, size = struct.unpack_from("<IBBHQQ", table, i)
            out[names[name:names.index(b"\0", name)].decode()] = (info, other, value, size)
        return out

    def kernel(self):
        return next(n for n in self.symbols() if not n.endswith(".kd"))

    def meaning(self):
        """What does not depend on where things lie."""
        descriptor, symbols = bytearray(self.bytes(".rodata")), self.symbols()
        name = self.kernel()
        entry, = struct.unpack_from("<q", descriptor, 16)
        assert symbols[name + ".kd"][2] + entry == symbols[name][2], "the descriptor points elsewhere"
        assert symbols[name][2] % 256 == 0, "code is not aligned"
        struct.pack_into("<q", descriptor, 16, 0)
        # How many scalar registers: GPUs since gfx10 do not read it, and LLVM's assembler leaves it out.
        rsrc1, = struct.unpack_from("<I", descriptor, 48)
        struct.pack_into("<I", descriptor, 48, rsrc1 & ~0x3C0)
        shapes = sorted((n, s[0], s[1], s[3]) for n, s in symbols.items())
        return self.flags, self.data[:16], bytes(descriptor), self.bytes(".text"), self.bytes(".note"), shapes


def main(path, out):
    with open(path, "rb") as f:
        data = f.read()
    if os.path.isfile(out):
        with open(out, "rb") as f:
            ours, theirs = Elf(data).meaning(), Elf(f.read()).meaning()
        for what, a, b in zip(("flags", "ident", "descriptor", "text", "note", "symbols"), ours, theirs):
            if a != b:
                sys.exit(f"{path}: another {what}")
        return
    os.makedirs(out)
    if path.endswith(".gcn"):
        for text in re.split(r"(?=^\t\.amdgcn_target)", data.decode(), flags=re.M)[1:]:
            name = re.search(r"^\t\.globl\t(\w+)", text, flags=re.M).group(1)
            with open(os.path.join(out, name), "w") as f:
                f.write(text)
        return
    at = 0
    while (at := data.find(b"\x7fELF\x02\x01\x01\x40", at + 1)) >= 0:
        elf = Elf(data[at:])
        with open(os.path.join(out, f"{elf.kernel()}.{GPUS[elf.flags & 0xFF]}"), "wb") as f:
            f.write(elf.data[:elf.end])


main(*sys.argv[1:])
