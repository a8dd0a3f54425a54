#!/usr/bin/env python3
"""Writes networks/ and programs/: small models of all kinds of layers and operators, with the results that PyTorch or NumPy have.

    make_models.py [NAME ..]        those alone
"""
import glob
import importlib
import os
import sys
import traceback

from record import HERE, MODELS, rng_of


def main():
    for path in sorted(glob.glob(os.path.join(HERE, "layers_*.py")) + glob.glob(os.path.join(HERE, "ops_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    for name in sys.argv[1:] or MODELS:
        try:
            MODELS[name](rng_of(name))
        except Exception:  # pylint: disable=broad-except
            print(f"{name}: {traceback.format_exc(limit=-3)}")


main()
