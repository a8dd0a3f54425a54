#!/usr/bin/env python3
"""Writes broken/*.pt, archives of TorchScript that are wrong or ask for what is not there.

    python3 make_broken_script.py      (the standard library alone)

broken/goldens.txt has what is said about them."""
import json
import os
import pickle
import zipfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "broken")
CLASS = "__torch__.Net"
CODE = """class Net(Module):
  __parameters__ = ["w", ]
  __buffers__ = []
  w : Tensor
  training : bool
  def forward(self: __torch__.Net,
    x: Tensor) -> Tensor:
    w = self.w
%s
"""
BODY = "    return torch.add(x, w)"


def text(s):
    return b"X" + len(s).to_bytes(4, "little") + s.encode()


def tensor(storage=b"ctorch\nFloatStorage\n", key="0", sizes=b"K\x04", strides=b"K\x01", maker=b"ctorch._utils\n_rebuild_tensor_v2\n"):
    where = b"((" + text("storage") + storage + text(key) + text("cpu") + b"K\x04tQ"
    return maker + where + b"K\x00" + sizes + b"\x85" + strides + b"\x85\x89ccollections\nOrderedDict\n)RtR"


def module(state, name=CLASS):
    at = name.rindex(".")
    return b"\x80\x02c" + name[:at].encode() + b"\n" + name[at + 1:].encode() + b"\n)\x81}(" + state + b"ub."


GOOD = text("w") + tensor() + text("training") + b"\x89"


def write(name, body=BODY, data=module(GOOD), code=None, entries=None, cells=16):
    files = {"net/data.pkl": data, "net/code/__torch__.py": (code or CODE % body).encode(),
             "net/constants.pkl": b"\x80\x02).", "net/data/0": b"\0\0\x80\x3f" * (cells // 4), "net/version": b"3\n"}
    files |= entries or {}
    with zipfile.ZipFile(os.path.join(FOLDER, name + ".pt"), "w") as z:
        for path, content in files.items():
            if content is not None:
                z.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), content)


class Evil:
    def __reduce__(self):
        return os.system, ("echo executed",)


def body(*lines):
    return "\n".join("    " + line for line in lines)


write("good")
write("call", data=module(text("w") + pickle.dumps(Evil(), 2)[2:-1]))
write("class", data=module(GOOD + text("inner") + b"c__torch__.other\nThing\n)\x81}b"))
write("foreign", data=module(GOOD, "mylib.Net"))
write("opcode", data=b"\x80\x02(imod\nname\n.")
write("stack", data=b"\x80\x02u.")
write("mark", data=b"\x80\x02}(K\x01u.")
write("early", data=module(GOOD)[:-20])
write("memo", data=b"\x80\x02h\x07.")
write("cycle", data=module(text("w") + b"]q\x00h\x00a"))
write("cells", cells=8)
write("storage", data=module(text("w") + tensor(b"ctorch\nComplexDoubleStorage\n")))
write("scale", data=module(text("w") + tensor(b"ctorch\nQInt8Storage\n")))
write("packed", data=module(text("w") + b"c__torch__.torch.classes.quantized\nEmbeddingPackedParamsBase\n)\x81K\x01\x85b"))
write("packed_state", data=module(text("w") + b"c__torch__.torch.classes.quantized\nConv2dPackedParamsBase\n)\x81(" + text("2") + b"]]tb"))
write("complex", "    return torch.fft_rfft(x)")
write("complex_part", "    return torch.cumsum(torch.fft_rfft(x), 0)")
write("quantized", "    return torch.quantize_per_tensor(x, 0.10000000000000001, 0, 13)")
write("quantized_zero", "    q = torch.quantize_per_tensor(x, 0., 0, 13)\n    return torch.dequantize(ops.quantized.add(q, 0))")
write("quantized_far", "    q = torch.quantize_per_tensor(x, 1., 0, 13)\n    return torch.dequantize(ops.quantized.mul(q, 1e300))")
write("not_packed", "    q = torch.quantize_per_tensor(x, 0.10000000000000001, 0, 13)\n    return ops.quantized.linear(q, x, 1.0, 0)")
write("entry", data=module(text("w") + tensor(key="7")))
write("entry_up", data=module(text("w") + tensor(key="../../secret")))
write("negative", data=module(text("w") + tensor(sizes=b"J\xff\xff\xff\xff")))
write("no_code", code="x = 1\n")
write("no_forward", code="class Net(Module):\n  training : bool\n")
write("syntax", body=body("y = torch.add(x,, w)", "return y"))
write("sign", body=body("y = x @ w", "return y"))
write("indent", body="    if True:\n  return x")
write("nested", body=body("return " + "(" * 400 + "x" + ")" * 400))
write("in_training", body=body("return torch.dropout(x, 0.5, True)"))
write("counts", body=body("return torch.poisson(x)"))
write("packed_rows", body=body("y, sizes = torch._pack_padded_sequence(x, torch.tensor([3]), True)", "return y"))
write("name", body=body("return torch.add(x, y)"))
write("attribute", body=body("return torch.add(x, self.bias)"))
write("operators", body=body("y = torch.nuclear_norm(x)", "z = torch.igamma(y, ops.mylib.pool(x))", "return torch.igamma(z, w)"))
write("arguments", body=body("return torch.add(x, w, w, w)"))
write("decides", body=body("y = torch.igamma(x, w)", "if bool(y):", "  z = x", "else:", "  z = w", "return z"))
write("raises", body=body('if torch.eq(torch.dim(x), 1):', '  ops.prim.RaiseException("too many dimensions")', "else:", "  pass",
                          "return x"))
write("endless", body=body("while True:", "  pass", "return x"))
write("recursive", body=body("return (self).forward(x, )"))
write("rounds", body=body("n = int(torch.sum(x))", "y = [x]", "for i in range(n):", "  y0 = torch.append(y, w)", "return torch.stack(y)"))
write("states", body=body("y = [x]", "while bool(torch.sum(x)):", "  y = [w]", "return torch.stack(y)"))
write("sizes", body=body("y = x", "while bool(torch.sum(y)):", "  y = torch.cat([y, w])", "return y"))
write("shapes", body=body("if bool(torch.sum(x)):", "  y = x", "else:", "  y = torch.slice(x, 0, 0, 2)", "return y"))
write("guard", body=body("y = torch.squeeze(torch.nonzero(x), 1)", "z = x", "if torch.eq(torch.numel(y), 0):", "  k = torch.zeros([0])", "else:",
                         "  k = torch.relu(torch.mul(y, 2))", "  z = torch.add(x, w)", "return torch.add(z, torch.sum(k))"))
write("guarded", body=body("y = torch.squeeze(torch.nonzero(x), 1)", "if torch.eq(torch.numel(y), 0):", "  k = torch.zeros([0])", "else:",
                           "  k = torch.relu(q)", "return torch.sum(j)"))
write("randint", body=body("return torch.randint(-9223372036854775807, 9223372036854775807, [2])"))
write("shape_of", body=body("return torch._shape_as_tensor([x])"))
FRAMES = "return torch.istft(torch.view_as_complex(torch.reshape(w, [%s, 2])), %s)"
write("hop", body=body(FRAMES % ("1, 2", "2, 4611686018427387904, 2, None, True, False, True, None, False")))
write("signal", body=body(FRAMES % ("2, 1", "2, 1, 2, None, True, False, True, 9223372036854775807, False")))
write("spectrum", body=body(FRAMES % ("1, 2", "8, 2, 8, None, True, False, True, None, False")))
write("pool_backward", body=body("x1 = torch.reshape(x, [1, 2, 2])", "at = torch.zeros([1, 1, 1], dtype=4)", "return torch.max_pool2d_with_indices_backward(x, x1, [2, 2], [2, 2], [0, 0], [1, 1], False, at)"))
write("norm_all", body=body("y = torch.native_layer_norm(x, [4], w, w, 1.0000000000000001e-05)", "m, s, = (y)[1], (y)[2]", "a, b, c, = torch.native_layer_norm_backward(x, x, [4], m, s, w, w, [True, True, True])", "return torch.cat([a, b, c])"))
write("in_place", body=body("return torch.relu_(w)"))
write("list", body=body("y = [x, w]", "return (y)[2]"))
write("text", body=body('return "text"'))
write("twice", code=CODE % body("return (self).twice(x, x=x, )") + "  def twice(self: __torch__.Net, x: Tensor) -> Tensor:\n    return x\n")
write("function", body=body("return __torch__.missing.pad(x)"))


# archives of torch 1.0 to 1.2


def early(name, cell=None, attributes=b"\x80\x02(ctorch.jit._pickle\nbuild_tensor_from_id\n(K\x00tRt.", **module):
    cell = {"dims": ["4"], "offset": "0", "strides": ["1"], "dataType": "FLOAT", "data": {"key": "tensors/0"}, **(cell or {})}
    main = {"torchscriptArena": {"key": "code/net.py"}, "parameters": [{"name": "w", "tensorId": "0"}],
            "attributes": [{"type": "Tensor", "name": "v", "id": "0"}], "name": "net", **module}
    with zipfile.ZipFile(os.path.join(FOLDER, "early_" + name + ".pt"), "w") as z:
        for entry, data in (("version", "1"), ("tensors/0", bytes(16)), ("attributes.pkl", attributes),
                            ("code/net.py", "op_version_set = 0\ndef forward(self,\n    x: Tensor) -> Tensor:\n  return torch.add(self.w, self.v)\n"),
                            ("model.json", json.dumps({"protoVersion": "1", "mainModule": main, "tensors": [cell]}))):
            z.writestr(zipfile.ZipInfo("net/" + entry, (1980, 1, 1, 0, 0, 0)), data)


NESTED = {}
for _ in range(90):
    NESTED = {"name": "a", "submodules": [NESTED]}
early("good")
early("type", {"dataType": "STRING"})
early("sizes", {"dims": ["-4"]})
early("large", {"dims": ["4611686018427387904"]})
early("id", parameters=[{"name": "w", "tensorId": "1"}])
early("key", torchscriptArena={"key": "../net.py"})
early("attribute", attributes=b"\x80\x02(ctorch.jit._pickle\nbuild_tensor_from_id\n(K\x09tRt.")
early("deep", submodules=[NESTED])
