#!/usr/bin/env python3
"""Writes models/: small graphs of every operator family, with TensorFlow's results (needs the package tensorflow).

    make_ops.py [NAME ..]        those alone

A graph holds many operators; each output is called after its operator.  The families are in ops_*.py.
"""
import glob
import importlib
import os
import sys

from record import HERE, MODELS, Model


def main():
    for path in sorted(glob.glob(os.path.join(HERE, "ops_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    for name in sys.argv[1:] or MODELS:
        m = Model(name)
        try:
            with m.graph.as_default():
                MODELS[name](m)
            m.record(os.path.join(HERE, "models"), text=name.startswith("text_"))
        except Exception as e:  # pylint: disable=broad-except
            print(f"{name}: {e}")


main()
