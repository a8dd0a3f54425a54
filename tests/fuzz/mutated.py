#!/usr/bin/env python3
"""Models that were damaged: `tvmcc -c -O1` says what is wrong with each, or compiles it.

    mutated.py SERVED [--sanitized SERVED] [--format onnx|tflite|pb|pt2|pt|cfg|keras|h5|json|mlmodel|predict_net.pb] [--count 10000] [--seed 1] [--models DIR ..] [--keep DIR]
    mutated.py --write SEED FILE      the model of that seed

A seed decides the model, how often it is changed and how: fields are dropped, doubled, moved, or taken from elsewhere in the
model; numbers become those that break things; names become other names of the model, so edges lead elsewhere and attributes
have other types; bytes of weights change; files end early.  The bytes are taken apart as any protobuf is, without a schema;
those of .tflite files change as words or bytes, wherever they are, as FlatBuffers lead anywhere.  Of .pt2 archives the JSON
changes, in the same ways, or else bytes of the zip; of .pt archives words of the code, bytes of the pickles, or of the zip;
of .cfg files words, and of .json the tree, with the weights as they were; of .keras archives the JSON, or bytes of the weights; of .h5 files words or bytes.
SERVED is a build's tests/served (served.c), which runs tvmcc's main.  Each may take 5 s of processor time and 1 GiB, must not die
of a signal, and fails with an error message only; the sanitized one has the time and memory that it needs.  What breaks this is kept in --keep (build/mutated).
"""
import argparse
import ast
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
MODELS = ["examples", "build/suite-cases", "tests/models", "tests/graphs"] + [
    "tests/frontends/" + f for f in ("onnx", "tflite", "pytorch", "darknet", "keras", "coreml")]
FOLDERS = {"pb": ["tests/frontends/tensorflow"], "json": ["tests/frontends/mxnet"],
           "predict_net.pb": ["tests/frontends/caffe2"], "relay": ["tests/frontends/tvm"]}  # where else such files are something else
LARGEST = 100_000  # bytes of a model
DEEPEST = 40
FIELDS = {"mlmodel": 5000}  # numbers of fields below this, not below 1000
SECONDS, BYTES = 5, 1 << 30
VARINT, FIXED64, LEN, FIXED32 = 0, 1, 2, 5
NUMBERS = [0, 1, 2, 3, 7, 8, 11, 16, 127, 128, 255, 65535, 1 << 20, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, 1 << 32, 1 << 40,
           1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 2, (1 << 64) - 128]


def varint(data, at):
    value = shift = 0
    while at < len(data) and shift < 70:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value & (1 << 64) - 1, at
    raise ValueError


def put_varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


highest = [1000]  # numbers of fields are below it


def parse(data, depth=0):
    """The fields as lists [number, wire type, value]; the value of bytes that are fields themselves is such a list."""
    fields, at = [], 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if not 0 < number < highest[0]:
            raise ValueError
        if wire == VARINT:
            value, at = varint(data, at)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
            value, at = data[at:at + size], at + size
        elif wire == LEN:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            if len(value) < size:
                raise ValueError
            value = nested(value, depth)
        else:
            raise ValueError
        if at > len(data):
            raise ValueError
        fields.append([number, wire, value])
    return fields


def nested(value, depth):
    """Names look like fields, too: letters only are a name.."""
    if not value or depth == DEEPEST or all(32 <= c < 127 for c in value):
        return value
    try:
        return parse(value, depth + 1)
    except ValueError:
        return value


def unparse(fields):
    out = bytearray()
    for number, wire, value in fields:
        out += put_varint(number << 3 | wire)
        if wire == VARINT:
            out += put_varint(value)
        elif wire == LEN:
            value = unparse(value) if isinstance(value, list) else value
            out += put_varint(len(value)) + value
        else:
            out += value
    return bytes(out)


def messages(fields, found):
    found.append(fields)
    for field in fields:
        if isinstance(field[2], list):
            messages(field[2], found)
    return found


def change_value(rng, field, strings):
    if field[1] == VARINT:
        field[2] = rng.choice(NUMBERS + [field[2] + 1, max(0, field[2] - 1)])
    elif isinstance(field[2], list):
        field[2] = [] if rng.random() < 0.2 else rng.sample(field[2], len(field[2]))
    elif field[1] == LEN and field[2] and rng.random() < 0.3:
        value = bytearray(field[2])
        value[rng.randrange(len(value))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        field[2] = bytes(value)[:rng.choice([len(value), len(value), rng.randrange(len(value) + 1)])]
    elif field[1] == LEN:
        field[2] = rng.choice(strings)
    else:
        field[2] = bytes(rng.choice([0, 127, 128, 255, 192]) for _ in field[2])


def mutate(rng, data):
    tree = parse(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        # The deeper ones are many; each depth has its turn by the kind of the parent.
        every = [m for m in messages(tree, []) if m]
        if not every:
            break
        here = rng.choice(every)
        field = rng.choice(here)
        at = here.index(field)
        kind = rng.randrange(7)
        if kind == 0:
            del here[at]
        elif kind == 1:
            here.insert(rng.randrange(len(here) + 1), parse(unparse([field]))[0])
        elif kind == 2:
            other = rng.choice(here)
            if other[1] == field[1]:
                other[2], field[2] = field[2], other[2]
        elif kind == 3:  # what lies elsewhere in the same kind of field
            same = [f for m in every for f in m if f[:2] == field[:2]]
            field[2] = parse(unparse([rng.choice(same)]))[0][2]
        elif kind == 4:
            field[0] = rng.choice([field[0] + 1, max(1, field[0] - 1), rng.randrange(1, 30)])
        else:
            names = [f[2] for m in every for f in m if f[1] == LEN and isinstance(f[2], bytes) and len(f[2]) < 100]
            change_value(rng, field, names + [b"", b"x" * 300])
    data = unparse(tree)
    return data[:rng.randrange(len(data) + 1)] if rng.random() < 0.03 else data


def mutate_words(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        at = rng.randrange(max(1, len(data) // 4)) * 4
        kind = rng.randrange(5)
        if kind == 0:
            data[at:at + 4] = (rng.choice(NUMBERS) & 0xffffffff).to_bytes(4, "little")
        elif kind == 1:  # a neighbour of what it was
            data[at:at + 4] = (int.from_bytes(data[at:at + 4], "little") + rng.choice([-4, -1, 1, 4]) & 0xffffffff).to_bytes(4, "little")
        elif kind == 2:  # a word from elsewhere
            other = rng.randrange(max(1, len(data) // 4)) * 4
            data[at:at + 4] = data[other:other + 4]
        else:
            data[at + rng.randrange(min(4, len(data) - at))] = rng.choice([0, 1, 2, 3, 7, 127, 128, 255, rng.randrange(256)])
    return bytes(data[:rng.randrange(len(data) + 1)] if rng.random() < 0.03 else data)


def containers(tree, found):
    """Objects and lists of JSON that have something in them."""
    if isinstance(tree, (dict, list)) and tree:
        found.append(tree)
        for x in tree.values() if isinstance(tree, dict) else tree:
            containers(x, found)
    return found


def mutate_json(rng, tree):
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        every = containers(tree, [])
        if not every:
            break
        here = rng.choice(every)
        key = rng.choice(list(here)) if isinstance(here, dict) else rng.randrange(len(here))
        other = rng.choice(every)
        there = rng.choice(list(other.values())) if isinstance(other, dict) else rng.choice(other)
        kind = rng.randrange(6)
        if kind == 0:
            del here[key]
        elif kind == 1 and isinstance(here, list):
            here.insert(rng.randrange(len(here) + 1), here[key])
        elif kind == 2 and isinstance(here, dict):
            here[rng.choice(["as_int", "as_none", "as_tensors", "as_expr", "as_name", "x"])] = here.pop(key)
        elif kind == 3:
            here[key] = json.loads(json.dumps(there))
        elif isinstance(here[key], (int, float)):
            here[key] = rng.choice([v for v in NUMBERS if v < 1 << 63] + [-1, -2, -(1 << 63), here[key] + 1, 0.5, True])
        elif isinstance(here[key], str):
            same = [v for m in every for v in (m.values() if isinstance(m, dict) else m) if isinstance(v, str)]
            here[key] = rng.choice(same + ["", "x" * 300, "Add(" * 40, "Infinity"])
        else:
            here[key] = rng.choice([None, [], {}, 0, "x", [here[key]]])
    return tree


def mutate_archive(rng, data):
    if rng.random() < 0.25:
        return mutate_words(rng, data)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        program = [n for n in names if "/models/" in n]
        chosen = rng.choice(program if program and rng.random() < 0.8 else names)
        for name in names:
            content = old.read(name)
            if name == chosen and name.endswith(".json"):
                content = json.dumps(mutate_json(rng, json.loads(content)))
            elif name == chosen:
                content = content[:rng.randrange(len(content) + 1)]
            new.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return out.getvalue()


def mutate_keras(rng, data):
    """The configuration, or bytes of the weights, or of the zip."""
    if rng.random() < 0.1:
        return mutate_words(rng, data)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        chosen = "config.json" if rng.random() < 0.7 else "model.weights.h5"
        for name in old.namelist():
            content = old.read(name)
            if name == chosen:
                content = json.dumps(mutate_json(rng, json.loads(content))) if name.endswith(".json") else mutate_words(rng, content)
            new.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return out.getvalue()


def mutate_code(rng, text):
    """Words of the code: left out, doubled, or what stands elsewhere."""
    words = re.findall(r'\w+|"[^"\n]*"|\s+|.', text)
    solid = [w for w in words if not w.isspace()]
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at = rng.randrange(len(words))
        kind = rng.randrange(6)
        if kind == 0:
            words[at] = ""
        elif kind == 1:
            words[at] *= 2
        elif kind == 2 and words[at].isdigit():
            words[at] = str(rng.choice(NUMBERS + [-1, 0.5]))
        elif kind == 3:
            lines = "".join(words).split("\n")
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            return "\n".join(lines)
        else:
            words[at] = rng.choice(solid + ["None", "True", "[]", "-1", "{", "while"])
    return "".join(words)


def mutate_module(rng, data):
    if rng.random() < 0.1:
        return mutate_words(rng, data)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        chosen = rng.choice([n for n in names if n.endswith(".py" if rng.random() < 0.7 else ".pkl")] or names)
        for name in names:
            content = old.read(name)
            if name == chosen and name.endswith(".py"):
                content = mutate_code(rng, content.decode())
            elif name == chosen:
                content = bytearray(content)
                for _ in range(rng.choice([1, 1, 2, 4])):
                    at = rng.randrange(len(content))
                    content[at] = rng.choice([rng.randrange(256), content[rng.randrange(len(content))], *b"0()]}abceRbuhqtQ."])
                content = bytes(content[:rng.randrange(len(content) + 1)] if rng.random() < 0.05 else content)
            new.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return out.getvalue()


def mutate_config(rng, data):
    return mutate_words(rng, data) if rng.random() < 0.1 else mutate_code(rng, data.decode()).encode()


def mutate_symbol(rng, data):
    return mutate_words(rng, data) if rng.random() < 0.1 else json.dumps(mutate_json(rng, json.loads(data))).encode()


def shapes(path):
    """What the module at `path` does not say of its inputs, by the values beside it; the weights that lie beside it."""
    beside = {"-symbol.json": "-0000.params", ".cfg": ".weights", ".predict_net.pb": ".init_net.pb"}
    options = [x for k, v in beside.items() if path.endswith(k) for x in ("--weights", path[:-len(k)] + v)]
    if path.endswith(".pt") and os.path.exists(path[:-3] + ".in.npz"):
        with zipfile.ZipFile(path[:-3] + ".in.npz") as z:
            for name in z.namelist():
                array = z.read(name)
                head = ast.literal_eval(array[10:10 + int.from_bytes(array[8:10], "little")].decode())
                kind = {"b": "bool"}.get(head["descr"][1], head["descr"][1] + str(8 * int(head["descr"][2:])))
                options += ["--shape", f"{name[:-4]}:{list(head['shape'])}:{kind}".replace(" ", "")]
    return options


def place_folders(path, work):
    """Variables of a SavedModel and weights of a Core ML program lie beside the file."""
    for name in ("variables", "weights"):
        here, there = os.path.join(work, name), os.path.join(os.path.dirname(os.path.abspath(path)), name)
        if os.path.islink(here):
            os.remove(here)
        if os.path.isdir(there):
            os.symlink(there, here)


def find_models(folders, ending):
    found = []
    for folder in folders:
        for at, dirs, files in os.walk(folder, followlinks=True):
            dirs.sort()
            found += [os.path.join(at, f) for f in sorted(files) if f.endswith(ending) and
                      os.path.getsize(os.path.join(at, f)) <= LARGEST]
    return found


def damaged(models, seed):
    rng = random.Random(seed)
    path = rng.choice(models)
    with open(path, "rb") as f:
        data = f.read()
    try:
        changes = {".tflite": mutate_words, ".pt2": mutate_archive, ".pt": mutate_module, ".cfg": mutate_config,
                   ".keras": mutate_keras, ".h5": mutate_words, ".json": mutate_symbol}
        change = changes.get(os.path.splitext(path)[1], mutate)
        return path, change(rng, data)
    except (ValueError, zipfile.BadZipFile, NotImplementedError, RecursionError):  # a model that is broken as it stands
        return path, data[:rng.randrange(len(data) + 1)]


class Served:
    """A running SERVED (served.c), with limits on time and memory unless it is a sanitized one."""
    def __init__(self, program, work, limited):
        self.log = os.path.join(work, "log")
        self.limited = limited
        self.child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, model, out, options):
        """What is wrong with what it did, or None."""
        limits = [str(SECONDS), str(4 * BYTES)] if self.limited else [str(20 * SECONDS), "0"]
        command = ["-c", "-O1", "-fno-cache", "-mcpu=x86-64-v3", model, "-o", out, *options]
        self.child.stdin.write("\t".join([*limits, self.log, *command]) + "\n")
        self.child.stdin.flush()
        status, seconds, size = self.child.stdout.readline().split()
        status, seconds, size = int(status), float(seconds), int(size)
        with open(self.log, errors="replace") as f:
            text = f.read()
        if status == -signal.SIGXCPU:
            return "too long"
        if status < 0:
            return f"signal {-status} after {seconds:.1f} s"
        if "Sanitizer" in text or "runtime error:" in text or "internal error" in text or status in (70, 125):
            return f"status {status}: " + text.strip()[-2000:]
        if status and "error" not in text:
            return f"status {status} without an error"
        if self.limited and seconds > SECONDS:
            return f"{seconds:.1f} s"
        if self.limited and size > BYTES:
            return f"{size >> 20} MiB"
        return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("served", nargs="?")
    p.add_argument("--sanitized", metavar="SERVED")
    p.add_argument("--format", default="onnx")
    p.add_argument("--count", type=int, default=10000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--models", nargs="*", default=None)
    p.add_argument("--keep", default=os.path.join(ROOT, "build/mutated"))
    p.add_argument("--write", nargs=2, metavar=("SEED", "FILE"))
    a = p.parse_args()
    folders = a.models or [os.path.join(ROOT, m) for m in FOLDERS.get(a.format, MODELS)]
    models = find_models(folders, "." + a.format)
    highest[0] = FIELDS.get(a.format, highest[0])
    if a.write:
        with open(a.write[1], "wb") as f:
            return f.write(damaged(models, int(a.write[0]))[1]) and 0
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        model, out = os.path.join(work, "m." + a.format), os.path.join(work, "m.o")
        servers = [Served(a.served, work, True)] if a.served else []
        servers += [Served(a.sanitized, work, False)] if a.sanitized else []
        for seed in range(a.seed, a.seed + a.count):
            path, data = damaged(models, seed)
            with open(model, "wb") as f:
                f.write(data)
            place_folders(path, work)
            for served in servers:
                wrong = served.run(model, out, shapes(path))
                if wrong:
                    os.makedirs(a.keep, exist_ok=True)
                    with open(os.path.join(a.keep, f"{seed}.{a.format}"), "wb") as f:
                        f.write(data)
                    print(f"FAILED: {seed} of {os.path.relpath(path, ROOT)}: {wrong}", flush=True)
                    failed += 1
                    break
    print(f"{a.count} damaged models of {len(models)}, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
