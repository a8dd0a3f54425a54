"""Weights of programs in their forms, against what coremltools unpacks them to; and programs in float16."""
import numpy as np
import torch
import torch.nn.functional as F

from record import case, operators, program, save_program


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def unpacked(forms, opset, name, x):
    """A row for each form, x plus the weights."""
    import coremltools as ct
    values = {}

    def row(out, make):
        def build(mb, v):
            w = make(mb)
            values[out] = w.op.materialized_val_inference()
            return mb.add(x=v["x"], y=w)
        return out, build, lambda v: v["x"] + torch.tensor(np.asarray(values[out], np.float32))
    operators(name, {"x": x}, [row(out, make) for out, make in forms.items()], opset=getattr(ct.target, opset), target=getattr(ct.target, opset))


@case
def packed(rng):
    """As of iOS 16."""
    q, x = rng.integers(0, 256, (4, 6)).astype(np.uint8), floats(rng, 4, 6)
    s, z = np.abs(floats(rng, 4)), rng.integers(0, 256, 4).astype(np.uint8)
    i4 = rng.integers(0, 16, 24)
    bits = np.packbits(np.unpackbits(i4.astype(np.uint8)[:, None], axis=1, bitorder="little")[:, :4].flatten(), bitorder="little")
    mask = rng.integers(0, 2, 24)
    unpacked({"affine": lambda mb: mb.constexpr_affine_dequantize(quantized_data=q, scale=s, zero_point=z, axis=np.int32(0)),
              "affine_one": lambda mb: mb.constexpr_affine_dequantize(quantized_data=q.astype(np.int8), scale=np.float32(0.1), zero_point=np.int8(3), axis=np.int32(0)),
              "lut": lambda mb: mb.constexpr_lut_to_dense(indices=bits, lut=floats(rng, 16), shape=np.array([4, 6], np.uint32)),
              "sparse": lambda mb: mb.constexpr_sparse_to_dense(nonzero_data=floats(rng, int(mask.sum())), mask=np.packbits(mask, bitorder="little"), shape=np.array([4, 6], np.uint32)),
              "cast": lambda mb: mb.constexpr_cast(source_val=x.astype(np.float16), output_dtype="fp32")}, "iOS16", "packed", x)


@case
def blocks(rng):
    """As of iOS 18."""
    from coremltools.converters.mil.mil import types
    x = floats(rng, 4, 6)
    i4 = types.np_int4_dtype if hasattr(types, "np_int4_dtype") else types.type_mapping.np_int4_dtype
    u4, u2, u1 = types.type_mapping.np_uint4_dtype, types.type_mapping.np_uint2_dtype, types.type_mapping.np_uint1_dtype
    mask = rng.integers(0, 2, (4, 6)).astype(np.int8)
    nonzero = int(mask.sum())
    unpacked({"shift": lambda mb: mb.constexpr_blockwise_shift_scale(data=rng.integers(-8, 8, (4, 6)).astype(np.int8).astype(i4), scale=np.abs(floats(rng, 4, 2)), offset=rng.integers(-8, 8, (4, 2)).astype(np.int8).astype(i4)),
              "scale": lambda mb: mb.constexpr_blockwise_shift_scale(data=rng.integers(0, 256, (4, 6)).astype(np.uint8), scale=np.abs(floats(rng, 4, 1))),
              "lut": lambda mb: mb.constexpr_lut_to_dense(indices=rng.integers(0, 4, (4, 6)).astype(np.uint8).astype(u2), lut=floats(rng, 2, 1, 4, 1)),
              "vector": lambda mb: mb.constexpr_lut_to_dense(indices=rng.integers(0, 16, (2, 6)).astype(np.uint8).astype(u4), lut=floats(rng, 1, 2, 16, 2), vector_axis=np.int32(0)),
              "sparse": lambda mb: mb.constexpr_sparse_to_dense(nonzero_data=floats(rng, nonzero), mask=mask.astype(np.uint8).astype(u1)),
              }, "iOS18", "blocks", x)


@case
def half_net(rng):
    """In float16, as coremltools converts by default."""
    from coremltools.converters.mil import Builder as mb
    import coremltools as ct
    x, w, bias, d = floats(rng, 1, 3, 8, 8), floats(rng, 4, 3, 3, 3), floats(rng, 4), floats(rng, 5, 4)

    def body(x):
        x = mb.relu(x=mb.conv(x=x, weight=w, bias=bias, strides=[2, 2], pad_type="same"))
        return mb.softmax(x=mb.linear(x=mb.reduce_mean(x=x, axes=[2, 3]), weight=d), axis=-1, name="y")
    prog = program(mb, [mb.TensorSpec(x.shape)], ["x"], body, ct.target.iOS16)
    t = torch.tensor
    y = F.softmax(F.relu(F.conv2d(F.pad(t(x), (0, 1, 0, 1)), t(w), t(bias), 2)).mean((2, 3)) @ t(d).T, -1)
    save_program("half_net", prog, {"x": x}, {"y": y}, "float16", ct.target.iOS16)
