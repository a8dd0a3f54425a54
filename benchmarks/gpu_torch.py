#!/usr/bin/env python3
"""PyTorch's own networks on NVIDIA's GPU, as gpu_run puts them beside ours.

    gpu_torch.py NAME.TYPE [--batches 1 8 64] [--meet FOLDER --of N] [--compile-seconds S]

NAME is a model of models.py that torchvision or transformers has, with random weights; TYPE is f32 (cuDNN and cuBLAS kept from
TF32, as `tvmcc` computes), tf32 (they take 10 bits of each factor) or f16 (weights and all between them of f16, pictures in
channels_last).  A JSON line for each batch: milliseconds of a run, inputs and results in the device's memory, waited for each time,
median of at least 30: `eager`, and `compiled` by torch.compile(mode="reduce-overhead"), which replays CUDA graphs; `seconds` is what the
compile took.  --meet: N such processes compile at once and measure one after the other.
"""
import argparse
import fcntl
import json
import os
import statistics
import time

import torch

PICTURES = {"resnet50": "resnet50", "mobilenet_v2": "mobilenet_v2", "vgg16": "vgg16", "densenet121": "densenet121",
            "efficientnet_b0": "efficientnet_b0", "inception_v3": "inception_v3", "squeezenet11": "squeezenet1_1"}
RUNS, WARM = 30, 5


def network(name):
    """The network, and what makes its inputs for a batch."""
    if name == "bert_base":
        from transformers import BertConfig, BertModel
        net = BertModel(BertConfig())
        return net, lambda b: [torch.randint(0, 30522, (b, 128)), torch.ones(b, 128, dtype=torch.int64),
                               torch.zeros(b, 128, dtype=torch.int64)]
    import torchvision
    words = {"init_weights": True} if name == "inception_v3" else {}
    side = 299 if name == "inception_v3" else 224
    return getattr(torchvision.models, PICTURES[name])(**words), lambda b: [torch.randn(b, 3, side, side)]


def ms(run, inputs):
    times = []
    with torch.no_grad():
        for i in range(WARM + RUNS):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            run(*inputs)
            torch.cuda.synchronize()
            times.append((time.perf_counter() - begin) * 1e3)
    return round(statistics.median(times[WARM:]), 4)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what")
    p.add_argument("--batches", nargs="+", type=int, default=[1, 8, 64])
    p.add_argument("--meet")
    p.add_argument("--of", type=int, default=1)
    p.add_argument("--compile-seconds", type=float, default=120)
    args = p.parse_args()
    name, kind = args.what.rsplit(".", 1)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    net, make = network(name)
    net = net.cuda().eval()
    net = net.half() if kind == "f16" else net
    channels = {"memory_format": torch.channels_last} if kind == "f16" and name != "bert_base" else {}
    net = net.to(**channels) if channels else net
    inputs = {b: [x.cuda().half().contiguous(**channels) if x.is_floating_point() and kind == "f16" else x.cuda() for x in make(b)]
              for b in args.batches}
    compiled, took = torch.compile(net, mode="reduce-overhead", dynamic=False), {}
    end = time.time() + args.compile_seconds
    with torch.no_grad():
        for b in args.batches:
            begin = time.time()
            if begin > end:
                break
            for _ in range(3):  # compiles, records, replays
                compiled(*inputs[b])
            torch.cuda.synchronize()
            took[b] = round(time.time() - begin, 1)
    if args.meet:
        open(os.path.join(args.meet, args.what), "w").close()
        while sum(f != "lock" for f in os.listdir(args.meet)) < args.of and time.time() < end:
            time.sleep(0.1)
        lock = open(os.path.join(args.meet, "lock"), "a")
        fcntl.flock(lock, fcntl.LOCK_EX)
    for b in args.batches:
        print(json.dumps({"model": name, "type": kind, "batch": b, "eager": ms(net, inputs[b]),
                          "compiled": ms(compiled, inputs[b]) if b in took else None, "seconds": took.get(b)}), flush=True)


if __name__ == "__main__":
    main()
