"""A writer of small .tflite models, and their results by LiteRT's reference kernels.

Needs the packages ai-edge-litert, flatbuffers and numpy; the models and results are kept in the repository.
"""
import os

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as S
from ai_edge_litert.interpreter import Interpreter, OpResolverType

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {"float32": 0, "float16": 1, "int32": 2, "uint8": 3, "int64": 4, "string": 5, "bool": 6, "int16": 7, "complex64": 8, "int8": 9, "float64": 10,
         "uint64": 12, "resource": 13, "uint32": 15, "uint16": 16}
CODES = {name: code for name, code in vars(S.BuiltinOperator).items() if isinstance(code, int)}
OPTIONS = {name: code for name, code in vars(S.BuiltinOptions).items() if isinstance(code, int)}
OPTIONS_2 = {name: code for name, code in vars(S.BuiltinOptions2).items() if isinstance(code, int)}


def packed_strings(values):
    """Their number, where each begins and the last one ends, their bytes."""
    each = [s.encode() for s in values.ravel()]
    ends = 4 * (len(each) + 2) + np.cumsum([0] + [len(s) for s in each])
    return np.int32([len(each), *ends]).tobytes() + b"".join(each)


class Graph:
    def __init__(self, model, name="main"):
        self.model, self.graph = model, S.SubGraphT()
        self.graph.tensors, self.graph.operators, self.graph.inputs, self.graph.outputs = [], [], [], []
        self.graph.name = name
        model.model_t.subgraphs.append(self.graph)
        self.number = len(model.model_t.subgraphs) - 1

    def tensor(self, name, shape, dtype="float32", data=None, scale=None, zero=0, axis=0, signature=None, variable=False):
        """Its number; scale: a number or one for each channel along the axis."""
        t = S.TensorT()
        t.name, t.shape, t.type, t.isVariable = name, list(shape), TYPES[dtype], variable
        t.hasRank = True
        if signature:
            t.shapeSignature = signature
        if data is not None:
            b = S.BufferT()
            if np.size(data):  # a tensor without cells has a buffer without bytes
                b.data = np.frombuffer(packed_strings(data) if dtype == "string" else np.ascontiguousarray(data).tobytes(), np.uint8)
            self.model.model_t.buffers.append(b)
            t.buffer = len(self.model.model_t.buffers) - 1
        if scale is not None:
            q = S.QuantizationParametersT()
            q.scale = np.atleast_1d(np.asarray(scale, np.float32))
            q.zeroPoint = np.broadcast_to(np.asarray(zero, np.int64), q.scale.shape)
            q.quantizedDimension = axis
            t.quantization = q
        self.graph.tensors.append(t)
        return len(self.graph.tensors) - 1

    def const(self, value, name=None, **how):
        value = np.asarray(value)
        dtype = "string" if value.dtype.kind == "U" else value.dtype.name
        return self.tensor(name or f"c{len(self.graph.tensors)}", value.shape, dtype, value, **how)

    def input(self, *args, **how):
        i = self.tensor(*args, **how)
        self.graph.inputs.append(i)
        return i

    def output(self, *args, **how):
        i = self.tensor(*args, **how)
        self.graph.outputs.append(i)
        return i

    def op(self, op, inputs, outputs, options=None, version=1, custom=None, **fields):
        """options: name of the table; fields: its members as the object API calls them."""
        o = S.OperatorT()
        o.opcodeIndex = self.model.code(op, version)
        o.inputs, o.outputs = list(inputs), list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        if options:
            table = getattr(S, options + "T")()
            if options in OPTIONS:
                o.builtinOptionsType, o.builtinOptions = OPTIONS[options], table
            else:
                o.builtinOptions2Type, o.builtinOptions2 = OPTIONS_2[options], table
            for key, value in fields.items():
                assert hasattr(table, key), key
                setattr(table, key, value)
        if custom is not None:
            o.customOptions = np.frombuffer(custom, np.uint8)
        self.graph.operators.append(o)


class Model(Graph):
    def __init__(self):
        self.model_t = S.ModelT()
        self.model = self
        m = self.model_t
        m.version, m.operatorCodes, m.subgraphs, m.buffers = 3, [], [], [S.BufferT()]
        m.signatureDefs = []
        self.codes = {}
        self.results = None  # instead of the interpreter's
        self.optimized = False  # not by reference kernels
        self.delegated = False  # to XNNPACK, which alone has some operators
        self.states = {}  # outputs by the variables that they are assigned to
        self.kept = []  # tensors that operators keep from run to run
        self.outside = False  # constants and custom options behind the FlatBuffer
        Graph.__init__(self, self)

    def code(self, name, version):
        key = name, version
        if key not in self.codes:
            c = S.OperatorCodeT()
            if name in CODES:
                c.builtinCode = CODES[name]
                c.deprecatedBuiltinCode = min(CODES[name], 127)
            else:
                c.builtinCode = c.deprecatedBuiltinCode = CODES["CUSTOM"]
                c.customCode = name
            c.version = version
            self.codes[key] = len(self.codes)
            self.model_t.operatorCodes.append(c)
        return self.codes[key]

    def signature(self, inputs, outputs, graph=0, key="serving_default"):
        s = S.SignatureDefT()
        s.signatureKey, s.subgraphIndex, s.inputs, s.outputs = key, graph, [], []
        for names, to in ((inputs, s.inputs), (outputs, s.outputs)):
            for name, at in names.items():
                m = S.TensorMapT()
                m.name, m.tensorIndex = name, at
                to.append(m)
        self.model_t.signatureDefs.append(s)

    def packed(self):
        b = flatbuffers.Builder(4096)
        b.Finish(self.model_t.Pack(b), b"TFL3")
        return bytes(b.Output())

    def move_outside(self):
        """Takes data out of the tables, as converters do beyond 2 GB; all of it, with where each begins behind them."""
        data, moved = b"", []
        for b in self.model_t.buffers:
            if b.data is not None:
                moved.append((b, "offset", "size", b.data.tobytes()))
                b.data = None
        for o in (o for g in self.model_t.subgraphs for o in g.operators):
            if o.customOptions is not None:
                moved.append((o, "largeCustomOptionsOffset", "largeCustomOptionsSize", o.customOptions.tobytes()))
                o.customOptions = None
        for t, offset, size, v in moved:
            data += bytes(-len(data) % 16)
            setattr(t, offset, len(data) + 2**20)
            setattr(t, size, len(v))
            data += v
        begin = -(-len(self.packed()) // 16) * 16
        for t, offset, _, _ in moved:
            setattr(t, offset, getattr(t, offset) - 2**20 + begin)
        return begin, data

    def bytes(self):
        begin, data = self.move_outside() if self.outside is True else self.outside or (0, b"")
        self.outside = (begin, data) if data else False
        return self.packed().ljust(begin, b"\0") + data

    def save(self, path):
        with open(path, "wb") as f:
            f.write(self.bytes())

    def interpreter(self, resolver):
        return Interpreter(model_content=self.bytes(), experimental_op_resolver_type=resolver)

    def run(self, feeds):
        """The results of the first run, or of the first and the second if there are states, with what is in them then."""
        try:
            it = self.interpreter(OpResolverType.AUTO if self.delegated else OpResolverType.BUILTIN_REF if not self.optimized
                                  else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        except ValueError:  # some operators have no reference kernel of their own
            it = self.interpreter(OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        for i, x in zip(it.get_input_details(), feeds):
            it.resize_tensor_input(i["index"], x.shape)
        it.allocate_tensors()
        runs = []
        for _ in range(2 if self.states or self.kept else 1):
            for i, x in zip(it.get_input_details(), feeds):
                it.set_tensor(i["index"], np.char.encode(x) if x.dtype.kind == "U" else x)
            it.invoke()
            results = {i["name"]: it.get_tensor(i["index"]) for i in it.get_output_details()}
            results.update({self.graph.tensors[i].name + "_out": it.get_tensor(i) for i in self.kept})
            runs.append({k: np.char.decode(v.astype(bytes)) if v.dtype.kind in "OS" else v for k, v in results.items()})
        return runs if len(runs) > 1 else runs[0]

    def record(self, name, *feeds):
        """models/NAME.tflite, and its inputs and results beside it."""
        base = os.path.join(HERE, "models", name)
        names = [self.graph.tensors[i].name for i in self.graph.inputs]
        results = self.results or self.run(feeds)
        names += [self.graph.tensors[i].name for i in self.kept]
        if not self.results and (self.states or self.kept):  # the second run
            first, results = results
            feeds += tuple(first[self.graph.tensors[i].name + "_out"] for i in self.kept)
            names += self.states
            feeds += tuple(first[y] for y in self.states.values())
            results.update({f"{state}_out": results[y] for state, y in self.states.items()})
        for s in self.model_t.signatureDefs:
            if s.subgraphIndex == 0:
                by = {self.graph.tensors[m.tensorIndex].name: m.name for m in s.inputs + s.outputs}
                names = [by.get(n, n) for n in names]
                results = {by.get(n, n): v for n, v in results.items()}
        self.save(base + ".tflite")
        np.savez(base + ".in.npz", **dict(zip(names, feeds)))
        np.savez(base + ".out.npz", **results)
