#!/usr/bin/env python3
"""Matrix products of f16 beside Triton's, by the model of gpu_static.py, without a GPU.

    gpu_triton.py [M,N,K ..] [--arch=sm_80] [--tvmcc=tvmcc]

Each product, relu(x w' + bias) with x [M, K], w [N, K] and the result of f16, sums of f32, is compiled by tvmcc and as a Triton kernel
with its usual blocks, stages and warps, of which the best is taken.  Told of both: tile, threads, registers, spills, what bounds the
hot loop, the share of the bound for which mma.sync alone would do, and the modelled time of the product on one multiprocessor: trips
of the hot loop times cycles of its slowest pipe; and on the GPU: that of the multiprocessor with most tiles, where larger tiles may
leave others idle, and fewer warps than a multiprocessor has schedulers leave parts of its matrix unit idle.  Tiles over the edge are counted
whole there.  Ratios are to the least of Triton's tiles, for each of the two times.  Neither latency nor memory behind the caches is in it.

Needs the packages of gpu.requirements.txt, and triton.
"""
import argparse
import math
import os
import re
import tempfile

import gpu_static as static

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def product(x, w, bias, out, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    rows = x + m[:, None] * K + k[None, :]
    columns = w + n[None, :] * K + k[:, None]
    total = tl.zeros((BM, BN), tl.float32)
    here = (m < M)[:, None]
    there = (n < N)[None, :]
    for i in range(0, K, BK):
        if M % BM == 0 and N % BN == 0 and K % BK == 0:
            total = tl.dot(tl.load(rows), tl.load(columns), total)
        else:
            left = k < K - i
            total = tl.dot(tl.load(rows, mask=here & left[None, :], other=0.0),
                           tl.load(columns, mask=there & left[:, None], other=0.0), total)
        rows += BK
        columns += BK
    total = tl.maximum(total + tl.load(bias + n, mask=n < N, other=0.0)[None, :], 0.0)
    tl.store(out + m[:, None] * N + n[None, :], total.to(tl.float16), mask=here & there)
"""
SCHEDULERS = 4  # of a multiprocessor, each with a part of the matrix unit
BLOCKS = [(128, 128, 32, 4, 4), (128, 256, 32, 8, 3), (64, 128, 32, 4, 4), (128, 64, 32, 4, 4), (64, 64, 32, 4, 4)]
MODEL = """
fn @main(%x: Tensor[({m}, {k}), f16], %w: Tensor[({n}, {k}), f16], %b: Tensor[({n}), f32]) {{
  cast(nn.relu(nn.bias_add(nn.dense(%x, %w, out_dtype="f32"), %b)), dtype=f16)
}}
"""


def modelled(args, nvdisasm, elf, folder, warps, macs, tiles):
    """Registers, spills, bound, share of it, cycles of one multiprocessor for so many multiply-adds in so many tiles; of the GPU."""
    _, code = static.disassemble(nvdisasm, elf, folder)
    registers, stack, _ = static.resources(elf)
    ops = max(static.loops(code), key=lambda l: (sum(map(static.is_math, l)), len(l)))
    spills = stack + sum(static.op(t).startswith(("LDL", "STL")) for k, t in code if k == "code")
    trip = sum(map(static.tensor_macs, ops)) * warps
    if not trip:
        return registers, spills, "no mma.sync", 0, math.inf, math.inf
    pipes, useful = static.cycles(ops, warps, args.arch)
    bound = max(pipes, key=pipes.get)
    alone = macs / trip * pipes[bound]
    most = -(-tiles // static.MULTIPROCESSORS[args.arch])
    live = min(most, static.REGISTERS // ((registers + 7) // 8 * 8 * 32 * warps))
    parts = min(SCHEDULERS, warps * live) / SCHEDULERS
    products = macs / trip * pipes["tensor"] / parts
    return registers, spills, bound, 100 * useful / pipes[bound], alone, max(alone, products) / tiles * most


def ours(args, nvdisasm, folder, m, n, k):
    path, out = os.path.join(folder, "net.relay"), os.path.join(folder, "net.o")
    with open(path, "w") as f:
        f.write(MODEL.format(m=m, n=n, k=k))
    words = [path, "--target=cuda -arch=" + args.arch, "--mixed-precision"]
    static.run(args, ["-c", *words, "-o", out])
    known = static.launches(static.run(args, ["compile", *words, "--emit=tir", "-o", "-"]))
    steps = static.run(args, ["compile", *words, "--emit=sched", "-o", "-"])
    tile = [int(x) for x in re.findall(r"by (\d+) tail=if|-> %ko.*", steps) if x]
    chunk = int(re.search(r"by (\d+) -> %ko", steps)[1])
    for elf in static.cubins(out):
        name, _ = static.disassemble(nvdisasm, elf, folder)
        if "dense" in name:
            threads = known[name][2]
            return ("%dx%dx%d" % (*tile[:2], chunk), threads,
                    *modelled(args, nvdisasm, elf, folder, threads // 32, m * n * k, known[name][1]))


def triton_kernel(args, nvdisasm, folder, m, n, k):
    import importlib.util
    path = os.path.join(folder, "product.py")
    with open(path, "w") as f:
        f.write(KERNEL)
    spec = importlib.util.spec_from_file_location("product", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    found = []
    for bm, bn, bk, warps, stages in BLOCKS:
        source = ASTSource(module.product, signature={
            "x": "*fp16", "w": "*fp16", "bias": "*fp32", "out": "*fp16",
            **{name: "constexpr" for name in ("M", "K", "N", "BM", "BN", "BK")}},
            constexprs={(4,): m, (5,): k, (6,): n, (7,): bm, (8,): bn, (9,): bk},
            attrs={(i,): [["tt.divisibility", 16]] for i in range(4)})
        kernel = triton.compile(source, target=GPUTarget("cuda", int(args.arch[3:]), 32),
                                options={"num_warps": warps, "num_stages": stages})
        found.append(("%dx%dx%d" % (bm, bn, bk), 32 * warps,
                      *modelled(args, nvdisasm, kernel.asm["cubin"], folder, warps, m * n * k,
                                -(-m // bm) * -(-n // bn))))
    return min(found, key=lambda r: r[-2]), min(r[-1] for r in found)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("sizes", nargs="*", default=["512,512,512", "1000,1000,1024", "1024,1024,1024", "2048,2048,2048", "4096,4096,4096",
                                                          "8192,8192,8192", "512,3072,768", "512,768,3072"])
    p.add_argument("--arch", default="sm_80", choices=sorted(static.RATES))
    p.add_argument("--tvmcc", default="tvmcc")
    args = p.parse_args()
    nvdisasm = static.find_nvdisasm()
    print("| product, %s | by | tile | threads | registers | spills | bound | of it %% | cycles | ratio | of the GPU | ratio |" % args.arch)
    print("|---|---|---|" + "---:|" * 3 + "---|---:|---:|---:|---:|---:|")
    for size in args.sizes:
        m, n, k = map(int, size.split(","))
        with tempfile.TemporaryDirectory() as folder:
            peer, least = triton_kernel(args, nvdisasm, folder, m, n, k)
            for by, row in (("tvmcc", ours(args, nvdisasm, folder, m, n, k)), ("triton", peer)):
                print("| %dx%dx%d | %s | %s | %d | %d | %d | %s | %.0f | %.3g | %.2f | %.3g | %.2f |" % (
                    m, n, k, by, *row[:-1], row[-2] / peer[-2], row[-1], row[-1] / least), flush=True)


if __name__ == "__main__":
    main()
