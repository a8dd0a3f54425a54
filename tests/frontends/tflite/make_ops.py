#!/usr/bin/env python3
"""Writes models/: small models of every operator family, with the results of LiteRT's reference kernels.

    make_ops.py [NAME ..]        those alone

run_* compute in floats or whole numbers, step_* in quantized integers, which may be one step off, words_* in integers that may not.  A model may hold many operators
of one input.  The families are in ops_*.py.
"""
import glob
import importlib
import os
import sys

from cases import MODELS, rng_of
from make_model import HERE


def main():
    for path in sorted(glob.glob(os.path.join(HERE, "ops_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    for name in sys.argv[1:] or MODELS:
        m, *feeds = MODELS[name](rng_of(name))
        try:
            m.record(name, *feeds)
        except Exception as e:  # pylint: disable=broad-except
            print(f"{name}: {e}")


main()
