"""Complex numbers, windows, random numbers."""
import numpy as np
from flatbuffers import flexbuffers

from cases import f32, model
from make_model import TYPES, Graph, Model


@model
def run_rfft(r):
    m = Model()
    x = m.input("x", [2, 3, 6])
    for name, size in [("rows", (1, 8)), ("both", (4, 8)), ("cut", (2, 4))]:
        shape = [2, size[0], size[1] // 2 + 1]
        y = m.tensor(name, shape, "complex64")
        m.op("RFFT2D", [x, m.const(np.int32(size))], y, "Rfft2dOptions")
        flat = m.tensor(name + "_flat", [2, shape[1] * shape[2]], "complex64")
        m.op("RESHAPE", [y, m.const(np.int32([2, -1]))], flat, "ReshapeOptions")
        m.op("REAL", [y], m.output(name + "_re", shape))
        m.op("IMAG", [y], m.output(name + "_im", shape))
        m.op("CAST", [y], m.output(name + "_cast", shape), "CastOptions", inDataType=TYPES["complex64"])
        m.op("COMPLEX_ABS", [flat], m.output(name + "_abs", [2, shape[1] * shape[2]]))
    return m, f32(r, 2, 3, 6)


@model
def run_windows(r):
    m = Model()
    x = m.input("x", [4, 6])
    d = m.output("dilate", [7, 16])
    m.op("DILATE", [x, m.const(np.int32([2, 3])), m.const(np.float32(-0.5))], d, "DilateOptions")
    m.op("STABLEHLO_PAD", [x, m.const(np.float32(0.25))], m.output("pad", [8, 13]), "StablehloPadOptions", edgePaddingLow=[1, -1],
         edgePaddingHigh=[0, 3], interiorPadding=[1, 1])
    for k, (name, first) in enumerate([("add", 0), ("mul", 1), ("min", 9), ("max", -9)]):
        m.op("REDUCE_WINDOW", [x, m.const(np.float32(first)), m.const(np.int64([2, 3])), m.const(np.int64([1, 2])), m.const(np.int64([2, 1]))],
             m.output(name, [2, 2]), "ReduceWindowOptions", reduceFunction=k + 1)
    g = Graph(m, "sum")
    a, b = g.input("a", []), g.input("b", [])
    g.op("STABLEHLO_ADD", [a, b], g.output("c", []))
    m.op("STABLEHLO_REDUCE_WINDOW", [x, m.const(np.float32(0))], m.output("sums", [3, 3]), "StablehloReduceWindowOptions",
         windowDimensions=[3, 2], windowStrides=[2, 2], baseDilations=[1, 1], windowDilations=[1, 1], padding=[1, 2, 0, 0],
         bodySubgraphIndex=g.number)
    return m, f32(r, 4, 6)


@model
def run_random(r):
    """The first run of the interpreter gives the same numbers."""
    m = Model()
    x = m.input("x", [2, 3])
    shape = m.const(np.int32([3, 5]))
    m.op("RANDOM_UNIFORM", [shape], m.output("uniform", [3, 5]), "RandomOptions", seed=7, seed2=1 << 40)
    m.op("RANDOM_STANDARD_NORMAL", [shape], m.output("normal", [3, 5]), "RandomOptions", seed=-3, seed2=5)
    m.op("MULTINOMIAL", [x, m.const(np.int32(9))], m.output("classes", [2, 9], "int32"), "RandomOptions", seed=1, seed2=2)
    return m, f32(r, 2, 3)


@model
def run_lookup(r):
    m = Model()
    rows, x = m.input("rows", [4, 3]), m.input("x", [3], "int32")
    m.op("HASHTABLE_LOOKUP", [x, m.const(np.int32([-3, 0, 5, 9])), rows], [m.output("found", [3, 3]), m.output("hits", [3], "uint8")])
    places, shape, weights = m.const(np.int32([[0, 0], [2, 0], [2, 1]])), m.const(np.int32([3, 2])), m.const(f32(r, 3, lo=0.5, hi=2))
    ids = m.const(np.int32([1, 3, 0]))
    for k, name in enumerate(["sum", "mean", "sqrtn"]):
        m.op("EMBEDDING_LOOKUP_SPARSE", [ids, places, shape, weights, rows], m.output(name, [3, 3]), "EmbeddingLookupSparseOptions", combiner=k)
    return m, f32(r, 4, 3), np.int32([5, 4, -3])


@model
def run_unique(r):
    m = Model()
    x, y = m.input("x", [12], "int32"), m.input("y", [12])
    m.op("UNIQUE", [x], [m.output("values", [12], "int32", signature=[-1]), m.output("at", [12], "int32")], "UniqueOptions", idxOutType=2)
    m.op("UNIQUE", [y], [m.output("reals", [12], signature=[-1]), m.output("at_reals", [12], "int64")], "UniqueOptions", idxOutType=4)
    return m, r.integers(0, 5, 12).astype(np.int32), np.round(f32(r, 12, lo=-2, hi=2))


@model
def run_stablehlo(r):
    m = Model()
    x, y = m.input("x", [4, 6]), m.input("y", [4, 6])
    for op in ["STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"]:
        m.op(op, [x, y], m.output(op, [4, 6]))
    i, j = m.const(np.int32([[1, 2], [3, 4]])), m.const(np.int32([[3, 0], [1, 2]]))
    m.op("STABLEHLO_SHIFT_LEFT", [i, j], m.output("shift", [2, 2], "int32"), "StablehloShiftLeftOptions")
    where = m.const(np.int64([[0, 1], [2, 9], [-4, 3]]))
    m.op("STABLEHLO_GATHER", [x, where], m.output("gather", [3, 2, 3]), "StablehloGatherOptions", offsetDims=[1, 2], collapsedSliceDims=[],
         startIndexMap=[0, 1], indexVectorDim=1, sliceSizes=[2, 3], indicesAreSorted=False)
    m.op("STABLEHLO_GATHER", [x, m.const(np.int64([3, 1]))], m.output("columns", [4, 2]), "StablehloGatherOptions", offsetDims=[0],
         collapsedSliceDims=[1], startIndexMap=[1], indexVectorDim=1, sliceSizes=[4, 1], indicesAreSorted=False)
    for name, op in [("add", "STABLEHLO_ADD"), ("most", "STABLEHLO_MAXIMUM"), ("put", None)]:
        g = Graph(m, name)
        a, b = g.input("a", []), g.input("b", [])
        if op:
            g.op(op, [a, b], g.output("c", []))
        else:
            g.graph.outputs.append(b)
        m.op("STABLEHLO_SCATTER", [x, m.const(np.int64([[0, 1], [2, 2]])), m.const(f32(r, 2, 2, 3))], m.output("scatter_" + name, [4, 6]),
             "StablehloScatterOptions", updateWindowDims=[1, 2], insertedWindowDims=[], scatterDimsToOperandDims=[0, 1], indexVectorDim=1,
             updateComputationSubgraphIndex=g.number, indicesAreSorted=False, uniqueIndices=False)
    g = Graph(m, "body")
    a, b = g.input("a", [4, 6]), g.input("b", [4, 6])
    g.op("SUB", [a, b], g.output("c", [4, 6]), "SubOptions")
    m.op("STABLEHLO_COMPOSITE", [x, y], m.output("composite", [4, 6]), "StableHLOCompositeOptions", name="odml.difference",
         decompositionSubgraphIndex=g.number, compositeAttributes=np.frombuffer(bytes(flexbuffers.Dumps({})), np.uint8))
    return m, f32(r, 4, 6), f32(r, 4, 6)


@model
def run_case(r):
    m = Model()
    x, k = m.input("x", [3]), m.input("k", [1], "int32")
    at = []
    for op, options in [("ADD", "AddOptions"), ("MUL", "MulOptions"), ("SUB", "SubOptions")]:
        g = Graph(m, op)
        a = g.input("a", [3])
        g.op(op, [a, g.const(f32(r, 3))], g.output("c", [3]), options)
        at.append(g.number)
    m.op("STABLEHLO_CASE", [k, x], m.output("y", [3]), "StablehloCaseOptions", branchSubgraphIndices=at)
    return m, f32(r, 3), np.int32([1])
