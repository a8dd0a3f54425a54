#!/usr/bin/env python3
"""Writes frontends/onnx/schema.def: tools/onnx_schema.py (needs the packages onnx and onnxruntime).

What each version of an operator may have, for all operators and versions of frontends/onnx/ops.def:
ONNX's own as the package onnx knows them, those of com.microsoft as onnxruntime does.  Run it when an
operator was added, or for a newer opset.  What it says is looked at before a commit.
"""
import os
import re

import numpy as np
import onnx
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

ROOM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "frontends", "onnx")
MARK = "/* ---- what tools/onnx_schema.py writes "


def rows():
    """Of ops.def: (operator, domain) to its versions, as pairs of first and last; in order."""
    ops = {}
    with open(os.path.join(ROOM, "ops.def")) as f:
        for name, domain, lo, hi in re.findall(r'^ONNX\((\w+),\s*"([^"]*)",\s*(\d+),\s*(\w+),', f.read(), re.M):
            ops.setdefault((name, domain), []).append((int(lo), 10**6 if hi == "LAST" else int(hi)))
    return ops


def operands(formal, least):
    """"X W B?": `?` may be left out, `*` is any number of them, `+` at least one."""
    ends = {"Single": "", "Optional": "?", "Variadic": "+" if least >= len(formal) else "*"}
    return " ".join(p.name + ends[str(p.option).split(".")[-1].split(":")[0]] for p in formal)


def default(a):
    """`=0`: what it is where it is not given, if that is one number or word."""
    p = a.default_value if hasattr(a, "default_value") else onnx.AttributeProto.FromString(a._default_value)
    if p.type == p.STRING:
        return f"={p.s.decode()}"
    return f"={p.i}" if p.type == p.INT else "=" + str(np.float32(p.f)) if p.type == p.FLOAT else ""


def attributes(schema):
    """"axis:int=0 k:int!": `!` must be given."""
    kind = lambda a: re.sub(r".*\.|:.*|>", "", str(a.type)).lower()
    # What was required of early writers means nothing to a reader: it may be missing.
    need = lambda a: "!" if a.required and a.name != "consumed_inputs" else ""
    return " ".join(f"{a.name}:{kind(a)}{default(a)}{need(a)}"
                    for a in sorted(schema.attributes.values(), key=lambda a: a.name))


def main():
    known = {}
    for s in list(get_all_operator_schema()) + list(onnx.defs.get_all_schemas_with_history()):
        known.setdefault((s.name, s.domain), {})[s.since_version] = s
    # ONNX Runtime takes it in its own domain, too, though no schema says so.
    known["LayerNormalization", "com.microsoft"] = {1: known["LayerNormalization", ""][17]}
    out = []
    for op, ranges in rows().items():
        last = None
        for since in sorted(known[op]):
            s = known[op][since]
            later = [v for v in known[op] if v > since]
            # The version holds until the next; is any of it in a range of ours?
            if not any(lo <= (min(later) - 1 if later else 10**6) and since <= hi for lo, hi in ranges):
                continue
            row = (operands(s.inputs, s.min_input), operands(s.outputs, s.min_output), attributes(s))
            if row != last:
                out.append('SCHEMA(%s, "%s", %d, "%s", "%s", "%s")\n' % (*op, since, *row))
            last = row
    path = os.path.join(ROOM, "schema.def")
    with open(path) as f:
        head = f.read().split(MARK)[0]
    with open(path, "w") as f:
        f.write(head + MARK + "-" * (105 - len(MARK)) + " */\n" + f"ONNX_NEWEST_IR({onnx.IR_VERSION})\n")
        for domain in sorted({domain for _, domain in rows()}):
            f.write(f'ONNX_NEWEST("{domain}", {max(v for op in known if op[1] == domain for v in known[op])})\n')
        f.write("".join(out))
    print(f"{len(out)} rows; onnx {onnx.__version__} knows opset {onnx.defs.onnx_opset_version()}, "
          f"IR version {onnx.IR_VERSION}")


if __name__ == "__main__":
    main()
