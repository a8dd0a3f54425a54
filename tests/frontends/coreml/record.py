"""Small Core ML models with the results that PyTorch or NumPy have for them: what make_models.py writes them with.

Needs coremltools, which writes models anywhere, and torch.  Nothing here runs Core ML.
"""
import json
import os
import shutil

import coremltools as ct
import numpy as np
import torch
from coremltools.models import datatypes
from coremltools.models.neural_network import NeuralNetworkBuilder

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = {}


def case(f):
    """A function of a random generator that writes the model of its name."""
    MODELS[f.__name__] = f
    return f


def rng_of(name):
    return np.random.default_rng(sum(name.encode()))


def numpy(x):
    return x.detach().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)


def save_values(path, values):
    arrays = {}
    for name, v in values.items():
        v = numpy(v)
        arrays[name] = v.astype(np.float32) if v.dtype == np.float64 else v
    np.savez(path, **arrays)


def save_network(name, spec, feeds, results):
    path = os.path.join(HERE, "networks", name)
    with open(path + ".mlmodel", "wb") as f:
        f.write(spec.SerializeToString(deterministic=True))
    save_values(path + ".in.npz", feeds)
    save_values(path + ".out.npz", results)


class Network:
    """A network whose layers each give a result; `five`: of the first versions."""

    def __init__(self, name, inputs, five=False):
        self.name, self.inputs, self.results = name, inputs, {}
        types = [(k, datatypes.Array(*(v if isinstance(v, tuple) else v.shape))) for k, v in inputs.items()]
        self.b = NeuralNetworkBuilder(types, [("unused", None)], disable_rank5_shape_mapping=not five)
        del self.b.spec.description.output[:]

    def out(self, name, value):
        """The tensor `name` is a result, and should be this."""
        self.results[name] = value
        f = self.b.spec.description.output.add()
        f.name = name
        f.type.multiArrayType.dataType = ct.proto.FeatureTypes_pb2.ArrayFeatureType.FLOAT32
        return name

    def save(self):
        save_network(self.name, self.b.spec, {k: v for k, v in self.inputs.items() if not isinstance(v, tuple)}, self.results)


def save_program(name, prog, feeds, results, precision="float32", target=None, **options):
    model = ct.convert(prog, convert_to="mlprogram", compute_precision=getattr(ct.precision, precision.upper()),
                       minimum_deployment_target=target or ct.target.iOS18, skip_model_load=True,
                       pass_pipeline=ct.PassPipeline.EMPTY if precision == "float32" else ct.PassPipeline.DEFAULT, **options)
    save_package(name, model, feeds, results)


def save_package(name, model, feeds, results):
    path = os.path.join(HERE, "programs", name)
    shutil.rmtree(path + ".mlpackage", ignore_errors=True)
    model.save(path + ".mlpackage")
    # Names that are the same each time.
    manifest = os.path.join(path + ".mlpackage", "Manifest.json")
    with open(manifest, encoding="utf-8") as f:
        was = json.load(f)
    items = {f"00000000-0000-4000-8000-00000000000{i}": was["itemInfoEntries"][k]
             for i, k in enumerate(sorted(was["itemInfoEntries"], key=lambda k: was["itemInfoEntries"][k]["path"]))}
    root = next(k for k, v in items.items() if v["path"].endswith(".mlmodel"))
    with open(manifest, "w", encoding="utf-8") as f:
        json.dump({"fileFormatVersion": was["fileFormatVersion"], "itemInfoEntries": items, "rootModelIdentifier": root}, f, indent=4)
    spec = model.get_spec()
    del spec.description.metadata.userDefined["com.github.apple.coremltools.conversion_date"]
    with open(os.path.join(path + ".mlpackage", "Data", "com.apple.CoreML", "model.mlmodel"), "wb") as f:
        f.write(spec.SerializeToString(deterministic=True))
    save_values(path + ".in.npz", feeds)
    save_values(path + ".out.npz", results)


def operators(name, feeds, rows, **options):
    """One program whose results are those of many operators: rows of a name, the operator from mb and the inputs, what it should give."""
    from coremltools.converters.mil import Builder as mb
    from coremltools.converters.mil.mil import types
    kinds = {"float32": types.fp32, "int32": types.int32, "float16": types.fp16, "bool": types.bool}
    specs = [mb.TensorSpec(v.shape, kinds[str(v.dtype)]) for v in feeds.values()]

    def body(*args):
        named = dict(zip(feeds, args))
        outs = []
        for out, make, _ in rows:
            made = make(mb, named)
            made = list(made) if isinstance(made, (list, tuple)) else [made]
            for i, v in enumerate(made):
                if v.dtype == types.bool:
                    v = mb.cast(x=v, dtype="int32")
                outs.append(mb.identity(x=v, name=out if i == 0 else f"{out}_{i}"))
        return outs

    prog = program(mb, specs, list(feeds), body, options.pop("opset", ct.target.iOS18))
    results = {}
    for out, _, ref in rows:
        values = ref({k: torch.tensor(v) for k, v in feeds.items()})
        values = list(values) if isinstance(values, (list, tuple)) else [values]
        for i, v in enumerate(values):
            v = numpy(v)
            results[out if i == 0 else f"{out}_{i}"] = v.astype(np.int32) if v.dtype in (np.int64, bool) else v
    save_program(name, prog, feeds, results, **options)


def program(mb, specs, names, body, opset):
    """mb.program takes names of inputs from the function."""
    space = {"body": body}
    exec(f"def main({', '.join(names)}):\n    return body({', '.join(names)})", space)  # pylint: disable=exec-used
    return mb.program(input_specs=specs, opset_version=opset)(space["main"])
