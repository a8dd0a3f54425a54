#!/usr/bin/env python3
"""Writes what Core ML's layers and operators may have, as coremltools registers them, between the marks of
frontends/coreml/records.def (messages of layers) and frontends/coreml/inputs.def (operators of ML programs).

    coreml_schema.py            needs coremltools; prints which kinds have no row in layers.def and programs.def
"""
import os
import re

from coremltools.converters.mil.mil.ops.registry import SSAOpRegistry
from coremltools.proto import NeuralNetwork_pb2

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "frontends", "coreml")
MARK = "/* ---- what tools/coreml_schema.py writes "
KINDS = {"int32": "int", "int64": "int", "uint32": "int", "uint64": "int", "enum": "int", "bool": "bool", "float": "float",
         "double": "double", "string": "text", "bytes": "bytes"}


def snake(name):
    name = name.replace("PReLU", "Prelu").replace("ReLU", "Relu")
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def field(f):
    types = {getattr(f, k): k[5:].lower() for k in dir(f) if k.startswith("TYPE_") and k != "TYPE_GROUP"}
    kind = f.message_type.name if f.message_type else KINDS[types[f.type]]
    repeated = f.is_repeated if hasattr(f, "is_repeated") else f.label == f.LABEL_REPEATED
    return f"{f.number}:{snake(f.name)}:{kind}" + ("[]" if repeated else "")


def records():
    layer = NeuralNetwork_pb2.NeuralNetworkLayer.DESCRIPTOR
    todo = [f.message_type for f in layer.oneofs_by_name["layer"].fields]
    seen = {}
    while todo:
        m = todo.pop(0)
        if m.name in seen or m.name == "NeuralNetwork":
            continue
        seen[m.name] = f'RECORD({m.name}, "{" ".join(field(f) for f in m.fields)}")\n'
        todo += [f.message_type for f in m.fields if f.message_type]
    return [seen[name] for name in sorted(seen)]


# What an operator has without registering it: blocks, and who takes them.
OWN = {"cond": "pred", "while_loop": "loop_vars.."}
LISTS = {"values", "ref_tensors", "loop_vars"}


def inputs():
    yield 'INPUTS(write_state, "input data")\n'  # what coreml_update_state is written as
    for op, versions in sorted(SSAOpRegistry.core_ops.items()):
        if op.startswith("_"):
            continue
        names = {}
        for cls in versions.values():
            for name, t in cls.input_spec.input_types.items():
                if not name.startswith("_"):
                    always = all(name in c.input_spec.input_types for c in versions.values())
                    names[name] = names.get(name, False) or t.optional or not always
        text = " ".join(n + ("?" if optional else ".." if n in LISTS else "") for n, optional in names.items())
        yield f'INPUTS({op}, "{OWN.get(op, text)}")\n'


def write(name, rows):
    path = os.path.join(HERE, name)
    with open(path, encoding="utf-8") as f:
        head = f.read().split(MARK)[0]
    with open(path, "w", encoding="utf-8") as f:
        f.write(head + MARK + "-" * (98 - len(MARK)) + " */\n" + "".join(rows))


def missing(table, macro, names):
    with open(os.path.join(HERE, table), encoding="utf-8") as f:
        rows = set(re.findall(macro + r"\((?:\d+, *)?(\w+)", f.read()))
    print(f"{table}: {len(rows)} rows; without one: {' '.join(n for n in names if n not in rows)}")


def main():
    write("records.def", records())
    ops = list(inputs())
    write("inputs.def", ops)
    layer = NeuralNetwork_pb2.NeuralNetworkLayer.DESCRIPTOR
    missing("layers.def", "LAYER", [f.name for f in layer.oneofs_by_name["layer"].fields])
    missing("programs.def", "PROGRAM_OP", [re.match(r"INPUTS\((\w+)", op)[1] for op in ops])


main()
