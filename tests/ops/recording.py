"""What recording a case takes: operands, numbers as text, one node of onnxruntime (record.py)."""
import numpy as np
import onnxruntime as ort
from onnx import helper

DT = {"f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8, "i32": np.int32, "i64": np.int64,
      "u32": np.uint32, "i16": np.int16, "u16": np.uint16, "bool": np.bool_, "f16": np.float16}
CASES = {}  # file name -> list of texts


def rand(shape, dtype, lo, hi, seed):
    """The formula of `in rand`; test_ops.c has the same."""
    n = int(np.prod(shape))
    x = np.arange(n, dtype=np.uint64) + np.uint64(seed) * np.uint64(1000003)
    x = (x * np.uint64(2654435761) + np.uint64(40503)) & np.uint64(0xFFFFFFFF)
    x = x ^ (x >> np.uint64(15))
    x = (x * np.uint64(2246822519)) & np.uint64(0xFFFFFFFF)
    x = x ^ (x >> np.uint64(13))
    u = (x >> np.uint64(8)).astype(np.float64) / 16777216.0
    v = lo + (hi - lo) * u
    if not np.issubdtype(DT[dtype], np.floating):
        v = np.floor(v)
    return v.astype(DT[dtype]).reshape(shape)


class In:
    def __init__(self, dtype, *shape, lo=-2.0, hi=2.0, vals=None):
        self.dtype, self.shape, self.lo, self.hi, self.vals = dtype, shape, lo, hi, vals

    def make(self, seed):
        if self.vals is not None:
            a = np.array(self.vals, DT[self.dtype]).reshape(self.shape)
            return a, "in vals " + " ".join(num(v) for v in a.flatten())
        a = rand(self.shape, self.dtype, self.lo, self.hi, seed)
        return a, f"in rand {self.lo:g} {self.hi:g} {seed}"

    def type(self):
        return f"Tensor[({', '.join(map(str, self.shape))}{',' if len(self.shape) == 1 else ''}), {self.dtype}]"


def num(v):
    if isinstance(v, (np.floating, float)):
        if np.isnan(v):
            return "nan"
        if np.isinf(v):
            return "inf" if v > 0 else "-inf"
        return "%.9g" % v if not isinstance(v, np.float64) else "%.17g" % v
    return str(int(v))


def case(name, call, ins, fn, tol=None):
    """`call` is Relay text over %0, %1 ..; `fn` of the arrays gives the expected array or a tuple of them."""
    args, lines = [], []
    for i, x in enumerate(ins):
        a, text = x.make(i + 1 + 10 * len(CASES.get(name, [])))
        args.append(a)
        lines.append(text)
    with np.errstate(all="ignore"):
        want = fn(*args)
    want = want if isinstance(want, (tuple, list)) else (want,)
    params = ", ".join(f"%{chr(97 + i)}: {x.type()}" for i, x in enumerate(ins))
    body = call
    for i in range(len(ins)):
        body = body.replace(f"%{i}", f"%{chr(97 + i)}")
    out = [f"fn @main({params}) {{ {body} }}"] + lines
    for w in want:
        out.append(("out " + " ".join(num(v) for v in np.asarray(w).flatten())).rstrip())
    if tol:
        out.append(f"tol {tol:g}")
    CASES.setdefault(name, []).append("\n".join(out) + "\n")


def run_ort(op, inputs, nout=1, opset=18, **attrs):
    """One ONNX node; None is an input that is left out."""
    np2t = {np.dtype(v): helper.np_dtype_to_tensor_dtype(np.dtype(v)) for v in DT.values()}
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    outs = [f"y{i}" for i in range(nout)]
    node = helper.make_node(op, names, outs, **attrs)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(n, np2t[x.dtype], x.shape) for n, x in zip(names, inputs) if n],
        [helper.make_empty_tensor_value_info(o) for o in outs])
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    so = ort.SessionOptions()
    so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    so.log_severity_level = 3
    s = ort.InferenceSession(m.SerializeToString(), so, providers=["CPUExecutionProvider"])
    r = s.run(None, {n: x for n, x in zip(names, inputs) if n})
    return r[0] if nout == 1 else tuple(r)


F = lambda *s, lo=-2.0, hi=2.0: In("f32", *s, lo=lo, hi=hi)
V = lambda dtype, *vals: In(dtype, len(vals), vals=vals)
NAN, INF = float("nan"), float("inf")
