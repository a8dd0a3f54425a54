"""A graph that grows node by node: Graph(seed) and what the operators' functions (ops_*.py) ask of it.

Each node is run by onnxruntime alone as soon as it is added, so its outputs' types, shapes and values
are known and every failing graph can be cut to the node that is at fault.  A node may take what earlier
nodes gave, as far as that is exact: then a difference is of one operator, not of rounding that grew.

How exactly an output is compared is of its operator:

    EXACT   the same number; all NaN are one, and so are the zeros
    ulp(n)  n steps of its type, and an absolute error where onnxruntime's own polynomials have one
    SUM     so many roundings of the sum of the terms' magnitudes, which is the operator itself on the
            magnitudes of its inputs: what cancels may differ by that, in any order of summing
    near(r) r times the largest finite value
    STEP    quantized: one step, since what lies between two may round to either
"""
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper as nh

ort.set_default_logger_severity(4)

EXACT, SUM, STEP = ("exact",), ("sum",), ("step",)
FLOATS = (np.float32, np.float64, np.float16)
SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
INTS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTS
ALL = NUMBERS + (np.bool_,)
SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 33)
LIMIT = 6000  # elements of a tensor


def ulp(n, floor=0.0):
    return ("ulp", n, floor)


def near(r):
    return ("near", r)


class Refused(Exception):
    """onnxruntime refuses the node: `invalid` where it says that the node is wrong."""

    def __init__(self, text, invalid):
        super().__init__(text)
        self.invalid = invalid


class Unfit(Exception):
    """The drawn node cannot be: draw again."""


def is_float(t):
    return np.issubdtype(t, np.floating)


class Tensor:
    def __init__(self, value, node=None, tol=EXACT, bound=None, fixed=False):
        self.value, self.node, self.tol, self.bound, self.fixed = value, node, tol, bound, fixed


class Made:
    """A node, or some that only make sense together: `op` is what it is about.  `oracle` are nodes and their opset that
    say the same, for onnxruntime, which lacks that form."""

    def __init__(self, op, ins, outs, protos, domain="", attrs=None, oracle=None):
        self.op, self.ins, self.outs, self.protos, self.domain, self.attrs = op, ins, outs, protos, domain, attrs or {}
        self.oracle = oracle


class Graph:
    def __init__(self, seed, opset=None):
        self.rng = np.random.default_rng(seed)
        self.opset = opset or 17
        self.tensors, self.nodes, self.count = {}, [], 0
        self.refused = None  # the last node, where onnxruntime calls it wrong
        self.wild = self.chance(50)  # infinities, NaN and the like among the values
        self.given, self.sizes = (), {}  # constants that only the run has; sizes that are names for it

    # ---- chance
    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def chance(self, percent):
        return bool(self.rng.integers(100) < percent)

    def upto(self, n):
        return int(self.rng.integers(n + 1))

    def between(self, lo, hi):
        return int(self.rng.integers(lo, hi + 1))

    # ---- shapes
    def dim(self):
        return 0 if self.chance(3) else self.pick(*SIZES)

    def shape(self, lo=0, hi=4):
        while True:
            rank = self.pick(*[r for r in (0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5) if lo <= r <= hi])
            s = tuple(self.dim() for _ in range(rank))
            if np.prod(s, dtype=np.int64) <= LIMIT:
                return s

    def cut(self, shape):
        """A shape that broadcasts to this one."""
        kind = self.upto(4)
        if kind == 0:
            return ()
        if kind == 1:
            return tuple(shape)
        s = [1 if self.chance(40) and d else d for d in shape]
        return tuple(s[self.upto(len(s)):] if kind == 2 else s)

    def axis(self, rank):
        """Of a tensor; now and then none of it."""
        if rank == 0 or self.chance(1):
            return self.pick(rank, -rank - 1) if self.chance(50) else self.pick(0, -1)
        return self.between(-rank, rank - 1)

    def axes(self, rank, most=None):
        n = self.upto(min(rank, most or rank))
        at = [int(a) for a in self.rng.permutation(rank)[:n]]
        at = [a - rank if self.chance(30) else a for a in at]
        if at and self.chance(1):
            at.append(self.pick(at[0], at[0] + rank if at[0] < 0 else at[0] - rank, rank))
        return at

    # ---- values
    def values(self, dtype, shape, kind="any"):
        n = int(np.prod(shape, dtype=np.int64))
        dtype = np.dtype(dtype)
        r = self.rng
        if dtype == np.bool_:
            v = r.integers(0, 2, n).astype(bool)
        elif not is_float(dtype):
            info = np.iinfo(dtype)
            lo, hi = max(info.min, -9), min(info.max, 9)
            if kind == "positive":
                lo = 1
            v = r.integers(lo, hi, n, endpoint=True).astype(dtype)
            if kind == "any" and self.wild:
                ends = np.array([info.min, info.max, info.min + 1, info.max - 1, info.max // 2 + 1, 0], dtype)
                v = np.where(r.random(n) < 0.3, r.choice(ends, n), v)
            if kind == "any" and self.chance(20):
                v = r.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
            if kind == "nonzero":
                v[v == 0] = 1
        else:
            how = self.pick("normal", "wide", "ties", "halves", "whole") if kind != "mild" else "normal"
            v = {"normal": lambda: r.standard_normal(n), "wide": lambda: r.standard_normal(n) * 30,
                 "ties": lambda: r.integers(-1, 3, n), "halves": lambda: r.integers(-9, 9, n) / 2,
                 "whole": lambda: r.integers(-20, 20, n)}[how]().astype(dtype)
            if kind == "any" and self.wild:
                f = np.finfo(dtype)
                odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, f.max, f.min, f.tiny, -f.tiny, f.tiny / 8, f.eps, 1 + f.eps,
                       0.5, -0.5, 1.5, 2.5, -2.5, 88.5, -103.0, 1e-3, 3e4, -3e4]
                if self.chance(30):
                    odd = odd[:3] + [1.0, 0.0]
                with np.errstate(all="ignore"):
                    odd = np.array(odd).astype(dtype)
                v = np.where(r.random(n) < self.pick(0.05, 0.3, 0.9), r.choice(odd, n), v)
            if kind == "infinite" and self.wild:
                v = np.where(r.random(n) < self.pick(0.05, 0.5), r.choice(np.array(
                    [np.inf, -np.inf, np.nan, 0], dtype), n), v)
            if kind == "positive":
                v = np.abs(v) + dtype.type(0.1)
            if kind == "nonzero":
                v = np.where(v == 0, dtype.type(1), v)
        return np.asarray(v, dtype).reshape(shape)

    # ---- tensors
    def name(self):
        self.count += 1
        return f"t{self.count}"

    def hold(self, value, fixed):
        n = self.name()
        self.tensors[n] = Tensor(np.asarray(value), fixed=fixed)
        return n

    def const(self, value, dtype=None):
        """What has to be known when the model is compiled."""
        return self.hold(np.array(value, dtype), True)

    def ints(self, *values):
        return self.const(values, np.int64)

    def new(self, dtype, shape, kind="any"):
        """An input of the model, or a constant."""
        return self.hold(self.values(dtype, shape, kind), self.chance(25))

    def weight(self, dtype, shape, kind="mild"):
        return self.hold(self.values(dtype, shape, kind), self.chance(70))

    def take(self, types=FLOATS, lo=0, hi=4, kind="any", shape=None):
        """A tensor that an earlier node gave, if one fits, or a new one."""
        old = [n for n, t in self.tensors.items() if t.node is not None and t.tol == EXACT and
               t.value.dtype in [np.dtype(d) for d in types] and
               (t.value.shape == shape if shape is not None else lo <= t.value.ndim <= hi)]
        if old and kind == "any" and self.chance(70):
            return self.pick(*old)
        return self.new(self.pick(types[0], *types) if len(types) > 1 else types[0],
                        self.shape(lo, hi) if shape is None else shape, kind)

    def value(self, name):
        return self.tensors[name].value

    def dims(self, name):
        return self.tensors[name].value.shape

    def dtype(self, name):
        return np.dtype(self.tensors[name].value.dtype.name).type  # one name for each

    # ---- nodes
    def emit(self, op, ins, tol=EXACT, outs=1, domain="", oracle=None, **attrs):
        """`oracle` gives, of the node's inputs and outputs, its own nodes and their opset."""
        names = [self.name() if o else "" for o in (outs if isinstance(outs, list) else [1] * outs)]
        ins = [i or "" for i in ins]
        return self.add(Made(op, ins, names, [h.make_node(op, ins, names, domain=domain, **attrs)], domain, attrs,
                             oracle and oracle(ins, names)), tol)

    def snippet(self, op, protos, ins, outs, tol=EXACT):
        """Several nodes, of which `outs` are looked at; names s0, s1 .. inside it are made its own."""
        own = {o: f"{outs[0]}_{o}" for p in protos for o in p.output if o not in outs}
        for p in protos:
            p.input[:] = [own.get(i, i) for i in p.input]
            p.output[:] = [own.get(o, o) for o in p.output]
        return self.add(Made(op, list(dict.fromkeys(ins)), outs, protos), tol)

    def add(self, node, tol):
        feeds = {i: self.value(i) for i in node.ins if i}
        try:
            got = run(self.single(node), feeds)
        except Refused as e:
            self.nodes.append(node)
            self.refused = str(e)
            raise
        bound = None
        if tol == SUM:
            with np.errstate(all="ignore"):
                mags = {k: np.asarray(np.abs(v)) if is_float(v.dtype) else v for k, v in feeds.items()}
                try:
                    bound = run(self.single(node, True), mags)
                except Refused:
                    bound = got
        self.nodes.append(node)
        names = node.outs
        wanted = [n for n in names if n]
        for i, (n, v) in enumerate(zip(wanted, got)):
            if isinstance(v, np.ndarray):
                t = tol if is_float(v.dtype) or tol == STEP else EXACT
                if tol == STEP and is_float(v.dtype):
                    t = near(1e-3)
                self.tensors[n] = Tensor(v, node, t, bound[i] if bound else None)
        return names[0] if len(names) == 1 else names

    def single(self, node, open_=False):
        protos, opset = node.oracle or (node.protos, self.opset)
        same = Made(node.op, node.ins, node.outs, protos, node.domain)
        return self.model([same], [n for n in node.outs if n], typed=False, open_=open_, opset=opset)

    def open(self):
        """Some of what is known when compiling becomes known to the run alone: constants that decide shapes, axes and
        counts, or a size of inputs, N."""
        fixed = [n for n, t in self.tensors.items() if t.fixed and t.value.ndim < 2 and t.value.dtype in (np.int64, np.int32, bool)]
        inputs = [n for n, t in self.tensors.items() if not t.fixed and t.node is None]
        sizes = sorted({d for n in inputs for d in self.dims(n) if d})
        if self.chance(50) and fixed:
            self.given = [n for n in fixed if self.chance(60)]
        elif sizes:
            d = self.pick(*sizes)
            self.sizes = {d: "N"}
            self.bounds = f"{self.pick(1, 1, d)}..{d + self.pick(0, 1, 5)}"

    def flags(self, model):
        """What the driver has to be told of the model's dimensions."""
        named = any(d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim)
        return [f"--dim=N={self.bounds}"] if named else []

    def model(self, nodes, outs, typed=True, open_=False, opset=None):
        """open_: floats that are constants become inputs."""
        known = lambda n: self.tensors[n].fixed and not (open_ and is_float(self.dtype(n))) and not (typed and n in self.given)
        made = {o for n in nodes for o in n.outs}
        used = list(dict.fromkeys(i for n in nodes for i in n.ins if i and i not in made))
        named = lambda n: [self.sizes.get(d, d) if typed and not self.tensors[n].fixed else d for d in self.dims(n)]
        info = lambda n: h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(self.value(n).dtype), named(n))
        inits = [nh.from_array(self.value(n), n) for n in used if known(n)]
        ins = [info(n) for n in used if not known(n)]
        outs = [info(o) if typed and o in self.tensors and not self.sizes else onnx.ValueInfoProto(name=o) for o in outs]
        domains = {n.domain for n in nodes if n.domain}
        g = h.make_graph([p for n in nodes for p in n.protos], "g", ins, outs, inits)
        return h.make_model(g, ir_version=10 if self.opset < 26 else 13, opset_imports=[
            h.make_opsetid("", opset or self.opset)] + [h.make_opsetid(d, 1) for d in sorted(domains)])

    def feeds(self, model):
        return {i.name: self.value(i.name) for i in model.graph.input}


# What onnxruntime has not, or the standard only from a later opset on: nothing to compare with.
LACKING = ("NOT_IMPLEMENTED", "NotImplemented", "under development", "Type Error: Type", "PrecisionFreeCast", "is deprecated",
           "ParseData type mismatch", "is not supported", "upsamplebase.h", "Dilation not supported",
           "Invalid num_outputs", "window_functions.cc")


def run(model, feeds):
    """What onnxruntime computes, as the graph says: its own rewrites do not round alike."""
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.intra_op_num_threads = 1
    o.log_severity_level = 4
    try:
        s = ort.InferenceSession(model.SerializeToString(), o, providers=["CPUExecutionProvider"])
        return s.run(None, {i.name: feeds[i.name] for i in s.get_inputs()})
    except Exception as e:
        text = str(e)
        raise Refused(text, not any(t in text for t in LACKING)) from None
