#!/usr/bin/env python3
"""What machine code for NVIDIA GPUs looks like, without a GPU.

    gpu_static.py MODEL|bytes [MODEL..] [--arch=sm_80] [--tvmcc=tvmcc] [--mixed] [--shape=INPUT:[..]] [--check] [--all] [--summary]

Each model is compiled for the GPU; its object holds a cubin for each kernel.  Told of each kernel: how often it is launched, in
how many blocks of how many threads; registers and stack frame (.nv.info of the cubin), accesses to local memory (spills);
shared memory; instructions of the hot loop, the one with most multiply-adds (where there is none, of what lies between two barriers), and the share of FFMA; what
limits it by the model below, with the share of that time for which the multiply-adds alone would do; how many blocks live
on one multiprocessor; and the cycles of that bound for all blocks of the busiest one, a trip of the loop each.  Kernels without a multiply-add are left out unless --all is given.

The model: a trip of the hot loop costs each pipe of a multiprocessor so many cycles for all warps of a block; the slowest one
is the bound.  The rates are those of NVIDIA's programming guide, per multiprocessor and cycle: 4 instructions issued; 64 or 128
lanes of FFMA, FADD, FMUL; 512 to 1270 multiply-adds of f16 by mma.sync, twice as many of bytes, 2048 by wgmma, which reads both sides from
shared memory itself; 64 lanes of integers, of which IDP (dp4a) adds four products of bytes; 128 bytes of shared memory, 64 bytes of a load that the first cache has.
Latency, bank conflicts and the memory behind the caches are not in it: it says what code can reach, not what it does.

--summary: a line for each model: launches; kernels; how many have a stack frame or spills; how many have multiply-adds in a loop;
of how many of these the multiply-adds are the bound; least, median and largest share of FFMA; the largest number of registers;
seconds of a compile with an empty cache and with a full one.

--mixed: with --mixed-precision.  --shape: as tvmcc takes it, for another batch; once for each input.

`bytes` in the place of a model: products of u8 by i8 with sums of i32, convolutions of ResNet-50 and MobileNetV2 and matrix products.
Channels that are no multiple of 32 are plain and summed by dp4a, as all are on GPUs before sm_80; others are in blocks of 32, and
summed by mma.sync.

--check: status 1 where a kernel has a stack frame or spills.  Needs NVRTC (docs/cuda.md) and nvdisasm: the packages of
gpu.requirements.txt, or a CUDA Toolkit.
"""
import argparse
import collections
import glob
import os
import re
import shutil
import struct
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time

EM_CUDA = 190
RATES = {  # lanes of floats, bytes of shared memory that blocks may have, threads, multiply-adds of f16 by mma.sync
    "sm_75": (64, 64 << 10, 1024, 512), "sm_80": (64, 164 << 10, 2048, 1024), "sm_86": (128, 100 << 10, 1536, 512),
    "sm_89": (128, 100 << 10, 1536, 512), "sm_90": (128, 228 << 10, 2048, 1270),
    "sm_90a": (128, 228 << 10, 2048, 1270), "sm_120": (128, 100 << 10, 1536, 512)}
MULTIPROCESSORS = {"sm_75": 40, "sm_80": 108, "sm_86": 72, "sm_89": 58, "sm_90": 132, "sm_90a": 132, "sm_120": 188}  # as machine/gpus.def
GROUP = 2048  # multiply-adds of f16 by wgmma, which four warps begin together
ISSUE, INTEGERS, SHARED, CACHE, REGISTERS, BLOCKS = 4, 64, 128, 64, 65536, 32


def find_nvdisasm():
    folders = glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "nvidia", "*", "bin"))
    for folder in folders:
        if os.path.exists(os.path.join(folder, "nvdisasm")):
            return os.path.join(folder, "nvdisasm")
    return shutil.which("nvdisasm") or sys.exit("there is no nvdisasm: pip install -r benchmarks/gpu.requirements.txt")


# ---- cubins ---------------------------------------------------------------------------------------

def sections(elf):
    """(name, info, bytes) of each section of a 64-bit ELF."""
    shoff, = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3a)
    heads = [struct.unpack_from("<IIQQQQIIQQ", elf, shoff + i * size) for i in range(count)]
    table = elf[heads[names][4]:heads[names][4] + heads[names][5]]
    for h in heads:
        name = table[h[0]:table.index(b"\0", h[0])].decode()
        yield name, h, b"" if h[1] == 8 else elf[h[4]:h[4] + h[5]]


def cubins(path):
    """All in an object, each ELF of that machine; equal ones once."""
    data = open(path, "rb").read()
    found = {}
    for m in re.finditer(b"\x7fELF\x02\x01", data):
        at = m.start()
        machine, = struct.unpack_from("<H", data, at + 0x12)
        if machine == EM_CUDA:
            programs, heads = struct.unpack_from("<QQ", data, at + 0x20)
            sizes = struct.unpack_from("<HHHH", data, at + 0x36)
            end = max(programs + sizes[0] * sizes[1], heads + sizes[2] * sizes[3])
            found[data[at:at + end]] = None
    return list(found)


def attributes(info):
    """(attribute, bytes) of a section .nv.info: a format, what it is, a value or its length."""
    at = 0
    while at + 4 <= len(info):
        form, kind, value = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == 4:
            yield kind, info[at:at + value]
            at += value


def resources(elf):
    """Registers, bytes of stack and of shared memory of the one kernel."""
    registers = stack = shared = 0
    for name, head, data in sections(elf):
        if name == ".nv.info":
            for kind, value in attributes(data):
                registers = max(registers, struct.unpack("<II", value)[1]) if kind == 0x2f else registers
                stack = max(stack, struct.unpack("<II", value)[1]) if kind == 0x11 else stack
        shared += head[5] if name.startswith(".nv.shared.k_") else 0
    return registers, stack, shared


def disassemble(nvdisasm, elf, folder):
    """Name, and the instructions with labels between them as ('label', name)."""
    path = os.path.join(folder, "k.cubin")
    with open(path, "wb") as f:
        f.write(elf)
    text = subprocess.run([nvdisasm, "-c", path], capture_output=True, text=True, check=True).stdout
    name, code = None, []
    for line in text.splitlines():
        if m := re.match(r"\.text\.(\S+):", line):
            name, code = m[1], []
        elif m := re.match(r"(\.L_\w+):", line):
            code.append(("label", m[1]))
        elif m := re.match(r"\s+/\*[0-9a-f]+\*/\s+(.*?)\s*;", line):
            code.append(("code", m[1]))
    return name, code


# ---- the hot loop ---------------------------------------------------------------------------------

def op(text):
    return re.sub(r"^@!?U?P\w+\s+", "", text).split()[0]


def loops(code):
    """Each loop's own instructions, without those of loops in it; where there is no loop, those between barriers."""
    where = {text: i for i, (kind, text) in enumerate(code) if kind == "label"}
    found = set()
    for i, (kind, text) in enumerate(code):
        m = re.search(r"\bBRA\b.*\((\.L_\w+)\)", text) if kind == "code" else None
        if m and where.get(m[1], i) < i - 1:  # code ends in a branch to itself
            found.add((where[m[1]], i))
    barriers = [i for i, (kind, text) in enumerate(code) if kind == "code" and op(text).startswith("BAR")]
    own = []
    for a, b in found or zip([0] + barriers, barriers + [len(code) - 1]):
        inner = [(c, d) for c, d in found if (c, d) != (a, b) and a <= c and d <= b]
        own.append([op(t) for i, (k, t) in enumerate(code[a:b + 1], a)
                    if k == "code" and op(t) != "NOP" and not any(c <= i <= d for c, d in inner)])
    return own


def is_math(o):
    return o.startswith(("FFMA", "HMMA", "HGMMA", "IMMA", "DFMA", "IDP"))


def tensor_macs(o):
    """Multiply-adds of a warp's instruction, as many of f16 as take its time: HMMA.16816, IMMA.16832 (bytes, twice as fast)."""
    m = re.match(r"([HI])MMA\.(\d+)", o)
    sizes = {"16816": 2048, "1688": 1024, "16832": 4096, "16864": 8192}
    return sizes.get(m[2], 0) // (2 if m[1] == "I" else 1) if m else 0


def group_columns(o):
    """Of 64 rows by 16 steps that four warps multiply, out of shared memory: HGMMA.64x192x16; 0: it is none."""
    m = re.match(r"HGMMA\.64x(\d+)x16\b", o)
    return int(m[1]) if m else 0


def bytes_of(o):
    return 4 * (int(m[1]) // 32 if (m := re.search(r"\.(64|128)\b", o)) else 1)


def line_cycles(o):
    """Of a warp's load past shared memory, one at least."""
    narrow = re.search(r"\.[US](8|16)\b", o)
    return max(1, 32 * (int(narrow[1]) // 8 if narrow else bytes_of(o)) / CACHE)


def cycles(ops, warps, arch):
    """Of each pipe, for one trip of all warps of a block; and of the multiply-adds alone."""
    lanes = RATES[arch][0]
    c = collections.Counter(issue=len(ops) * warps / ISSUE)
    for o in ops:
        if re.match("FFMA|FADD|FMUL", o):
            c["float"] += warps * 32 / lanes
        elif re.match("IDP|IMAD|IADD|LEA|LOP|SHF|ISETP|SEL|IMNMX|PRMT", o):
            c["integer"] += warps * 32 / INTEGERS
        elif tensor_macs(o):
            c["tensor"] += warps * tensor_macs(o) / RATES[arch][3]
        elif n := group_columns(o):
            c["tensor"] += warps * 16 * n * 16 / GROUP
            c["shared"] += warps / 4 * (64 + n) * 32 / SHARED
        elif o.startswith("LDSM"):
            c["shared"] += warps * 128 * (4 if ".4" in o else 2 if ".2" in o else 1) / SHARED
        elif o.startswith("LDGSTS"):
            c["shared"] += warps * 32 * bytes_of(o) / SHARED
            c["memory"] += warps * 32 * bytes_of(o) / CACHE
        elif re.match("LDS|STS", o):
            c["shared"] += warps * 32 * bytes_of(o) / SHARED
        elif re.match("LDG|STG", o):
            c["memory"] += warps * line_cycles(o)
    products = {name: sum(o.startswith(name) for o in ops) * warps * 32 for name in ("FFMA", "IDP")}
    return c, c["tensor"] or products["FFMA"] / lanes + products["IDP"] / INTEGERS


# ---- products of bytes ---------------------------------------------------------------------------

CONV = """
const @w: Tensor[({o}, {c}, {k}, {k}), i8] = splat(3)
fn @main(%x: Tensor[({n}, {c}, {y}, {y}), u8], %b: Tensor[({o}), i32]) {{
  nn.relu(nn.bias_add(nn.conv2d(%x, const @w, strides=[{s}, {s}], padding=[{p}, {p}, {p}, {p}], out_dtype="i32"), %b))
}}
"""
CONV_BLOCKS = """
const @w: Tensor[({o}, {c}, {k}, {k}), i8] = splat(3)
fn @main(%x: Tensor[({n}, {c32}, {y}, {y}, 32), u8], %b: Tensor[({o32}, 1, 1, 32), i32]) {{
  nn.relu(add(nn.conv2d(%x, const @w, strides=[{s}, {s}], padding=[{p}, {p}, {p}, {p}], data_layout="NCHW32c", out_dtype="i32"), %b))
}}
"""
DENSE = """
const @w: Tensor[({n}, {k}), i8] = splat(3)
fn @main(%x: Tensor[({m}, {k}), u8], %b: Tensor[({n}), i32]) {{
  nn.relu(nn.bias_add(nn.dense(%x, const @w, out_dtype="i32"), %b))
}}
"""


def bytes_cases():
    """(name, Relay text)"""
    for c, o, y, k, s in ((64, 64, 56, 3, 1), (256, 64, 56, 1, 1), (128, 128, 28, 3, 1), (256, 256, 14, 3, 1), (512, 512, 7, 3, 1),
                          (16, 96, 112, 1, 1), (24, 144, 56, 1, 1), (144, 24, 56, 1, 1), (40, 80, 28, 3, 1)):
        for n in (1, 64) if c % 32 == 0 else (1,):
            text = CONV if c % 32 else CONV_BLOCKS
            yield ("conv %dx%d %d -> %d, %dx%d%s" % (k, k, c, o, y, y, ", 64 images" * (n > 1)),
                   text.format(n=n, c=c, o=o, c32=c // 32, o32=o // 32, y=y, k=k, s=s, p=k // 2))
    for m, n, k in ((512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (512, 3072, 768), (512, 512, 520), (1000, 1000, 1000), (1, 1000, 2048)):
        yield "%dx%dx%d" % (m, n, k), DENSE.format(m=m, n=n, k=k)


# ---- a model --------------------------------------------------------------------------------------

def run(args, words):
    done = subprocess.run([args.tvmcc, *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def launches(text):
    """kernel -> [how often, blocks, threads]"""
    found = {}
    for name, grid, block in re.findall(r"launch @(\S+) grid\(([^)]*)\) block\(([^)]*)\)", text):
        size = [1, 1]
        for i, dims in enumerate((grid, block)):
            for d in dims.split(", "):
                size[i] *= int(d) if d.isdigit() else 1
        row = found.setdefault("k_" + re.sub("[^A-Za-z0-9]", "_", name), [0, *size])
        row[0] += 1
    return found


def report_bytes(args, nvdisasm):
    """A line for each product, instead of for each kernel."""
    print("| product, %s | by | blocks | threads | registers | stack, spills | loop | bound | of it %% |\n|---|---|" % args.arch +
          "---:|" * 5 + "---|---:|")
    bad = 0
    for name, text in bytes_cases():
        with tempfile.TemporaryDirectory() as folder:
            path, o = os.path.join(folder, "net.relay"), os.path.join(folder, "net.o")
            with open(path, "w") as f:
                f.write(text)
            target = [path, "--target=cuda -arch=" + args.arch]
            run(args, ["-c", *target, "-o", o])
            known = launches(run(args, ["compile", *target, "--emit=tir", "-o", "-"]))
            for elf in cubins(o):
                kernel, code = disassemble(nvdisasm, elf, folder)
                registers, stack, _ = resources(elf)
                local = stack + sum(op(t).startswith(("LDL", "STL")) for k, t in code if k == "code")
                bad += bool(local)
                ops = max(loops(code), key=lambda l: (sum(map(is_math, l)), len(l)))
                if not any(map(is_math, ops)) and not local:
                    continue
                _, blocks, threads = known.get(kernel, [0, 0, 32])
                warps = (threads + 31) // 32
                pipes, useful = cycles(ops, warps, args.arch)
                bound = max(pipes, key=pipes.get)
                by = "mma.sync" if any(map(tensor_macs, ops)) else "dp4a" if any(o.startswith("IDP") for o in ops) else "single"
                print("| %s | %s | %d | %d | %d | %d | %d | %s | %.0f |" % (
                    name, by, blocks, threads, registers, local, len(ops), bound, 100 * useful / pipes[bound]), flush=True)
    return bad


def report(args, model, nvdisasm):
    target = ["--target=cuda -arch=" + args.arch] + ["--mixed-precision"] * args.mixed + ["--shape=" + s for s in args.shape]
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        o = os.path.join(folder, "net.o")
        for _ in range(2 if args.summary else 1):
            begin = time.monotonic()
            run(args, ["-c", model, *target, "-fweights=file", "-o", o] + ["--cache-dir=" + folder] * args.summary)
            seconds.append(time.monotonic() - begin)
        known = launches(run(args, ["compile", model, *target, "--emit=tir", "-o", "-"]))
        rows, bad = [], 0
        for elf in cubins(o):
            name, code = disassemble(nvdisasm, elf, folder)
            registers, stack, shared = resources(elf)
            times, blocks, threads = known.get(name, [0, 0, 32])
            ops = max(loops(code), key=lambda l: (sum(map(is_math, l)), len(l)))
            local = sum(op(t).startswith(("LDL", "STL")) for k, t in code if k == "code")
            math = sum(map(is_math, ops))
            bad += bool(stack or local)
            if not math and not args.all and not stack and not local:
                continue
            warps = (threads + 31) // 32
            pipes, useful = cycles(ops, warps, args.arch)
            bound = max(pipes, key=pipes.get)
            live = min(BLOCKS, RATES[args.arch][2] // (warps * 32),
                       REGISTERS // (max(1, (registers + 7) // 8 * 8) * 32 * warps),
                       RATES[args.arch][1] // (shared + 1024))
            rows.append((name[2:], times, blocks, threads, registers, stack, local, shared, len(ops), math,
                         100 * math / len(ops), bound, 100 * useful / pipes[bound], live,
                         pipes[bound] * -(-blocks // MULTIPROCESSORS[args.arch])))
    if args.summary:
        shares = [r[10] for r in rows] or [0]
        print("| %s | %d | %d | %d | %d | %d | %.0f, %.0f, %.0f | %d | %.1f, %.1f |" % (
            os.path.basename(model).rsplit(".", 1)[0], sum(k[0] for k in known.values()), len(known), bad, len(rows),
            sum(r[12] > 99 for r in rows), min(shares), statistics.median(shares), max(shares),
            max([r[4] for r in rows] or [0]), *seconds), flush=True)
        return bad
    print("\n### %s, %s: %d launches of %d kernels, %d with a stack frame or spills\n" % (
        os.path.basename(model), args.arch, sum(k[0] for k in known.values()), len(known), bad))
    print("| kernel | launches | blocks | threads | registers | stack | spills | shared | loop | multiply-adds | share % | bound | "
          "of it % | live | cycles |\n|---|" + "---:|" * 10 + "---|---:|---:|---:|")
    for r in sorted(rows, key=lambda r: (-r[1], r[0])):
        print("| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d | %.0f | %s | %.0f | %d | %.0f |" % r)
    return bad


def main():
    p = argparse.ArgumentParser()
    p.add_argument("models", nargs="+")
    p.add_argument("--arch", default="sm_80", choices=sorted(RATES))
    p.add_argument("--tvmcc", default="tvmcc")
    p.add_argument("--all", action="store_true")
    p.add_argument("--mixed", action="store_true")
    p.add_argument("--shape", action="append", default=[])
    p.add_argument("--check", action="store_true")
    p.add_argument("--summary", action="store_true")
    args = p.parse_args()
    nvdisasm = find_nvdisasm()
    if args.summary:
        print("| model | launches | kernels | frame or spills | with FFMA | bound by them | share % | registers | s |\n|---|" +
              "---:|" * 8)
    bad = sum(report_bytes(args, nvdisasm) if m == "bytes" else report(args, m, nvdisasm) for m in args.models)
    sys.exit(1 if args.check and bad else 0)


if __name__ == "__main__":
    main()
