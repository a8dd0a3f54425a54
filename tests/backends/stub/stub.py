#!/usr/bin/env python3
"""stub.py <source> <build> <work>: what a device backend takes.

tree/ holds all that a device adds to the source: files of its own, and rows for tables.  They are at
most four places.  The driver is built with them: what reads the tables anew, the rest from the build.
Then the device is asked for wherever one can be.
"""
import json
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

MOST_PLACES = 4
TABLES = {"backends/backends.def": "SOURCE(c,", "runtime/device/devices.def": None}  # rows go before
READERS = ("compile/", "driver/", "backends/table.c", "backends/llvm/target.c", "manifest/schema.c")

source, build, work = (os.path.abspath(a) for a in sys.argv[1:4])
tree = os.path.join(source, "tests/backends/stub/tree")
tvmcc = os.path.join(work, "tvmcc")


def places():
    """Tables and files; a folder of the device's own is one place."""
    found = set()
    for folder, _, files in os.walk(tree):
        for name in files:
            path = os.path.relpath(os.path.join(folder, name), tree)
            own = os.path.dirname(path)
            found.add(path if os.path.isdir(os.path.join(source, own)) else own)
    return sorted(found)


def overlay():
    """The files that are new or changed, beside the source."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(tree, work)
    for table, before in TABLES.items():
        with open(os.path.join(source, table)) as f:
            lines = f.readlines()
        with open(os.path.join(tree, table)) as f:
            rows = f.readlines()
        at = next((i for i, l in enumerate(lines) if before and l.startswith(before)), len(lines))
        with open(os.path.join(work, table), "w") as f:
            f.writelines(lines[:at] + rows + lines[at:])
    shutil.copy(os.path.join(source, "runtime/device/device.c"), os.path.join(work, "runtime/device"))


def commands():
    """How to compile each source that sees a changed file; new ones like their neighbours."""
    with open(os.path.join(build, "compile_commands.json")) as f:
        known = {os.path.relpath(c["file"], source): shlex.split(c["command"]) for c in json.load(f)}
    jobs = [(path, path) for path in known if path.startswith(READERS)]
    jobs += [(os.path.join(work, "runtime/device/device.c"), "runtime/device/opencl.c"),
             (os.path.join(work, "runtime/device/stub.c"), "runtime/device/opencl.c"),
             (os.path.join(work, "backends/stub/stub.c"), "backends/opencl/opencl.c")]
    for i, (path, like) in enumerate(jobs):
        words = [w for w in known[like][:known[like].index("-o")] if not w.startswith("-O")]
        out = os.path.join(work, "%d.o" % i)
        yield out, words[:1] + ["-I" + work] + words[1:] + [
            "-I" + source, "-I" + os.path.join(source, "runtime/device"), "-O0", "-o", out, "-c",
            os.path.join(source, path)]


def compile_one(job):
    done = subprocess.run(job[1], cwd=build, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return job[0]


def link(objects):
    """The command that linked the driver, with the objects before its libraries."""
    last = subprocess.run(["ninja", "-C", build, "-t", "commands", "bin/tvmcc"], check=True,
                          capture_output=True, text=True).stdout.splitlines()[-1]
    words = shlex.split(last)
    if words[:2] == [":", "&&"]:
        words = words[2:words.index("&&", 2)]
    at = words.index("-o")
    mains = [w for w in words if w.endswith("driver/main.c.o")]
    words = [w for w in words[:at] if w not in mains] + objects + ["-o", tvmcc] + [
        w for w in words[at + 2:] if w not in mains]
    done = subprocess.run(words, cwd=build, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-4000:])


def expect(wanted, *args, status=0):
    done = subprocess.run([tvmcc, *args], cwd=work, capture_output=True, text=True)
    if done.returncode != status or wanted not in done.stdout + done.stderr:
        sys.exit("tvmcc %s: status %d, and not '%s' in\n%s%s" %
                 (" ".join(args), done.returncode, wanted, done.stdout, done.stderr))


def main():
    found = places()
    if len(found) > MOST_PLACES:
        sys.exit("a device needs %d places: %s" % (len(found), ", ".join(found)))
    if not os.path.exists(os.path.join(build, "compile_commands.json")):
        print("SKIP (no compile_commands.json)")
        sys.exit(77)
    overlay()
    with ThreadPoolExecutor(2) as pool:
        link(list(pool.map(compile_one, commands())))
    digits = os.path.join(source, "examples/digits/")
    expect("stub: a device that does nothing", "-print-targets")
    expect("the names of a stub's kernels", "--help=emit")
    expect("the only stub", "doctor")
    expect('"stub": ["the only stub"]', "doctor", "--json")
    expect("stub_conv2d", digits + "digits.onnx", "--target=stub", "--emit=stub", "-o", "-")
    expect("1 to 64 threads", digits + "digits.onnx", "--target=stub -max_threads_per_block=65",
           status=2)
    expect("digit", "run", digits + "digits.onnx", "--target=stub", "--inputs", digits + "inputs.npz")
    manifest = os.path.join(work, "stub.yaml")
    with open(manifest, "w") as f:
        f.write("schema: tvm-manifest/1\nhosts: {pc: x86_64-linux-gnu}\ntargets: {gpu: {kind: stub}}\n"
                "pairs: {p: {host: pc, target: gpu}}\n"
                "models: {digits: {source: '%sdigits.onnx', pairs: [p]}}\n" % digits)
    expect("", "check", manifest)
    print("a device takes %d places: %s" % (len(found), ", ".join(found)))


main()
