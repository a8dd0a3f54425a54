#!/usr/bin/env python3
"""Writes frontends/tflite/names.def: tools/tflite_names.py (needs the packages ai-edge-litert, flatbuffers and numpy).

The builtin operators of the schema that LiteRT comes with, and the newest version of each that its kernels are registered for: a
model with one operator is opened for each version until none is found.  Run it for a newer LiteRT.
"""
import importlib.metadata
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "frontends", "tflite"))

from make_model import CODES, Model, OpResolverType  # pylint: disable=wrong-import-position

NO_OPERATOR = ["CUSTOM", "PLACEHOLDER_FOR_GREATER_OP_CODES"]
MOST = 40


def has_kernel(name, version):
    m = Model()
    m.op(name, [m.input("x", [1])], m.output("y", [1]), version=version)
    try:
        m.interpreter(OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    except ValueError as e:  # whatever else is wrong with it comes after the kernel was found
        return "Didn't find op for builtin opcode" not in str(e)
    return True


def newest(name):
    """0: there is no kernel."""
    return max([v for v in range(1, MOST) if has_kernel(name, v)], default=0)


def main():
    lines = ["/* TFLITE_NAME(code, name, version): builtin operators, those without a row in ops.def, too, for messages.",
             " * `version` is the newest that LiteRT has a kernel for, 0: it has none.",
             " *",
             f" * Written by tools/tflite_names.py with LiteRT {importlib.metadata.version('ai-edge-litert')}; do not edit. */",
             ""]
    for name, code in sorted(CODES.items(), key=lambda x: x[1]):
        if name not in NO_OPERATOR:
            lines.append(f"TFLITE_NAME({code}, {name}, {newest(name)})")
    with open(os.path.join(ROOT, "frontends", "tflite", "names.def"), "w") as f:
        f.write("\n".join(lines) + "\n")


main()
