"""NumPy's operators: mx.np in a symbol."""
import mxnet as mx
import numpy as np

from record import model


def op(name):
    """An operator by the name that files have, between symbols of MXNet's own kind."""
    at = mx.symbol.numpy._internal if name.startswith("_npi_") else mx.symbol.numpy  # pylint: disable=protected-access
    make = getattr(at, name.removeprefix("_npi_").removeprefix("_np_"))

    def call(*args, **attrs):
        return make(*(a.as_np_ndarray() for a in args), **attrs).as_nd_ndarray()
    return call


@model
def numpy_cells(m):
    x = m.x("x", m.f32(3, 4, lo=0.1, hi=0.9))
    y = m.x("y", m.f32(3, 4, lo=-3, hi=3))
    k = m.x("k", m.ints(-4, 5, 3, 4, dtype=np.int32))
    b = m.x("b", np.array([[0, np.inf, -np.inf, np.nan, 1]], "f4"))
    m.out(*(op("_npi_" + f)(x) for f in ("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "arcsinh", "arctanh", "square",
                                         "reciprocal", "expm1", "log1p", "log2", "log10", "degrees", "radians")))
    m.out(*(op("_npi_" + f)(y) for f in ("floor", "ceil", "trunc", "fix", "rint", "sign", "around")))
    m.out(op("_npi_arccosh")(op("_npi_add_scalar")(x, scalar=1.5, is_int=False)), op("_npi_sign")(k))
    m.out(op("_npi_hypot")(x, y), op("_npi_arctan2")(y, x), op("_npi_mod_scalar")(y, scalar=0.75, is_int=False),
          op("_npi_rmod_scalar")(x, scalar=2.0, is_int=False))
    m.out(*(op("_npi_where")(op(f"_npi_{f}_scalar")(k, scalar=1, is_int=True), x, y)
            for f in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")))
    one, zero = op("_npi_ones")(shape=(1, 5)), op("_npi_zeros")(shape=(1, 5))
    m.out(*(op("_npi_where")(op("_npi_" + f)(b), one, zero) for f in ("isnan", "isinf", "isfinite", "logical_not")))


@model
def numpy_shapes(m):
    x, y = m.x("x", m.f32(2, 3, 4)), m.x("y", m.f32(2, 4, 5))
    k, v = m.x("k", m.ints(-4, 5, 3, 4, dtype=np.int32)), m.x("v", m.f32(4))
    for f in ("_np_sum", "_np_prod", "_np_max", "_np_min", "_npi_mean"):
        m.out(op(f)(x), op(f)(x, axis=(0, 2)), op(f)(x, axis=-1, keepdims=True))
    m.out(op("_np_sum")(k, axis=0), op("_npi_mean")(k))
    m.out(op("_npi_var")(x, axis=1), op("_npi_std")(x, axis=(0, 1), ddof=1, keepdims=True), op("_npi_std")(x))
    m.out(op("_npi_argmax")(x, axis=1), op("_npi_argmin")(x), op("_npi_argmax")(x, axis=2, keepdims=True))
    m.out(op("_np_cumsum")(x, axis=1), op("_np_cumsum")(k))
    m.out(op("_npi_matmul")(x, y), op("_npi_matmul")(x, v), op("_npi_matmul")(op("_np_transpose")(v), y))
    m.out(op("_np_dot")(x, v), op("_np_dot")(x, m.w("w", m.f32(4, 5))))
    m.out(op("_npi_einsum")(x, y, subscripts="ijk,ikl->jl", num_args=2))
    m.out(op("_np_moveaxis")(x, source=(0,), destination=(-1,)), op("_npi_tril")(x, k=1), op("_npi_flip")(x, axis=(0, 2)))
