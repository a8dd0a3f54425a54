#!/usr/bin/env python3
"""Runs the recorded graphs (record.py) at -O0 and -O3 and compares: replay.py TVMCC [SEED ..].  No package needed."""
import ast
import io
import math
import os
import struct
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = {"f2": "e", "f4": "f", "f8": "d", "b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H",
         "u4": "I", "u8": "Q"}


def arrays(data):
    """(type, shape, numbers) of each array of a .npz file, by name."""
    found = {}
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        for name in z.namelist():
            b = z.read(name)
            long = b[6] > 1
            n = struct.unpack_from("<I" if long else "<H", b, 8)[0]
            start = (12 if long else 10) + n
            header = ast.literal_eval(b[start - n:start].decode("latin1"))
            assert not header["fortran_order"] or len(header["shape"]) < 2, name
            kind = KINDS[header["descr"][1:]]
            found[name[:-4]] = header["descr"][1:], header["shape"], [v[0] for v in struct.iter_unpack("<" + kind, b[start:])]
    return found


def same(a, b, allow):
    if isinstance(b, float):
        return a == b or (a != a and b != b) or (math.isfinite(a) and math.isfinite(b) and abs(a - b) <= allow)
    return abs(a - b) <= allow


def compare(ours, theirs):
    """What differs, or None."""
    for name, (kind, shape, want) in theirs.items():
        if name.startswith("allow."):
            continue
        if name not in ours:
            return f"no output {name}"
        if ours[name][:2] != (kind, shape):
            return f"output {name} is {ours[name][0]}{ours[name][1]}, not {kind}{shape}"
        allow = theirs.get("allow." + name, (None, None, [0] * len(want)))[2]
        for i, (a, b, t) in enumerate(zip(ours[name][2], want, allow)):
            if not same(a, b, t):
                return f"output {name}: {a} instead of {b} at {i}"
    return None


def replay(tvmcc, folder, seed, files, level):
    base = os.path.join(folder, seed)
    for end in (".onnx", ".in.npz"):
        with open(base + end, "wb") as f:
            f.write(files[end])
    cmd = [tvmcc, "run", base + ".onnx", level, "--output", base + ".npz", "-Wno-schedule-refused"]
    if arrays(files[".in.npz"]):
        cmd += ["--inputs", base + ".in.npz"]
    r = subprocess.run(cmd, capture_output=True, text=True, errors="replace")
    if r.returncode:
        return f"status {r.returncode}: {r.stderr.strip()}"
    with open(base + ".npz", "rb") as f:
        return compare(arrays(f.read()), arrays(files[".out.npz"]))


def main():
    count = failed = 0
    with zipfile.ZipFile(os.path.join(HERE, "recorded.zip")) as z, tempfile.TemporaryDirectory() as folder:
        for name in z.namelist():
            seed, end = name.split(".", 1)
            if end != "onnx" or (len(sys.argv) > 2 and seed not in sys.argv[2:]):
                continue
            files = {e: z.read(seed + e) for e in (".onnx", ".in.npz", ".out.npz")}
            for level in ("-O0", "-O3"):
                count += 1
                wrong = replay(sys.argv[1], folder, seed, files, level)
                if wrong:
                    failed += 1
                    print(f"FAIL {seed} {level}: {wrong}")
    print(f"{count} runs, {failed} failures")
    sys.exit(failed > 0 or not count)


if __name__ == "__main__":
    main()
