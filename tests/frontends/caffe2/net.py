"""Nets of Caffe2 as protobuf, without the framework, which has no package any more."""
import struct

import numpy as np


def varint(v):
    v &= (1 << 64) - 1
    out = bytearray()
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    return bytes(out) + bytes([v])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def text(number, s):
    return field(number, s.encode())


class Net(bytes):
    """A net as an argument."""


def arg(name, v):
    out = text(1, name)
    if isinstance(v, Net):
        out += field(8, v)
    elif isinstance(v, str):
        out += text(4, v)
    elif isinstance(v, bytes):
        out += field(4, v)
    elif isinstance(v, float):
        out += varint(2 << 3 | 5) + struct.pack("<f", v)
    elif isinstance(v, (bool, int, np.integer)):
        out += varint(3 << 3) + varint(int(v))
    elif isinstance(v, np.ndarray) and v.dtype.kind == "f":
        out += field(5, v.astype("<f4").tobytes())
    else:
        out += b"".join(varint(6 << 3) + varint(int(x)) for x in np.ravel(v))
    return field(5, out)


def op(kind, inputs, outputs, **args):
    return field(2, b"".join(text(1, i) for i in inputs) + b"".join(text(2, o) for o in outputs) + text(4, kind) +
                 b"".join(arg(k, v) for k, v in args.items()))


def net(name, ops, inputs=(), outputs=()):
    return text(1, name) + b"".join(ops) + b"".join(text(7, i) for i in inputs) + b"".join(text(8, o) for o in outputs)


FILLS = {"f": "GivenTensorFill", "i": "GivenTensorIntFill", "b": "GivenTensorBoolFill"}


def given(name, v):
    kind = "GivenTensorInt64Fill" if v.dtype == np.int64 else FILLS[v.dtype.kind]
    return op(kind, [], [name], shape=v.shape, values=v)


def steps(name, v, scale, zero):
    """Bytes with a scale and a zero point, or i32."""
    kind, values = ("Int8GivenTensorFill", v.tobytes()) if v.dtype == np.uint8 else ("Int8GivenIntTensorFill", v)
    return op(kind, [], [name], shape=v.shape, values=values, Y_scale=float(scale), Y_zero_point=int(zero))


def place(name, shape):
    """An input, as exporters fill it."""
    return op("ConstantFill", [], [name], shape=shape, value=0.0)
