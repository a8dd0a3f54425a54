#!/usr/bin/env python3
"""Writes models/: small graphs of all operators with MXNet's own results (frontends.mxnet.run).

    make_ops.py FOLDER [NAME..]      needs mxnet 1.9.1, and numpy 1.23

LSTM needs MXNET_MKLDNN_ENABLED=1, all others are recorded without it.
"""
from record import main
import ops_cells  # noqa: F401
import ops_nn  # noqa: F401
import ops_numpy  # noqa: F401

main()
