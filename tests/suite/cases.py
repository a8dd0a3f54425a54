#!/usr/bin/env python3
"""Writes the cases of ONNX's conformance suite, which the package `onnx` brings along.

    cases.py FOLDER

Each becomes FOLDER/KIND/NAME/model.onnx with test_data_set_N/input_I.pb and output_I.pb; cases.json lists
them with their tolerances and what their outputs are.  Nothing is done where a cases.json of this version
of the package is there already.

    node                the package makes them when it is imported
    simple, pytorch-operator, pytorch-converted    files of the package
    light               networks whose weights are made inside; the input is arange(n) / n, as in its runner
"""
import json
import os
import shutil
import sys

import numpy
import onnx
from onnx import numpy_helper

KINDS = ["node", "simple", "pytorch-operator", "pytorch-converted", "light"]
WHAT = {"tensor_type": "tensor", "sequence_type": "sequence", "optional_type": "optional", "map_type": "map"}


def what(value):
    return WHAT[value.type.WhichOneof("value")]


def bytes_of(value, info):
    """A value of a node case as the message that its type asks for."""
    if isinstance(value, onnx.TensorProto):
        return value.SerializeToString()
    make = {"sequence": numpy_helper.from_list, "optional": numpy_helper.from_optional, "map": numpy_helper.from_dict}
    if what(info) in make:
        return make[what(info)](value, info.name).SerializeToString()
    return numpy_helper.from_array(numpy.asarray(value), info.name).SerializeToString()


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def write_node(case, folder):
    write(f"{folder}/model.onnx", case.model.SerializeToString())
    graph = case.model.graph
    for number, (inputs, outputs) in enumerate(case.data_sets):
        for name, values, infos in ("input", inputs, graph.input), ("output", outputs, graph.output):
            for i, value in enumerate(values):
                if value is not None:  # an optional input that is left out
                    write(f"{folder}/test_data_set_{number}/{name}_{i}.pb", bytes_of(value, infos[i]))


def write_light(case, folder):
    model = os.path.join(os.path.dirname(onnx.__file__), "..", case.url)
    graph = onnx.load(model).graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    for i, value in enumerate(inputs):
        shape = [max(dim.dim_value, 1) for dim in value.type.tensor_type.shape.dim]
        cells = numpy.arange(numpy.prod(shape)).reshape(shape) / numpy.prod(shape)
        write(f"{folder}/test_data_set_0/input_{i}.pb", bytes_of(cells.astype(numpy.float32), value))
    shutil.copy(model, f"{folder}/model.onnx")
    shutil.copy(model.removesuffix(".onnx") + "_output_0.pb", f"{folder}/test_data_set_0/output_0.pb")


def main(root):
    from onnx.backend.test.loader import load_model_tests

    index = os.path.join(root, "cases.json")
    if os.path.exists(index) and json.load(open(index))["onnx"] == onnx.__version__:
        return
    shutil.rmtree(root, ignore_errors=True)
    cases = {}
    for kind in KINDS:
        for case in load_model_tests(kind="real" if kind == "light" else kind):
            folder = os.path.join(root, kind, case.name)
            if kind == "node":
                write_node(case, folder)
            elif kind == "light":
                write_light(case, folder)
            else:
                shutil.copytree(case.model_dir, folder)
            outputs = [what(value) for value in onnx.load(f"{folder}/model.onnx").graph.output]
            cases[f"{kind}/{case.name}"] = {"rtol": case.rtol, "atol": case.atol, "outputs": outputs}
    with open(index + ".new", "w") as file:
        json.dump({"onnx": onnx.__version__, "cases": cases}, file, indent=0, sort_keys=True)
    os.replace(index + ".new", index)


if __name__ == "__main__":
    main(*sys.argv[1:])
