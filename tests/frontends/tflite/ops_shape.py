"""Matrices, shapes, reductions, positions, and names of signatures."""
import numpy as np

from cases import f32, model
from make_model import Graph, Model

# ---- matrices ----

@model
def run_dense(r):
    m = Model()
    x = m.input("x", [2, 3, 4])
    w = m.const(f32(r, 5, 4))
    m.op("FULLY_CONNECTED", [x, w, m.const(f32(r, 5))], m.output("flat", [6, 5]), "FullyConnectedOptions", fusedActivationFunction=1)
    m.op("FULLY_CONNECTED", [x, w], m.output("kept", [2, 3, 5]), "FullyConnectedOptions", keepNumDims=True, version=5)
    m.op("FULLY_CONNECTED", [x, m.const(f32(r, 7, 12)), -1], m.output("all", [2, 7]), "FullyConnectedOptions")
    y = m.const(f32(r, 2, 4, 5))
    m.op("BATCH_MATMUL", [x, y], m.output("product", [2, 3, 5]), "BatchMatMulOptions")
    m.op("BATCH_MATMUL", [x, m.const(f32(r, 2, 5, 4))], m.output("turned", [2, 3, 5]), "BatchMatMulOptions", adjY=True)
    m.op("BATCH_MATMUL", [m.const(f32(r, 4, 3)), m.const(f32(r, 4, 5))], m.output("two", [3, 5]), "BatchMatMulOptions", adjX=True)
    return m, f32(r, 2, 3, 4)


# ---- shapes ----

@model
def run_shapes(r):
    m = Model()
    x = m.input("x", [2, 3, 1, 4])
    m.op("RESHAPE", [x, m.const(np.int32([4, -1]))], m.output("reshape", [4, 6]), "ReshapeOptions", newShape=[4, -1])
    m.op("RESHAPE", [x], m.output("option", [24]), "ReshapeOptions", newShape=[24])
    most, flat = m.tensor("most", [1]), m.tensor("flat", [1, 24])
    m.op("RESHAPE", [x, m.const(np.int32([1, 24]))], flat, "ReshapeOptions", newShape=[1, 24])
    m.op("REDUCE_MAX", [flat, m.const(np.int32([1]))], most, "ReducerOptions")
    m.op("RESHAPE", [most, m.const(np.int32([]))], m.output("no_dims", []), "ReshapeOptions", newShape=[])
    m.op("SQUEEZE", [x], m.output("squeeze", [2, 3, 4]), "SqueezeOptions", squeezeDims=[-2])
    m.op("SQUEEZE", [x], m.output("squeeze_all", [2, 3, 4]), "SqueezeOptions")
    m.op("EXPAND_DIMS", [x, m.const(np.int32([-1]))], m.output("expand", [2, 3, 1, 4, 1]))
    m.op("TRANSPOSE", [x, m.const(np.int32([3, 0, 2, 1]))], m.output("transpose", [4, 2, 1, 3]))
    m.op("CONCATENATION", [x, x, m.const(f32(r, 2, 2, 1, 4))], m.output("concat", [2, 8, 1, 4]), "ConcatenationOptions", axis=1)
    m.op("PACK", [x, x], m.output("pack", [2, 3, 2, 1, 4]), "PackOptions", valuesCount=2, axis=2)
    m.op("UNPACK", [x], [m.output(f"unpack{i}", [2, 1, 4]) for i in range(3)], "UnpackOptions", num=3, axis=1)
    m.op("SPLIT", [m.const(np.int32(3)), x], [m.output(f"split{i}", [2, 3, 1, 2]) for i in range(2)], "SplitOptions", numSplits=2)
    m.op("SPLIT_V", [x, m.const(np.int32([1, -1])), m.const(np.int32(1))],
         [m.output("split_v0", [2, 1, 1, 4]), m.output("split_v1", [2, 2, 1, 4])], "SplitVOptions", numSplits=2)
    m.op("SLICE", [x, m.const(np.int32([0, 1, 0, 2])), m.const(np.int32([2, -1, 1, 1]))], m.output("slice", [2, 2, 1, 1]))
    m.op("TILE", [x, m.const(np.int32([1, 2, 3, 1]))], m.output("tile", [2, 6, 3, 4]))
    m.op("BROADCAST_TO", [x, m.const(np.int32([2, 3, 5, 4]))], m.output("broadcast", [2, 3, 5, 4]), version=2)
    m.op("REVERSE_V2", [x, m.const(np.int32([1]))], m.output("reverse", [2, 3, 1, 4]))
    m.op("SHAPE", [x], m.output("shape", [4], "int32"), "ShapeOptions", outType=2)
    m.op("RANK", [x], m.output("rank", [], "int32"))
    m.op("ZEROS_LIKE", [x], m.output("zeros", [2, 3, 1, 4]))
    m.op("FILL", [m.const(np.int32([2, 2])), m.const(np.float32(3.5))], m.output("fill", [2, 2]))
    return m, f32(r, 2, 3, 1, 4)


@model
def run_strided(r):
    m = Model()
    x = m.input("x", [4, 5, 6])

    def s(name, begin, end, step, shape, **masks):
        m.op("STRIDED_SLICE", [x] + [m.const(np.int32(v)) for v in (begin, end, step)], m.output(name, shape), "StridedSliceOptions", **masks)
    s("plain", [1, 0, 2], [3, 5, 6], [1, 2, 3], [2, 3, 2])
    s("back", [3, -1, 5], [0, 0, 0], [-1, -2, -5], [3, 2, 1])
    s("masks", [9, 1, 9], [0, 9, 4], [1, 2, 1], [4, 2, 4], beginMask=5, endMask=3)
    s("all_back", [0, 0, 0], [0, 0, 0], [-1, -1, -1], [4, 5, 6], beginMask=7, endMask=7)
    s("shrink", [1, 0, -1], [2, 5, 0], [1, 1, 1], [5], shrinkAxisMask=5)
    s("ellipsis", [0, 2], [0, 4], [1, 1], [4, 5, 2], ellipsisMask=1)
    s("fresh", [0, 0, 1], [0, 0, 3], [1, 1, 1], [1, 4, 2, 6], newAxisMask=1, beginMask=2, endMask=2)
    return m, f32(r, 4, 5, 6)


@model
def run_pads(r):
    m = Model()
    x = m.input("x", [3, 4])
    p = m.const(np.int32([[1, 2], [2, 1]]))
    m.op("PAD", [x, p], m.output("zeros", [6, 7]))
    m.op("PADV2", [x, p, m.const(np.float32(-2.5))], m.output("value", [6, 7]))
    m.op("MIRROR_PAD", [x, p], m.output("reflect", [6, 7]), "MirrorPadOptions", mode=0)
    m.op("MIRROR_PAD", [x, p], m.output("symmetric", [6, 7]), "MirrorPadOptions", mode=1)
    return m, f32(r, 3, 4)


@model
def run_batches(r):
    m = Model()
    x = m.input("x", [2, 4, 6, 3])
    y = m.tensor("y", [12, 3, 3, 3])
    m.op("SPACE_TO_BATCH_ND", [x, m.const(np.int32([2, 3])), m.const(np.int32([[1, 1], [2, 1]]))], y)
    z = m.output("z", [12, 3, 3, 3])
    m.op("ABS", [y], z)
    m.op("BATCH_TO_SPACE_ND", [z, m.const(np.int32([2, 3])), m.const(np.int32([[1, 1], [2, 1]]))], m.output("back", [2, 4, 6, 3]))
    return m, f32(r, 2, 4, 6, 3)


# ---- reductions, order ----

@model
def run_reduce(r):
    m = Model()
    x = m.input("x", [2, 3, 4])
    for op in ["MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"]:
        m.op(op, [x, m.const(np.int32([0, -1]))], m.output(op, [3]), "ReducerOptions")
        m.op(op, [x, m.const(np.int32([1]))], m.output(op + "_kept", [2, 1, 4]), "ReducerOptions", keepDims=True)
    c = m.tensor("c", [2, 3, 4], "bool")
    m.op("LESS", [x, m.const(np.float32(0.9))], c)
    m.op("REDUCE_ANY", [c, m.const(np.int32([2]))], m.output("any", [2, 3], "bool"), "ReducerOptions")
    m.op("REDUCE_ALL", [c, m.const(np.int32([2]))], m.output("all", [2, 3], "bool"), "ReducerOptions")
    m.op("ARG_MAX", [x, m.const(np.int32([-1]))], m.output("argmax", [2, 3], "int64"), "ArgMaxOptions", outputType=4)
    m.op("ARG_MIN", [x, m.const(np.int32([1]))], m.output("argmin", [2, 4], "int32"), "ArgMinOptions", outputType=2)
    m.op("CUMSUM", [x, m.const(np.int32(1))], m.output("cumsum", [2, 3, 4]), "CumsumOptions")
    m.op("CUMSUM", [x, m.const(np.int32(2))], m.output("cumsum_back", [2, 3, 4]), "CumsumOptions", exclusive=True, reverse=True)
    m.op("TOPK_V2", [x, m.const(np.int32(2))], [m.output("top", [2, 3, 2]), m.output("top_at", [2, 3, 2], "int32")], "TopKV2Options")
    return m, f32(r, 2, 3, 4)


# ---- positions ----

@model
def run_gather(r):
    m = Model()
    x, i = m.input("x", [3, 4, 5]), m.input("i", [2, 3], "int32")
    m.op("GATHER", [x, i], m.output("rows", [2, 3, 4, 5]), "GatherOptions", axis=0)
    m.op("GATHER", [x, i], m.output("columns", [3, 4, 2, 3]), "GatherOptions", axis=-1)
    m.op("GATHER", [m.const(f32(r, 2, 4, 5)), i], m.output("batches", [2, 3, 5]), "GatherOptions", axis=1, batchDims=1)
    m.op("GATHER_ND", [x, i], m.output("cells", [2]))
    m.op("EMBEDDING_LOOKUP", [m.const(np.int32([2, 0])), x], m.output("embedding", [2, 4, 5]))
    m.op("SCATTER_ND", [i, m.const(f32(r, 2)), m.const(np.int32([3, 3, 3]))], m.output("scatter", [3, 3, 3]))
    m.op("ONE_HOT", [i, m.const(np.int32(4)), m.const(np.float32(2)), m.const(np.float32(-1))], m.output("one_hot", [2, 3, 4]), "OneHotOptions",
         axis=-1)
    m.op("ONE_HOT", [i, m.const(np.int32(4)), m.const(np.float32(1)), m.const(np.float32(0))], m.output("one_hot1", [2, 4, 3]), "OneHotOptions",
         axis=1)
    return m, f32(r, 3, 4, 5), r.integers(0, 3, (2, 3)).astype(np.int32)


@model
def run_segments(r):
    m = Model()
    x, i = m.input("x", [4, 3]), m.input("i", [4], "int32")
    for op in ["SUM", "PROD", "MAX", "MIN"]:
        m.op("UNSORTED_SEGMENT_" + op, [x, i, m.const(np.int32(4))], m.output(op, [4, 3]))
    m.op("SEGMENT_SUM", [x, m.const(np.int32([0, 0, 1, 2]))], m.output("segments", [3, 3]))
    m.op("REVERSE_SEQUENCE", [x, m.const(np.int32([1, 3, 2]))], m.output("reverse", [4, 3]), "ReverseSequenceOptions", seqDim=0, batchDim=1)
    m.op("MATRIX_DIAG", [x], m.output("diag", [4, 3, 3]))
    m.op("MATRIX_SET_DIAG", [x, m.const(f32(r, 3))], m.output("set_diag", [4, 3]))
    m.op("BUCKETIZE", [x], m.output("buckets", [4, 3], "int32"), "BucketizeOptions", boundaries=[-0.5, 0.0, 0.25])
    m.op("SPARSE_TO_DENSE", [m.const(np.int32([[0, 1], [2, 2]])), m.const(np.int32([3, 4])), m.const(f32(r, 2)), m.const(np.float32(-1))],
         m.output("dense", [3, 4]), "SparseToDenseOptions")
    m.op("DYNAMIC_UPDATE_SLICE", [x, m.const(f32(r, 2, 2)), m.const(np.int32([1, 1]))], m.output("update", [4, 3]))
    return m, f32(r, 4, 3), np.int32([2, 0, 2, 1])


@model
def run_range(r):
    m = Model()
    x = m.input("x", [5])
    y = m.tensor("y", [5])
    m.op("RANGE", [m.const(np.float32(1)), m.const(np.float32(3.5)), m.const(np.float32(0.5))], y)
    m.op("ADD", [x, y], m.output("z", [5]), "AddOptions")
    return m, f32(r, 5)


def graphs_of(*keys):
    """A graph for each of these signatures, the first one the main graph."""
    m = Model()
    for number, key in enumerate(keys):
        g = m if number == 0 else Graph(m, key)
        op = {"scale": "MUL", "shift": "ADD"}[key]
        x, y = g.input(f"{key}_x:0", [4]), g.output(f"{key}_y:0", [4])
        g.op(op, [x, g.const(np.float32([3, 5, 7, 9]))], y, op.capitalize() + "Options")
        m.signature({"x": x}, {"y": y}, number, key)
    return m


@model
def run_signatures_first(r):
    return graphs_of("scale", "shift"), f32(r, 4)


@model
def run_signatures_second(r):
    return graphs_of("shift", "scale"), f32(r, 4)


@model
def run_signature(r):
    """Names are those of the signature; the batch is open."""
    m = Model()
    x = m.input("serving_default_picture:0", [1, 6], signature=[-1, 6])
    y = m.output("StatefulPartitionedCall:0", [1, 4], signature=[-1, 4])
    m.op("FULLY_CONNECTED", [x, m.const(f32(r, 4, 6)), -1], y, "FullyConnectedOptions")
    m.signature({"picture": x}, {"digit": y})
    return m, f32(r, 1, 6)


@model
def run_where(r):
    m = Model()
    x = m.input("x", [3, 4])
    c = m.tensor("c", [3, 4], "bool")
    m.op("GREATER", [x, m.const(np.float32(0))], c)
    y = m.output("y", [0, 2], "int64", signature=[-1, 2])
    m.op("WHERE", [c], y)
    m.op("GATHER_ND", [x, y], m.output("z", [0], signature=[-1]))
    return m, f32(r, 3, 4)
