#!/bin/sh
# ONNX's conformance suite, compiled: suite.py with the package and its cases, which are made in build/ once.
#
#     suite.sh TVMCC [OPTION]..     options of suite.py
#
# Skipped, saying so, where the package cannot be had from PyPI.
tvmcc=$(realpath "$1") || exit 2
shift
cd "$(dirname "$0")/../.." || exit 2
. scripts/lib/python.sh

need_python tests/suite/requirements.txt || { echo "SKIP (no Python with onnx: build/python.log)"; exit 77; }
"$PYTHON" -W ignore tests/suite/cases.py build/suite-cases &&
    exec "$PYTHON" tests/suite/suite.py "$@" "$tvmcc" build/suite-cases tests/suite/expected.txt
