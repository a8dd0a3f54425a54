#!/usr/bin/env python3
"""Instructions that aarch64 takes for a run, ours and the engines', counted under qemu where no board is.

    instructions.py WORK --models MODELS [NAME..]       the models of models.py (or of these names)
    instructions.py WORK --seed S --count N             N operators of that seed (sweep_cases.py), each alone

Made in WORK, the first time: a tree of Debian's arm64 packages with Python (debootstrap, as root), the engines' arm64 wheels in it, qemu-user
(packages are fetched, none is installed) and the plugin that counts (instructions.c).  All engines run in that Python, one thread,
once to warm up and check, once counted; what Python costs is in all counts (some 10,000).  A result that differs from
ONNX Runtime's does not count.  Instructions are not time: that is what bounds.py is for.
"""
import argparse
import glob
import importlib
import json
import math
import os
import re
import shutil
import subprocess
import sys

import engines

HERE = os.path.dirname(os.path.abspath(__file__))
MARK = 0x40000000
PACKAGES = "python3.11-minimal,libpython3.11-stdlib,libstdc++6,libgomp1"
WHEELS = ["onnxruntime", "ncnn", "numpy"]
# Engines ask the system which core it is; without an answer for aarch64 ONNX Runtime ends.
CPUINFO = """processor\t: 0
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp ssbs
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1
"""
TOLERANCE = 1e-3  # of the largest value


# ---- the guest -----------------------------------------------------------------------------------------------

def mark(k):
    try:
        os.sched_get_priority_max(MARK + k)
    except OSError:
        pass


def guest(engine, path):
    """Runs all jobs of a file; a line of JSON for each, and the plugin's marks around one run."""
    import numpy as np
    importlib.import_module(engines.IMPORTS[engine])
    for job in json.load(open(path)):
        said = {"k": job["k"]}
        try:
            feeds = dict(np.load(job["feeds"]))
            run = getattr(engines, "load_" + engine)(job[engine], feeds, job["outs"], 1)
            have = [np.array(h, np.float64).ravel() for h in run()]
            if not os.path.exists(job["want"]):
                np.savez(job["want"], *have)
            want = [w for w in np.load(job["want"]).values()]
            said["error"] = max(float(abs(h - w).max() / max(1e-30, abs(w).max())) for h, w in zip(have, want))
            mark(job["k"])
            run()
            mark(job["k"])
        except Exception as e:  # whatever an engine throws is what is said of it
            said["failed"] = str(e).splitlines()[0] if str(e) else type(e).__name__
        print(json.dumps(said), flush=True)


# ---- the host ------------------------------------------------------------------------------------------------

def do(*command, **more):
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if r.returncode:
        sys.exit(f"{command[0]}: {r.stdout.strip()[-400:]}")


def prepare(work):
    """The guest's tree, qemu and the plugin; gives the command that runs Python in it."""
    root, qemu, plugin = (os.path.join(work, name) for name in ("root", "qemu", "instructions.so"))
    if not os.path.exists(os.path.join(work, "complete")):
        shutil.rmtree(root, ignore_errors=True)
        do("debootstrap", "--foreign", "--arch=arm64", "--variant=minbase", "--include=" + PACKAGES, "bookworm", root)
        for package in glob.glob(root + "/var/cache/apt/archives/*.deb"):
            do("dpkg", "-x", package, root)
        do("apt-get", "download", "qemu-user", cwd=work)
        do("dpkg", "-x", glob.glob(work + "/qemu-user_*.deb")[0], qemu)
        platforms = [f"--platform=manylinux_{v}_aarch64" for v in ("2_28", "2_27", "2_24", "2_17")]
        do(sys.executable, "-m", "pip", "download", "--no-deps", *platforms, "--python-version=3.11", "--only-binary=:all:",
           "-d", work + "/wheels", *WHEELS)
        for wheel in glob.glob(work + "/wheels/*.whl"):
            shutil.unpack_archive(wheel, root + "/site", "zip")
        os.makedirs(root + "/sys/devices/system/cpu", exist_ok=True)
        for path, text in (("proc/cpuinfo", CPUINFO), ("sys/devices/system/cpu/possible", "0\n"), ("sys/devices/system/cpu/present", "0\n")):
            with open(os.path.join(root, path), "w") as f:
                f.write(text)
        open(os.path.join(work, "complete"), "w").close()
    do("cc", "-shared", "-fPIC", "-O2", HERE + "/instructions.c", "-o", plugin)
    return [qemu + "/usr/bin/qemu-aarch64", "-L", root, "-plugin", plugin], root


def jobs_of(a):
    """What is run: of each the model, its inputs, and what the engines load."""
    import numpy as np
    import sweep_cases
    found = []

    def add(name, model, feeds, outs):
        base = os.path.join(a.work, f"job{len(found)}")
        os.makedirs(base, exist_ok=True)
        np.savez(base + ".npz", **feeds)
        if os.path.exists(base + ".want.npz"):
            os.remove(base + ".want.npz")
        found.append({"k": len(found), "name": name, "feeds": base + ".npz", "want": base + ".want.npz", "outs": outs,
                      "ort": model, "tvmcc": os.path.join(base, os.path.basename(model).removesuffix(".onnx") + ".so")})

    if a.models:
        for name in a.models[1:] or sorted(f.removesuffix(".onnx") for f in os.listdir(a.models[0]) if f.endswith(".onnx")):
            path = os.path.join(a.models[0], name + ".onnx")
            values = np.load(path.removesuffix(".onnx") + ".npz")
            add(name, path, {k[3:]: values[k] for k in values if k.startswith("in.")}, [k[4:] for k in values if k.startswith("out.")])
    k = 0
    while a.seed is not None and len(found) < a.count:
        case, k = sweep_cases.draw(a.seed, k), k + 2
        if case.loose:
            continue
        path = os.path.join(a.work, f"case{case.k}.onnx")
        with open(path, "wb") as f:
            f.write(case.model)
        add(f"{case.kind}: {case.text}", path, case.feeds, case.outs)
    return found


def add_ncnn(job):
    path = job["tvmcc"].removesuffix(".so") + ".ncnn.param"
    with open(path + ".log", "w") as log:
        kept = os.dup(1)
        os.dup2(log.fileno(), 1)
        try:
            engines.build_ncnn(job["ort"], path)
        except (OSError, subprocess.CalledProcessError):
            pass  # the guest says that there is no model
        os.dup2(kept, 1)
    job["ncnn"] = path


def count(a, qemu, root, engine, jobs):
    """Instructions of each job by its number, or why there are none."""
    listed = os.path.join(a.work, "jobs.json")
    have = {}
    left = jobs
    while left:  # an engine that ends in the middle goes on behind what ended it
        json.dump(left, open(listed, "w"))
        env = dict(os.environ, PYTHONPATH=f"{root}/site:{HERE}", OMP_NUM_THREADS="1")
        r = subprocess.run([*qemu, "-cpu", a.cpu, root + "/usr/bin/python3.11", os.path.abspath(__file__), "--guest", engine, listed], env=env,
                           capture_output=True, text=True)
        said = [json.loads(line) for line in r.stdout.splitlines() if line.startswith('{"k"')]
        counts = {int(k): int(n) for k, n in re.findall(r"^instructions (\d+) (\d+)$", r.stderr, re.M)}
        for s in said:
            wrong = s.get("failed") or (f"error {s['error']:.2g}" if not s["error"] <= TOLERANCE else None)
            have[s["k"]] = wrong or counts[s["k"]]
        left = left[len(said):]
        if left:
            have[left[0]["k"]] = f"status {r.returncode}"
            left = left[1:]
    return have


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("work")
    p.add_argument("--models", nargs="+")
    p.add_argument("--seed", type=int)
    p.add_argument("--count", type=int, default=50)
    p.add_argument("--cpu", default="neoverse-n1", help="of qemu and -mcpu")
    p.add_argument("--engines", nargs="+", default=["ort"], choices=["ort", "ncnn"])
    p.add_argument("--tvmcc", default=os.path.join(HERE, "../build/release/bin/tvmcc"))
    a = p.parse_args()
    a.work = os.path.abspath(a.work)
    os.makedirs(a.work, exist_ok=True)
    qemu, root = prepare(a.work)
    engines.build_runtime(a.work, "aarch64-linux-gnu-gcc")
    jobs = jobs_of(a)
    for job in jobs:
        do(a.tvmcc, job["ort"], "-mtriple=aarch64-linux-gnu", "-mcpu=" + a.cpu, "-fno-cache", "-o", job["tvmcc"])
        if "ncnn" in a.engines:
            add_ncnn(job)
    found = {engine: count(a, qemu, root, engine, jobs) for engine in [*a.engines, "tvmcc"]}
    print("| | " + " | ".join(found) + " | best / tvmcc |\n|---|" + "---:|" * (len(found) + 1))
    ratios = []
    for job in jobs:
        row = [found[e][job["k"]] for e in found]
        peers = [v for v in row[:-1] if isinstance(v, int)]
        if peers and isinstance(row[-1], int):
            ratios.append(min(peers) / row[-1])
        print(f"| {job['name']} | " + " | ".join(f"{v / 1e6:.3f}" if isinstance(v, int) else v for v in row) +
              (f" | {ratios[-1]:.2f} |" if peers and isinstance(row[-1], int) else " | |"), flush=True)
    if ratios:
        ratios.sort()
        print(f"\nMillion instructions; of {len(ratios)}: geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, "
              f"median {ratios[len(ratios) // 2]:.2f}, least {ratios[0]:.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--guest"]:
        guest(*sys.argv[2:])
    else:
        main()
