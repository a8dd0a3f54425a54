"""Engines that know of no AVX-512, on a processor that has it: for sweep.py -mcpu=haswell.

libavx2.so (avx2.c) answers `cpuid` where the processor lets it fault.  For others `site` makes a folder with copies of
the engines' packages, hard links but for the libraries that ask: in these each `cpuid` is two bytes that are no
instruction, for which libavx2.so answers.  Where the instructions lie objdump says.
"""
import importlib.util
import os
import re
import shutil
import subprocess

PACKAGES = {"ort": ["onnxruntime"], "openvino": ["openvino"], "mnn": ["MNN", "_mnncengine"]}
CPUID, NOTHING = b"\x0f\xa2", b"\x0f\x04"
HERE = os.path.dirname(os.path.abspath(__file__))


def library(work):
    path = os.path.join(work, "libavx2.so")
    subprocess.check_call(["cc", "-shared", "-fPIC", "-O2", os.path.join(HERE, "avx2.c"), "-o", path])
    return path


def places(path):
    """Offsets in the file of the `cpuid` of its code."""
    said = subprocess.run(["objdump", "-dF", "--no-show-raw-insn", path], capture_output=True, text=True, check=False).stdout
    start, found = 0, []
    for line in said.splitlines():
        if m := re.match(r"([0-9a-f]+) <.*\(File Offset: 0x([0-9a-f]+)\):", line):
            start = int(m[2], 16) - int(m[1], 16)
        elif m := re.match(r"\s*([0-9a-f]+):\s+cpuid\b", line):
            found.append(start + int(m[1], 16))
    return found


def patch(path):
    """The file itself: another link of it stays as it was."""
    where = places(path)
    if not where:
        return 0
    with open(path, "rb") as f:
        data = bytearray(f.read())
    for at in where:
        if data[at:at + 2] != CPUID:
            raise RuntimeError(f"{path}: no cpuid at {at:#x}")
        data[at:at + 2] = NOTHING
    os.remove(path)
    with open(path, "wb") as f:
        f.write(data)
    return len(where)


def link(source, target):
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def site(work, engines):
    """A folder for PYTHONPATH; None where `cpuid` faults by itself."""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        if "cpuid_fault" in f.read():
            return None
    folder = os.path.join(work, "avx2")
    for package in sum((PACKAGES[e] for e in engines), []):
        source = importlib.util.find_spec(package).origin
        if os.path.basename(source) == "__init__.py":
            source = os.path.dirname(source)
        target = os.path.join(folder, os.path.basename(source))
        if os.path.exists(target):
            continue
        new = target + ".new"
        os.makedirs(folder, exist_ok=True)
        if os.path.isdir(source):
            shutil.rmtree(new, ignore_errors=True)
            shutil.copytree(source, new, copy_function=link)
        else:
            link(source, new)
        files = [new] if os.path.isfile(new) else [os.path.join(where, n) for where, _, names in os.walk(new) for n in names]
        for path in files:
            if ".so" in os.path.basename(path) and not re.search("gpu|npu|frontend", os.path.basename(path)) and not os.path.islink(path):
                patch(path)
        os.replace(new, target)
    return folder
