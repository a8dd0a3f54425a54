"""Operators that go cell by cell."""
import numpy as np
from record import model, raw


@model
def unary(m):
    x = m.input("x", m.f32(3, 5, lo=-2, hi=2))
    for op in ("Abs Neg Sign Floor Ceil Rint Round Exp Sin Cos Tan Atan Sinh Cosh Tanh Asinh Erf Erfc Sigmoid Square "
               "Expm1 Reciprocal Inv").split():
        m.out(op, getattr(raw, op)(x=x))
    for op in "Relu Relu6 Elu Selu Softplus Softsign LeakyRelu".split():
        m.out(op, getattr(raw, op)(features=x))
    unit = m.input("unit", m.f32(4, 4, lo=-0.99, hi=0.99))
    for op in "Asin Acos Atanh Log1p".split():
        m.out(op, getattr(raw, op)(x=unit))
    up = m.input("up", m.f32(6, lo=0.1, hi=3))
    for op in "Log Sqrt Rsqrt".split():
        m.out(op, getattr(raw, op)(x=up))
    m.out("Acosh", raw.Acosh(x=raw.AddV2(x=up, y=np.float32(1))))
    half = m.input("half", np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], np.float32))
    m.out("RoundHalf", raw.Round(x=half))
    m.out("RintHalf", raw.Rint(x=half))


@model
def extremes(m):
    """Where a formula overflows, or loses what counts."""
    x = m.input("x", np.array([-np.inf, -1e4, -200, -90, -1e-3, -1e-8, 0, 1e-8, 1e-3, 80, 1e4, np.inf], np.float32))
    m.out("Expm1", raw.Expm1(x=x))
    y = m.input("y", np.array([-1, 1, 0, -1e-30, 1e30, -1e30, 1e-30, 3], np.float32))
    z = m.input("z", np.array([0, 0, -2, -1e-30, -1e30, 1e-30, 1e30, -4], np.float32))
    m.out("Atan2", raw.Atan2(y=y, x=z))


@model
def special(m):
    x = m.input("x", np.array([1, np.nan, np.inf, -np.inf, 0], np.float32))
    m.out("IsNan", raw.IsNan(x=x))
    m.out("IsInf", raw.IsInf(x=x))
    m.out("IsFinite", raw.IsFinite(x=x))
    i = m.input("i", m.ints(-100, 100, 4, 3))
    m.out("Invert", raw.Invert(x=i))
    m.out("AbsInt", raw.Abs(x=i))
    m.out("SignInt", raw.Sign(x=i))
    m.out("LogicalNot", raw.LogicalNot(x=raw.IsNan(x=x)))
    m.out("Bitcast", raw.Bitcast(input=i, type=np.float32))
    y = m.input("y", m.f32(7, lo=-3, hi=3))
    m.out("Cast", raw.Cast(x=y, DstT=np.int32))
    m.out("CastBool", raw.Cast(x=i, DstT=np.bool_))
    m.out("CastHalf", raw.Cast(x=raw.Cast(x=y, DstT=np.float16), DstT=np.float32))
    m.out("CastBack", raw.Cast(x=raw.IsNan(x=x), DstT=np.float32))
    m.out("FakeQuantWithMinMaxArgs", raw.FakeQuantWithMinMaxArgs(inputs=y, min=-2, max=2.5))
    m.out("FakeQuantWithMinMaxVars",
          raw.FakeQuantWithMinMaxVars(inputs=y, min=np.float32(-1), max=np.float32(2), narrow_range=True))


@model
def binary(m):
    x = m.input("x", m.f32(2, 3, 4, lo=-2, hi=2))
    y = m.input("y", m.f32(3, 1, lo=0.2, hi=2))
    for op in ("Add AddV2 Sub Mul RealDiv Div Maximum Minimum Less LessEqual Greater GreaterEqual Equal NotEqual "
               "SquaredDifference FloorDiv FloorMod DivNoNan Xdivy Xlogy Xlog1py MulNoNan TruncateMod Mod").split():
        m.out(op, getattr(raw, op)(x=x, y=y))
    m.out("Pow", raw.Pow(x=y, y=x))
    m.out("Atan2", raw.Atan2(y=x, x=raw.Neg(x=y)))
    z = m.input("z", np.array([0, 1, 0, 2], np.float32))
    w = m.input("w", np.array([0, 0, 3, 4], np.float32))
    for op in "DivNoNan Xdivy Xlogy MulNoNan Atan2 Xlog1py".split():
        m.out(op + "Zero", getattr(raw, op)(**({"y": z, "x": w} if op == "Atan2" else {"x": z, "y": w})))


@model
def whole(m):
    x = m.input("x", m.ints(-50, 50, 3, 4))
    y = m.input("y", np.array([3, -4, 7, -2], np.int32))
    for op in "AddV2 Sub Mul Div TruncateDiv FloorDiv FloorMod Mod TruncateMod Maximum Minimum BitwiseAnd BitwiseOr BitwiseXor Equal Less".split():
        m.out(op, getattr(raw, op)(x=x, y=y))
    s = m.input("s", np.array([1, 2, 0, 4], np.int32))
    m.out("LeftShift", raw.LeftShift(x=x, y=s))
    m.out("RightShift", raw.RightShift(x=x, y=s))
    m.out("PowInt", raw.Pow(x=x, y=s))
    m.out("SquareInt", raw.Square(x=x))


@model
def choices(m):
    x = m.input("x", m.f32(3, 4))
    y = m.input("y", m.f32(3, 4))
    c = m.input("c", m.ints(0, 2, 3, 4).astype(bool))
    rows = m.input("rows", np.array([True, False, True]))
    m.out("LogicalAnd", raw.LogicalAnd(x=c, y=raw.Less(x=x, y=y)))
    m.out("LogicalOr", raw.LogicalOr(x=c, y=raw.Less(x=x, y=y)))
    m.out("Select", raw.Select(condition=c, x=x, y=y))
    m.out("SelectRows", raw.Select(condition=rows, x=x, y=y))
    m.out("SelectV2", raw.SelectV2(condition=c, t=x, e=np.float32(7)))
    m.out("AddN", raw.AddN(inputs=[x, y, x]))
    m.out("AccumulateNV2", raw.AccumulateNV2(inputs=[x, y], shape=[3, 4]))
    m.out("ClipByValue", raw.ClipByValue(t=x, clip_value_min=np.float32(-0.3), clip_value_max=np.float32(0.4)))
    m.out("ClipByTensor", raw.ClipByValue(t=x, clip_value_min=raw.Minimum(x=x, y=y), clip_value_max=y))


@model
def same(m):
    x = m.input("x", m.f32(2, 3))
    for op in "Identity Snapshot StopGradient PreventGradient".split():
        m.out(op, getattr(raw, op)(input=x))
    m.out("CheckNumerics", raw.CheckNumerics(tensor=x, message="no"))
    m.out("EnsureShape", raw.EnsureShape(input=x, shape=[2, None]))
    m.out("IdentityN", *raw.IdentityN(input=[x, raw.Neg(x=x)]))
    m.out("ZerosLike", raw.ZerosLike(x=x))
    m.out("OnesLike", raw.OnesLike(x=x))
    a = raw.Assert(condition=raw.All(input=raw.Less(x=x, y=np.float32(9)), axis=[0, 1]), data=[x, "too large"])
    import tensorflow as tf
    with tf.control_dependencies([a]):
        m.out("Assert", tf.identity(x))
    m.out("PlaceholderWithDefault", raw.Neg(x=m.input("given", m.f32(3))))


@model
def fourier(m):
    import tensorflow as tf
    x = m.input("x", m.f32(3, 12))
    for name, length in (("same", 12), ("short", 9), ("long", 16)):
        y = tf.signal.rfft(x, [length])
        m.out("Real_" + name, raw.Real(input=y))
        m.out("Imag_" + name, raw.Imag(input=y))
        m.out("IRFFT_" + name, raw.IRFFT(input=y, fft_length=[length]))
        m.out("IRFFT_less_" + name, raw.IRFFT(input=raw.Conj(input=y), fft_length=[8]))
    z = raw.Complex(real=x, imag=m.input("i", m.f32(3, 12)))
    for op in (raw.FFT, raw.IFFT):
        m.out(op.__name__ + "_abs", raw.ComplexAbs(x=op(input=z)))
        m.out(op.__name__ + "_angle", raw.Angle(input=op(input=z)))
    m.out("quotient", raw.Real(input=raw.RealDiv(x=z, y=raw.FFT(input=z))))
    for dims, shape, length in ((2, (3, 5, 6), (5, 6)), (2, (3, 5, 6), (4, 8)), (3, (4, 3, 6), (4, 2, 6))):
        name = "%dD_%d" % (dims, length[-1])
        box = m.input("box" + name, m.f32(*shape))
        y = getattr(tf.signal, "rfft%dd" % dims)(box, length)
        m.out("Real_" + name, raw.Real(input=y))
        m.out("Imag_" + name, raw.Imag(input=y))
        m.out("IRFFT_" + name, getattr(raw, "IRFFT%dD" % dims)(input=raw.Mul(x=y, y=y), fft_length=length))
        turned = raw.Complex(real=box, imag=tf.reverse(box, [0, 1, 2]))
        for op in ("FFT%dD", "IFFT%dD"):
            y = getattr(raw, op % dims)(input=turned)
            m.out(op % dims + "_re_%d" % length[-1], raw.Real(input=y))
            m.out(op % dims + "_im_%d" % length[-1], raw.Imag(input=y))
    signal = m.input("signal", m.f32(1, 100))
    stft = tf.signal.stft(signal, 16, 8, 16)
    m.out("stft", tf.abs(stft))
    m.out("istft", tf.signal.inverse_stft(stft, 16, 8, 16))
    mel = tf.signal.linear_to_mel_weight_matrix(6, 9, 8000, 80.0, 3800.0)
    m.out("mfcc", tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(tf.matmul(tf.abs(stft), mel) + 1e-3)))
