#!/usr/bin/env python3
"""Runs the cases of ONNX's conformance suite: compiled, with their inputs given when they run.

    suite.py [--only PATTERN] [--without KIND] [--write] [--jobs N] TVMCC CASES EXPECTED

CASES is what cases.py wrote.  An output has to have the expected type and shape, and each element to be
within the case's own tolerance, atol + rtol * |expected|.  EXPECTED lists what does not pass, with the
reason; anything else that fails, and anything there that passes or fails in another way, is an error.
PATTERN chooses cases, 'node/test_cast_*'.  --write takes what passes off
the list, and what fails without a reason onto its end, where a reason is wanted.

A case ends as: passed; refused, with a message; wrong; crash; timeout.
"""
import argparse
import fnmatch
import glob
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import numpy_helper

SECONDS = 120
UNEXPLAINED = "what is the reason?"


def load(path, what):
    message, value = {"tensor": (onnx.TensorProto, numpy_helper.to_array),
                      "sequence": (onnx.SequenceProto, numpy_helper.to_list),
                      "optional": (onnx.OptionalProto, numpy_helper.to_optional),
                      "map": (onnx.MapProto, numpy_helper.to_dict)}[what]
    proto = message()
    with open(path, "rb") as file:
        proto.ParseFromString(file.read())
    return value(proto)


def numbers(array):
    """NumPy compares its own types, not those of ml_dtypes."""
    small = array.dtype.kind == "V" or array.dtype.name.startswith(("bfloat", "float8", "float4", "int4", "uint4",
                                                                  "int2", "uint2"))
    return array.astype(numpy.float32) if small else array


def difference(got, want, case):
    """What is wrong with a value; None: nothing."""
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return "another number of elements"
        return next((text for pair in zip(got, want) if (text := difference(*pair, case))), None)
    if want is None or got is None:
        return None if want is got else "an optional value"
    got, want = numpy.asarray(got), numpy.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)}, expected is {want.dtype}{list(want.shape)}"
    if want.dtype.kind in "OSU":
        return None if (got == want).all() else "other strings"
    with numpy.errstate(all="ignore"):
        close = numpy.isclose(numbers(got), numbers(want), rtol=case["rtol"], atol=case["atol"], equal_nan=True)
    if close.all():
        return None
    at = tuple(int(i[0]) for i in numpy.nonzero(numpy.atleast_1d(~close)))
    return f"{numpy.atleast_1d(got)[at]} at {list(at)}, expected is {numpy.atleast_1d(want)[at]}"


def run(task):
    tvmcc, folder, case = task
    for data in sorted(glob.glob(f"{folder}/test_data_set_*")):
        with tempfile.TemporaryDirectory() as out:
            command = [tvmcc, "run", f"{folder}/model.onnx", "-O1", "--threads=1", "-fno-cache", "--inputs", data,
                       "--outputs", out]
            try:
                done = subprocess.run(command, capture_output=True, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                return "timeout", ""
            said = done.stderr.decode(errors="replace").replace(f"{folder}/", "").strip()
            if done.returncode < 0 or done.returncode > 127 or "internal error" in said:
                return "crash", f"status {done.returncode} {said}"
            if done.returncode:
                return "refused", said
            for i, what in enumerate(case["outputs"]):
                path = f"{data}/output_{i}.pb"
                want = load(path, what) if os.path.exists(path) else None
                try:
                    text = difference(load(f"{out}/output_{i}.pb", what), want, case)
                except Exception as error:  # no such file, no such message
                    text = str(error)
                if text:
                    return "wrong", f"output {i}: {text}"
    return "passed", ""


def read_expected(path):
    """Name to how it fails and why; a reason is a line '== ..' above them."""
    expected, reason = {}, None
    with open(path) as file:
        for line in file:
            words = line.split()
            if line.startswith("== "):
                reason = line[3:].strip()
            elif words and words[0] != "#":
                expected[words[0]] = (words[1] if len(words) > 1 else "refused", reason)
    return expected


def write_expected(path, expected):
    with open(path) as file:
        head = file.read().split("\n== ")[0].rstrip("\n")
    reasons = {}
    for name, (how, reason) in expected.items():
        reasons.setdefault(reason, []).append(name if how == "refused" else f"{name} {how}")
    with open(path, "w") as file:
        file.write(head + "\n")
        for reason in sorted(reasons, key=lambda text: (text == UNEXPLAINED, text)):
            file.write(f"\n== {reason}\n" + "".join(f"{name}\n" for name in sorted(reasons[reason])))


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--write", action="store_true")
    args.add_argument("--jobs", type=int, default=os.cpu_count())
    args.add_argument("--only", metavar="PATTERN", default="*")
    args.add_argument("--without", metavar="KIND")
    args.add_argument("tvmcc")
    args.add_argument("cases")
    args.add_argument("expected")
    args = args.parse_args()

    with open(f"{args.cases}/cases.json") as file:
        cases = json.load(file)["cases"]
    names = [name for name in sorted(cases)
             if fnmatch.fnmatch(name, args.only) and not name.startswith(f"{args.without}/")]
    expected = read_expected(args.expected)
    errors = [f"{name}: there is no such case" for name in expected if name not in cases]
    errors += [f"{name}: has no reason" for name in expected if expected[name][1] in (None, UNEXPLAINED)]
    names.sort(key=lambda name: not name.startswith("light/"))  # what takes longest first
    with multiprocessing.Pool(args.jobs) as pool:
        tasks = [(os.path.abspath(args.tvmcc), f"{args.cases}/{name}", cases[name]) for name in names]
        results = dict(zip(names, pool.imap(run, tasks, chunksize=4)))

    for name, (how, text) in sorted(results.items()):
        was = expected.get(name, ("passed", None))
        if how == was[0]:
            continue
        errors.append(f"{name}: {how}, expected was {was[0]}{': ' if text else ''}{text}")
        expected.pop(name, None)
        if how != "passed":
            expected[name] = (how, UNEXPLAINED)
    for line in errors:
        print(line)
    if args.write:
        write_expected(args.expected, expected)
    for kind in sorted({name.split("/")[0] for name in names}):
        of_kind = [results[name][0] for name in names if name.startswith(f"{kind}/")]
        print(f"{kind}: {of_kind.count('passed')} of {len(of_kind)} passed")
    print(f"{sum(how == 'passed' for how, _ in results.values())} of {len(names)} passed, {len(errors)} not as expected")
    sys.exit(bool(errors))


if __name__ == "__main__":
    main()
