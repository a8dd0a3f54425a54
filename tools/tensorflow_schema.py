#!/usr/bin/env python3
"""Writes frontends/tensorflow/schema.def: tools/tensorflow_schema.py (needs the package tensorflow).

Inputs, outputs and attributes of all operators of frontends/tensorflow/ops.def, as TensorFlow registers
them.  Run it when an operator was added, or for a newer TensorFlow.  What it says is looked at before a
commit.
"""
import os
import re

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

ROOM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "frontends", "tensorflow")
MARK = "/* ---- what tools/tensorflow_schema.py writes "


def operands(args):
    return " ".join(a.name + (f"[{a.number_attr or a.type_list_attr}]" if a.number_attr or a.type_list_attr else "")
                    for a in args)


def scalar(v):
    kind = v.WhichOneof("value")
    if kind == "list":
        items = next((list(x) for _, x in v.list.ListFields()), [])
        return ",".join(x.decode() if isinstance(x, bytes) else str(x) for x in items)
    if kind == "s":
        return v.s.decode()
    if kind == "b":
        return str(v.b).lower()
    return str(getattr(v, kind)) if kind in ("i", "f", "type") else ""


def attributes(args):
    return " ".join(f"{a.name}:{a.type}" + (f"={scalar(a.default_value)}" if a.HasField("default_value") else "")
                    for a in args)


def main():
    with open(os.path.join(ROOM, "ops.def")) as f:
        names = sorted(set(re.findall(r"^TF\((\w+),", f.read(), re.M)))
    out = []
    for name in names:
        d = op_def_registry.get(name)
        if d is None:
            raise SystemExit(f"TensorFlow {tf.__version__} has no operator {name}")
        row = (operands(d.input_arg), operands(d.output_arg), attributes(d.attr))
        out.append('SCHEMA(%s, "%s", "%s", "%s")\n' % (name, *row))
    path = os.path.join(ROOM, "schema.def")
    with open(path) as f:
        head = f.read().split(MARK)[0]
    with open(path, "w") as f:
        f.write(head + MARK + "-" * (105 - len(MARK)) + " */\n" + "".join(out))
    print(f"{len(out)} rows; TensorFlow {tf.__version__}")


main()
