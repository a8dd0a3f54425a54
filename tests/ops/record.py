"""Records tests/ops/<operator>.case: what each operator gives, by numpy and onnxruntime.

    python3 tests/ops/record.py            # needs numpy, onnx, onnxruntime; writes beside itself

A case file holds one or more cases, separated by lines of dashes:

    fn @main(%0: Tensor[(2, 3), f32], %1: Tensor[(3), f32]) { add(%0, %1) }
    in rand -2 2 1              an operand: number i is lo + (hi - lo) * u(i, seed), see `rand`
    in vals 1 2 3               .. or as listed
    out 0.5 1.25 ..             each result, flattened; nan, inf and -inf are words
    tol 1e-05                   relative and absolute; exact where it is absent

record_nn.py and record_tensor.py have the cases, recording.py what they are made with.

tests/unit/test_ops.c runs them through the interpreter and compares.  The expected numbers owe
nothing to this project: keep it so.
"""
import os
import sys

import numpy as np
import onnxruntime as ort

from record_nn import attention, attention_by_state, convolution, lstm, normalization, pooling, products, quantized, strassen, winograd
from record_tensor import elementwise, moving, reductions, resize, trees, vision
from recording import CASES


def main():
    for family in (elementwise, normalization, convolution, winograd, pooling, products, strassen, attention, attention_by_state, lstm, moving, reductions, resize, vision, trees, quantized):
        family()
    here = os.path.dirname(os.path.abspath(__file__))
    for name, cases in CASES.items():
        with open(os.path.join(here, name + ".case"), "w") as f:
            f.write(f"# {name}; written by record.py with numpy {np.__version__}, onnxruntime {ort.__version__}\n")
            f.write("----\n".join(cases))
    print(f"{len(CASES)} operators, {sum(map(len, CASES.values()))} cases", file=sys.stderr)


if __name__ == "__main__":
    main()
