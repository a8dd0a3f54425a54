"""Boxes, and control flow."""
import numpy as np

from cases import f32, model
from make_model import TYPES, Graph, Model

# ---- boxes ----

@model
def run_suppression(r):
    m = Model()
    boxes, scores = m.input("boxes", [20, 4]), m.input("scores", [20])
    same = [m.const(np.int32(6)), m.const(np.float32(0.3)), m.const(np.float32(0.2))]
    m.op("NON_MAX_SUPPRESSION_V4", [boxes, scores, *same], [m.output("at", [6], "int32"), m.output("count", [], "int32")])
    m.op("NON_MAX_SUPPRESSION_V5", [boxes, scores, *same, m.const(np.float32(0))],
         [m.output("at5", [6], "int32"), m.output("scores5", [6]), m.output("count5", [], "int32")])
    corner = f32(r, 20, 2, lo=0, hi=4)
    return m, np.concatenate([corner, corner + f32(r, 20, 2, lo=1, hi=2)], 1), f32(r, 20, lo=0, hi=1)


def detection(r, m):
    from flatbuffers import flexbuffers
    boxes, scores = m.input("boxes", [1, 12, 4]), m.input("scores", [1, 12, 4])
    anchors = np.concatenate([f32(r, 12, 2, lo=0, hi=1), f32(r, 12, 2, lo=0.2, hi=0.4)], 1)
    b = flexbuffers.Builder()
    with b.Map():
        for key, v in dict(max_detections=5, max_classes_per_detection=1, detections_per_class=100, num_classes=3).items():
            b.Int(key, v)
        b.Bool("use_regular_nms", False)
        for key, v in dict(nms_score_threshold=0.1, nms_iou_threshold=0.4, y_scale=10.0, x_scale=10.0, h_scale=5.0, w_scale=5.0).items():
            b.Float(key, v)
    m.op("TFLite_Detection_PostProcess", [boxes, scores, m.const(anchors)],
         [m.output("b", [1, 5, 4]), m.output("c", [1, 5]), m.output("s", [1, 5]), m.output("n", [1])], custom=bytes(b.Finish()))
    return m, f32(r, 1, 12, 4, lo=-2, hi=2), f32(r, 1, 12, 4, lo=0, hi=1)


@model
def run_detection(r):
    return detection(r, Model())


@model
def run_outside(r):
    """What is too large for the tables of a file lies behind them."""
    m, *feeds = detection(r, Model())
    x, k = m.graph.inputs[0], m.const(f32(r, 4))
    m.op("ADD", [x, k], m.output("sum", [1, 12, 4]), "AddOptions")
    m.outside = True
    return m, *feeds


@model
def run_old_codes(r):
    """A file before version 3a, which has but the old field for an operator's number."""
    m = Model()
    x = m.input("x", [2, 3])
    y = m.tensor("y", [2, 3])
    m.op("ADD", [x, m.const(f32(r, 3))], y, "AddOptions", fusedActivationFunction=1)
    m.op("RELU_N1_TO_1", [y], m.output("z", [2, 3]))
    for c in m.model_t.operatorCodes:
        c.builtinCode = 0
    return m, f32(r, 2, 3)


# ---- control flow ----

@model
def run_if(r):
    m = Model()
    x, y = m.input("x", [3]), m.input("y", [3])
    total, go = m.tensor("total", []), m.tensor("go", [], "bool")
    m.op("SUM", [x, m.const(np.int32([0]))], total, "ReducerOptions")
    m.op("GREATER", [total, m.const(np.float32(0))], go)
    branches = []
    for op, options in [("ADD", "AddOptions"), ("MUL", "MulOptions")]:
        g = Graph(m, op)
        a, b = g.input("a", [3]), g.input("b", [3])
        g.op(op, [a, b], g.output("c", [3]), options)
        g.op("ABS", [a], g.output("d", [3]))
        branches.append(g.number)
    m.op("IF", [go, x, y], [m.output("c", [3]), m.output("d", [3])], "IfOptions", thenSubgraphIndex=branches[0], elseSubgraphIndex=branches[1])
    return m, f32(r, 3), f32(r, 3)


@model
def run_while(r):
    """Rounds until the state is large; one state stays as it is."""
    m = Model()
    x = m.input("x", [3])
    test, body = Graph(m, "test"), Graph(m, "body")
    s, i, k = test.input("s", [3]), test.input("i", [], "int32"), test.input("k", [1], "int32")
    large, few = test.tensor("large", [], "bool"), test.tensor("few", [], "bool")
    most = test.tensor("most", [])
    test.op("REDUCE_MAX", [s, test.const(np.int32([0]))], most, "ReducerOptions")
    test.op("LESS", [most, test.const(np.float32(50))], large)
    test.op("LESS", [i, test.const(np.int32(20))], few)
    test.op("LOGICAL_AND", [large, few], test.output("go", [], "bool"))
    s, i, k = body.input("s", [3]), body.input("i", [], "int32"), body.input("k", [1], "int32")
    flat, t = body.tensor("flat", [3]), body.tensor("t", [3])
    body.op("RESHAPE", [s, k], flat)
    body.op("ADD", [flat, flat], t, "AddOptions")
    body.op("ADD", [t, body.const(np.float32(1))], body.output("s1", [3]), "AddOptions")
    body.op("ADD", [i, body.const(np.int32(1))], body.output("i1", [], "int32"), "AddOptions")
    body.graph.outputs.append(k)
    m.op("WHILE", [x, m.const(np.int32(0)), m.const(np.int32([3]))],
         [m.output("y", [3]), m.output("rounds", [], "int32"), m.output("k", [1], "int32")], "WhileOptions", condSubgraphIndex=test.number,
         bodySubgraphIndex=body.number)
    return m, f32(r, 3, lo=0, hi=2)


@model
def run_variables(r):
    m = Model()
    x = m.input("x", [3])
    once = Graph(m, "once")
    h = once.tensor("h", [], "resource")
    once.op("VAR_HANDLE", [], h, "VarHandleOptions", sharedName="w", container="")
    once.op("ASSIGN_VARIABLE", [h, once.const(f32(r, 3))], [], "AssignVariableOptions")
    m.op("CALL_ONCE", [], [], "CallOnceOptions", initSubgraphIndex=once.number)
    h, w = m.tensor("h", [], "resource"), m.tensor("w", [3])
    m.op("VAR_HANDLE", [], h, "VarHandleOptions", sharedName="w", container="")
    m.op("READ_VARIABLE", [h], w, "ReadVariableOptions")
    m.op("MUL", [x, w], m.output("y", [3]), "MulOptions")
    return m, f32(r, 3)


@model
def run_states(r):
    """What a stream keeps from run to run: the last rows of a convolution's input, in bytes, and a sum."""
    m = Model()
    x = m.input("x", [1, 3, 1, 4], "int8", scale=0.05, zero=-7)
    once = Graph(m, "once")
    first = {"rows": once.const(np.full([1, 2, 1, 4], -7, np.int8), scale=0.05, zero=-7), "sum": once.const(f32(r, 1, 8))}
    for name, value in first.items():
        h = once.tensor(f"{name}_handle", [], "resource")
        once.op("VAR_HANDLE", [], h, "VarHandleOptions", sharedName=name, container="")
        once.op("ASSIGN_VARIABLE", [h, value], [], "AssignVariableOptions")
    m.op("CALL_ONCE", [], [], "CallOnceOptions", initSubgraphIndex=once.number)
    handles = {name: m.tensor(f"{name}_handle", [], "resource") for name in first}
    for name, h in handles.items():
        m.op("VAR_HANDLE", [], h, "VarHandleOptions", sharedName=name, container="")
    rows, both = (m.tensor(n, [1, k, 1, 4], "int8", scale=0.05, zero=-7) for n, k in (("rows", 2), ("both", 5)))
    m.op("READ_VARIABLE", [handles["rows"]], rows, "ReadVariableOptions")
    m.op("CONCATENATION", [rows, x], both, "ConcatenationOptions", axis=1)
    last = m.output("last", [1, 2, 1, 4], "int8", scale=0.05, zero=-7)
    m.op("STRIDED_SLICE", [both, *(m.const(np.int32(v)) for v in ([0, -2, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]))], last, "StridedSliceOptions",
         beginMask=13, endMask=15)
    m.op("ASSIGN_VARIABLE", [handles["rows"], last], [], "AssignVariableOptions")
    scales = r.uniform(0.01, 0.02, 8).astype(np.float32)
    w = m.const(r.integers(-127, 128, (8, 5, 1, 4)).astype(np.int8), scale=scales)
    b = m.const(r.integers(-500, 500, 8).astype(np.int32), scale=scales * np.float32(0.05))
    y = m.output("y", [1, 1, 1, 8], "int8", scale=0.3, zero=5)
    m.op("CONV_2D", [both, w, b], y, "Conv2DOptions", padding=1, strideH=1, strideW=1)
    floats, flat, before = m.tensor("floats", [1, 1, 1, 8]), m.tensor("flat", [1, 8]), m.tensor("before", [1, 8])
    m.op("DEQUANTIZE", [y], floats, "DequantizeOptions")
    m.op("RESHAPE", [floats, m.const(np.int32([1, 8]))], flat)
    m.op("READ_VARIABLE", [handles["sum"]], before, "ReadVariableOptions")
    total = m.output("total", [1, 8])
    m.op("ADD", [before, flat], total, "AddOptions")
    m.op("ASSIGN_VARIABLE", [handles["sum"], total], [], "AssignVariableOptions")
    m.states = {"rows": "last", "sum": "total"}
    return m, r.integers(-128, 128, (1, 3, 1, 4)).astype(np.int8)


@model
def run_hashtable(r):
    """From strings to numbers and back; a key that is there twice has its first value, filling again changes nothing."""
    m = Model()
    once = Graph(m, "once")
    words = np.array(["cat", "dog", "", "a longer one", "dog", "z\u00fcrich"])
    tables = [(7, "string", "int64", words, np.int64([3, -1, 2**40, 5, 6, 7])),
              (8, "int64", "string", np.int64([5, -2, 2**41]), np.array(["five", "", "many more than that"]))]

    def handle(g, number, key, value):
        h = g.tensor(f"table{number}", [1], "resource")
        g.op("HASHTABLE", [], h, "HashtableOptions", tableId=number, keyDtype=TYPES[key], valueDtype=TYPES[value])
        return h
    for number, key, value, keys, values in tables:
        h = handle(once, number, key, value)
        for v in (values, values[::-1]):
            once.op("HASHTABLE_IMPORT", [h, once.const(keys), once.const(np.ascontiguousarray(v))], [], "HashtableImportOptions")
    m.op("CALL_ONCE", [], [], "CallOnceOptions", initSubgraphIndex=once.number)
    word, number = m.input("word", [2, 4], "string"), m.input("number", [5], "int64")
    for x, shape, other, (i, key, value, _, _) in zip((word, number), ([2, 4], [5]), (np.int64([-9]), np.array(["none of them"])), tables):
        h = handle(m, i, key, value)
        m.op("HASHTABLE_FIND", [h, x, m.const(other)], m.output(f"found{i}", shape, value), "HashtableFindOptions")
        m.op("HASHTABLE_SIZE", [h], m.output(f"size{i}", [1], "int64"), "HashtableSizeOptions")
    x = np.array([["dog", "dogs", "", "a longer one"], ["z\u00fcrich", "Cat", "cat", "a longer one than that"]])
    return m, x, np.int64([2**41, 7, -2, 5, 0])


@model
def run_list_items(r):
    """Sums of rows so far, into a list, as TensorFlow's converter writes it."""
    m = Model()
    x = m.input("x", [5, 2])
    test, body = Graph(m, "test"), Graph(m, "body")
    i, s, l, x0 = test.input("i", [], "int32"), test.input("s", [2]), test.input("l", [5, 2]), test.input("x0", [5, 2])
    test.op("LESS", [i, test.const(np.int32(5))], test.output("go", [], "bool"))
    i, s, l, x0 = body.input("i", [], "int32"), body.input("s", [2]), body.input("l", [5, 2]), body.input("x0", [5, 2])
    row, i1, s1 = body.tensor("row", [2]), body.output("i1", [], "int32"), body.output("s1", [2])
    body.op("GATHER", [x0, i], row, "GatherOptions", axis=0)
    body.op("ADD", [i, body.const(np.int32(1))], i1, "AddOptions")
    body.op("ADD", [s, row], s1, "AddOptions")
    parts = []
    for name, at, rest in (("size", i, -1), ("begin", i1, 0)):
        one, both, part = body.tensor(name + "0", [1], "int32"), body.tensor(name, [2], "int32"), body.tensor(name + "_part", [], signature=[-1, 2])
        body.op("RESHAPE", [at, body.const(np.int32([1]))], one)
        body.op("CONCATENATION", [one, body.const(np.int32([rest]))], both, "ConcatenationOptions", axis=0)
        of = [l, body.const(np.int32([0, 0])), both] if name == "size" else [l, both, body.const(np.int32([-1, -1]))]
        body.op("SLICE", of, part)
        parts.append(part)
    item = body.tensor("item", [1, 2])
    body.op("RESHAPE", [s1, body.const(np.int32([1, 2]))], item)
    body.op("CONCATENATION", [parts[0], item, parts[1]], body.output("l1", [5, 2]), "ConcatenationOptions", axis=0)
    body.graph.outputs.append(x0)
    m.op("WHILE", [m.const(np.int32(0)), m.const(np.zeros(2, np.float32)), m.const(np.zeros((5, 2), np.float32)), x],
         [m.tensor("n", [], "int32"), m.output("s", [2]), m.output("l", [5, 2]), m.tensor("x1", [5, 2])], "WhileOptions",
         condSubgraphIndex=test.number, bodySubgraphIndex=body.number)
    return m, f32(r, 5, 2)
