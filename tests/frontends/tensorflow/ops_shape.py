"""Operators that move, choose, count and make cells."""
import numpy as np
import tensorflow as tf
from record import model, raw


@model
def shapes(m):
    x = m.input("x", m.f32(2, 3, 4))
    m.out("Reshape", raw.Reshape(tensor=x, shape=[4, -1]))
    m.out("Squeeze", raw.Squeeze(input=raw.Reshape(tensor=x, shape=[1, 24, 1])))
    m.out("Squeeze_1", raw.Squeeze(input=raw.Reshape(tensor=x, shape=[1, 24, 1]), axis=[-1]))
    m.out("ExpandDims", raw.ExpandDims(input=x, axis=-1))
    m.out("Transpose", raw.Transpose(x=x, perm=[2, 0, 1]))
    m.out("Concat", raw.Concat(concat_dim=1, values=[x, x]))
    m.out("ConcatV2", raw.ConcatV2(values=[x, m.f32(2, 3, 2)], axis=-1))
    m.out("Pack", raw.Pack(values=[x, x, x], axis=1))
    m.out("Unpack", *raw.Unpack(value=x, num=3, axis=1))
    m.out("Split", *raw.Split(axis=-1, value=x, num_split=2))
    m.out("SplitV", *raw.SplitV(value=x, size_splits=[1, -1], axis=1, num_split=2))
    m.out("Slice", raw.Slice(input=x, begin=[0, 1, 1], size=[-1, 2, 2]))
    for i, y in enumerate([x[0], x[:, ::2], x[..., -1], x[:, None, 1:, ::-1], x[1, 1:2, 3:0:-2]]):
        m.out(f"StridedSlice_{i}", y)
    m.out("Tile", raw.Tile(input=x, multiples=[1, 2, 3]))
    m.out("BroadcastTo", raw.BroadcastTo(input=m.f32(3, 1), shape=[2, 3, 4]))
    m.out("ReverseV2", raw.ReverseV2(tensor=x, axis=[0, -1]))
    m.out("Roll", raw.Roll(input=x, shift=[1, -2], axis=[1, 2]))
    m.out("Pad", raw.Pad(input=x, paddings=[[0, 0], [1, 2], [3, 0]]))
    m.out("PadV2", raw.PadV2(input=x, paddings=[[0, 1], [1, 0], [0, 0]], constant_values=np.float32(9)))
    m.out("MirrorPad", raw.MirrorPad(input=x, paddings=[[0, 0], [1, 2], [3, 0]], mode="REFLECT"))
    m.out("MirrorPad_1", raw.MirrorPad(input=x, paddings=[[1, 0], [1, 2], [4, 1]], mode="SYMMETRIC"))


@model
def blocks(m):
    x = m.input("x", m.f32(2, 4, 6, 8))
    m.out("DepthToSpace", raw.DepthToSpace(input=x, block_size=2))
    m.out("SpaceToDepth", raw.SpaceToDepth(input=x, block_size=2))
    m.out("SpaceToBatchND", raw.SpaceToBatchND(input=x, block_shape=[2, 3], paddings=[[1, 1], [0, 3]]))
    y = m.input("y", m.f32(6, 2, 3, 2))
    m.out("BatchToSpaceND", raw.BatchToSpaceND(input=y, block_shape=[2, 3], crops=[[1, 0], [0, 2]]))


@model
def reductions(m):
    x = m.input("x", m.f32(2, 3, 4, 5))
    for op in "Mean Sum Prod Max Min EuclideanNorm".split():
        m.out(op, getattr(raw, op)(input=x, axis=[1, -1]))
        m.out(op + "_keep", getattr(raw, op)(input=x, axis=[0], keep_dims=True))
    b = raw.Less(x=x, y=np.float32(0.5))
    m.out("Any", raw.Any(input=b, axis=[1, 2]))
    m.out("All", raw.All(input=b, axis=[3]))
    for op in "ArgMax", "ArgMin":
        m.out(op, getattr(raw, op)(input=x, dimension=2))
        m.out(op + "_32", getattr(raw, op)(input=x, dimension=-1, output_type=np.int32))
    for op in "Cumsum", "Cumprod":
        for i, (e, r) in enumerate([(False, False), (True, False), (False, True), (True, True)]):
            m.out(f"{op}_{i}", getattr(raw, op)(x=x, axis=1, exclusive=e, reverse=r))
    m.out("TopKV2", *raw.TopKV2(input=x, k=3))
    i = m.input("i", m.ints(-9, 9, 3, 4))
    m.out("MeanInt", raw.Mean(input=i, axis=[1]))
    m.out("SumInt", raw.Sum(input=i, axis=[0]))
    s = m.input("s", m.f32(4, 6))
    m.out("InTopKV2", raw.InTopKV2(predictions=s, targets=[1, 5, 0, 2], k=3))


@model
def counts(m):
    x = m.input("x", m.ints(0, 6, 12))
    w = m.input("w", m.f32(12))
    m.out("Bincount", raw.Bincount(arr=x, size=5, weights=np.zeros(0, np.float32)))
    m.out("Bincount_weights", raw.Bincount(arr=x, size=7, weights=w))
    m.out("DenseBincount", raw.DenseBincount(input=x, size=6, weights=np.zeros(0, np.float32)))
    y = m.input("y", m.ints(0, 5, 3, 8))
    m.out("DenseBincount_2", raw.DenseBincount(input=y, size=5, weights=np.zeros(0, np.float32)))
    m.out("DenseBincount_binary", raw.DenseBincount(input=y, size=4, weights=np.zeros(0, np.float32), binary_output=True))
    m.out("InvertPermutation", raw.InvertPermutation(x=np.int32([3, 0, 2, 1])))
    m.out("InvertPermutation_1", raw.InvertPermutation(x=m.input("p", np.int32([3, 0, 2, 1]))))
    m.out("UnravelIndex", raw.UnravelIndex(indices=m.input("u", np.int32([5, 11, 0])), dims=[3, 4]))


@model
def made(m):
    x = m.input("x", m.f32(2, 3, 4))
    m.out("Shape", raw.Shape(input=x))
    m.out("Shape_64", raw.Shape(input=x, out_type=np.int64))
    m.out("ShapeN", *raw.ShapeN(input=[x, x[0]]))
    m.out("Size", raw.Size(input=x))
    m.out("Rank", raw.Rank(input=x))
    m.out("Fill", raw.Fill(dims=raw.Shape(input=x), value=np.float32(3)))
    m.out("Range", raw.Range(start=np.int32(2), limit=np.int32(11), delta=np.int32(3)))
    m.out("Range_f", raw.Range(start=np.float32(1), limit=np.float32(-1), delta=np.float32(-0.5)))
    m.out("LinSpace", raw.LinSpace(start=m.input("a", np.float32(-1)), stop=np.float32(4), num=6))
    m.out("BroadcastArgs", raw.BroadcastArgs(s0=raw.Shape(input=x), s1=np.int32([3, 1])))
    for t in np.float64, np.int64, np.int8, np.uint8, np.float16, np.bool_, np.int16, np.uint16, np.uint32, np.uint64:
        v = m.ints(0, 2, 2, 3).astype(t)
        m.out("Const_" + np.dtype(t).name, raw.Cast(x=tf.constant(v), DstT=np.float32))
        m.out("ConstOne_" + np.dtype(t).name, raw.Cast(x=tf.constant(t(1), shape=[2, 3]), DstT=np.float32))
    m.out("RandomUniform", raw.RandomUniform(shape=[3, 5], dtype=np.float32, seed=3, seed2=5))
    m.out("RandomStandardNormal", raw.RandomStandardNormal(shape=[2, 6], dtype=np.float32, seed=7, seed2=1))


@model
def gathers(m):
    x = m.input("x", m.f32(5, 4, 3))
    i = m.input("i", m.ints(0, 4, 2, 3))
    m.out("Gather", raw.Gather(params=x, indices=i))
    m.out("GatherV2", raw.GatherV2(params=x, indices=i, axis=1))
    m.out("GatherV2_batch", raw.GatherV2(params=m.f32(2, 6, 4), indices=i, axis=1, batch_dims=1))
    nd = m.input("nd", np.int32([[0, 1], [4, 3], [2, 2]]))
    m.out("GatherNd", raw.GatherNd(params=x, indices=nd))
    m.out("ScatterNd", raw.ScatterNd(indices=nd, updates=m.f32(3, 2), shape=[5, 4, 2]))
    u = m.f32(3, 3)
    m.out("TensorScatterUpdate", raw.TensorScatterUpdate(tensor=x, indices=nd, updates=u))
    for op in "Add", "Max", "Min":
        m.out("TensorScatter" + op, getattr(raw, "TensorScatter" + op)(tensor=x, indices=nd, updates=u))
    m.out("SparseToDense", raw.SparseToDense(sparse_indices=[[0, 1], [2, 2], [4, 3]], output_shape=[5, 4], sparse_values=m.f32(3),
                                             default_value=np.float32(-1)))
    m.out("OneHot", raw.OneHot(indices=i, depth=4, on_value=np.float32(2), off_value=np.float32(-1)))
    m.out("OneHot_axis", raw.OneHot(indices=i, depth=4, on_value=np.int32(1), off_value=np.int32(0), axis=0))
    for op in "Sum Max Min Prod Mean".split():
        m.out("Segment" + op, getattr(raw, "Segment" + op)(data=x, segment_ids=[0, 0, 1, 3, 3]))
    for op in "Sum Max Min Prod".split():
        m.out("UnsortedSegment" + op, getattr(raw, "UnsortedSegment" + op)(
            data=x, segment_ids=m.input("ids_" + op, np.int32([2, 0, 2, 1, 0])), num_segments=4))
    m.out("ReverseSequence", raw.ReverseSequence(input=x, seq_lengths=[1, 4, 2, 3, 0], seq_dim=1, batch_dim=0))


@model
def diagonals(m):
    x, d = m.input("x", m.f32(2, 4, 5)), m.input("d", m.f32(2, 4))
    m.out("MatrixDiag", raw.MatrixDiag(diagonal=d))
    m.out("MatrixDiagV3", raw.MatrixDiagV3(diagonal=d, k=0, num_rows=-1, num_cols=-1, padding_value=np.float32(0)))
    m.out("MatrixSetDiag", raw.MatrixSetDiag(input=x, diagonal=d))
    m.out("MatrixSetDiagV3", raw.MatrixSetDiagV3(input=x, diagonal=d, k=0))
    m.out("MatrixBandPart", raw.MatrixBandPart(input=x, num_lower=1, num_upper=2))
    m.out("MatrixBandPart_1", raw.MatrixBandPart(input=x, num_lower=-1, num_upper=0))


@model
def decided(m):
    """Sizes that the values decide."""
    c = m.input("c", m.ints(0, 2, 3, 4).astype(bool))
    x = m.input("x", np.int32([2, 1, 1, 3, 4, 3]))
    m.out("Where", raw.Where(condition=c))
    m.out("Unique", *raw.Unique(x=x))
    m.out("UniqueWithCounts", *raw.UniqueWithCounts(x=x, out_idx=np.int64))


@model
def text_shapes(m):
    """The same as text."""
    x = m.input("x", m.f32(2, 3))
    w = np.float32([[1.5, -2], [np.inf, 1e-30], [0, 3]])
    m.out("MatMul", raw.MatMul(a=raw.Relu(features=x), b=w))
    m.out("Concat", raw.ConcatV2(values=[x, tf.constant(1.0, shape=[2, 2])], axis=1))
    m.out("Cast", raw.Cast(x=x, DstT=np.int64))


@model
def sparse(m):
    at = m.input("at", np.int64([[0, 1], [0, 3], [2, 0], [4, 2]]))
    v = m.input("v", m.f32(4))
    shape = np.int64([5, 4])
    m.out("SparseReshape", *raw.SparseReshape(input_indices=at, input_shape=shape, new_shape=[2, -1]))
    m.out("SparseTensorDenseAdd", raw.SparseTensorDenseAdd(a_indices=at, a_values=v, a_shape=shape, b=m.f32(5, 4)))
    m.out("SparseTensorDenseMatMul", raw.SparseTensorDenseMatMul(a_indices=at, a_values=v, a_shape=shape, b=m.f32(4, 3)))
    m.out("SparseTensorDenseMatMul_a", raw.SparseTensorDenseMatMul(a_indices=at, a_values=v, a_shape=shape, b=m.f32(3, 5),
                                                                   adjoint_a=True, adjoint_b=True))
    m.out("SparseFillEmptyRows", *raw.SparseFillEmptyRows(indices=at, values=v, dense_shape=shape, default_value=np.float32(-1)))
    x = m.input("x", m.f32(6, 3))
    rows, ids = m.input("rows", np.int32([4, 1, 1, 5, 0])), np.int32([0, 0, 1, 3, 3])
    for op in "Sum", "Mean", "SqrtN":
        m.out("SparseSegment" + op, getattr(raw, "SparseSegment" + op)(data=x, indices=rows, segment_ids=ids))
        m.out(f"SparseSegment{op}WithNumSegments", getattr(raw, f"SparseSegment{op}WithNumSegments")(
            data=x, indices=rows, segment_ids=m.input("ids_" + op, ids), num_segments=np.int32(6)))
