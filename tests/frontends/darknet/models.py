#!/usr/bin/env python3
"""Compiles and runs the networks of ../shared/models/darknet against OpenCV's results, where they are found.

    models.py TVMCC SOURCE

OpenCV normalizes batches as Darknet's first program does, whoever wrote the weights; so does tvmcc, if the weights are said to be
the first one's.  Its rows of boxes leave out classes that are less sure than 0.2.

The largest error may be 1e-3 of the largest value, plus 1e-4, unless TOLERANCE says otherwise, as `tvmcc run` takes it: --rtol=2e-2 --atol=2e-3,
or `none`: results are not looked at."""
import array
import ast
import os
import subprocess
import sys
import tempfile
import zipfile

THRESHOLD = 0.2


def arrays(path):
    with zipfile.ZipFile(path) as z:
        for name in z.namelist():
            data = z.read(name)
            size = int.from_bytes(data[8:10], "little")
            yield name[:-4], ast.literal_eval(data[10:10 + size].decode())["shape"], array.array("f", data[10 + size:])


def tolerance():
    words = dict(word.split("=") for word in os.environ.get("TOLERANCE", "").split())
    return float(words.get("--rtol", 1e-3)), float(words.get("--atol", 1e-4))


def wrong(name, shape, got, want):
    rtol, atol = tolerance()
    limit = rtol * max(abs(v) for v in want) + atol
    columns = shape[-1]
    for i, (g, w) in enumerate(zip(got, want)):
        if "yolo" in name and i % columns >= 5 and w == 0 and g <= THRESHOLD + limit:
            continue
        if not abs(g - w) <= limit:
            return f"{name}: cell {i} is {g}, not {w}"
    return None if len(got) == len(want) else f"{name}: {len(got)} cells, not {len(want)}"


def check(tvmcc, folder, work):
    weights, out = os.path.join(work, "net.weights"), os.path.join(work, "out.npz")
    with open(os.path.join(folder, "model.weights"), "rb") as f:
        data = bytearray(f.read())
    data[8:12] = bytes(4)
    with open(weights, "wb") as f:
        f.write(data)
    expected = {name.replace("yolo_opencv", "boxes"): (name, shape, want) for name, shape, want in arrays(os.path.join(folder, "outputs.npz"))}
    subprocess.run([tvmcc, "run", os.path.join(folder, "model.cfg"), "--weights", weights, "--inputs", os.path.join(folder, "inputs.npz"),
                    "--output-tensors", ",".join(expected), "--outputs", out], check=True)
    if os.environ.get("TOLERANCE") == "none":
        return []
    found = {name: got for name, _, got in arrays(out)}
    return [w for k, (name, shape, want) in expected.items() for w in [wrong(name, shape, found[k], want)] if w]


def main():
    tvmcc, models = os.path.realpath(sys.argv[1]), os.path.join(sys.argv[2], "../shared/models/darknet")
    if not os.path.isdir(models):
        print(f"SKIP (no models at {models})")
        return 77
    failed = []
    names = sorted(os.listdir(models))
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            failed += [f"FAIL {name}: {w}" for w in check(tvmcc, os.path.join(models, name), work)]
            # As it is, with no option, it compiles.
            subprocess.run([tvmcc, "-c", os.path.join(models, name, "model.cfg"), "-mcpu=x86-64", "-o", os.path.join(work, "net.o")], check=True)
    print("\n".join(failed + [f"{len(names)} models, {len(failed)} failures"]))
    return len(failed) != 0 or not names


if __name__ == "__main__":
    sys.exit(main())
