#!/usr/bin/env python3
"""Writes same/NAME.pb, NAME (a SavedModel), NAME.tflite and NAME.onnx: a network of Keras in each form (needs the packages
tensorflow, keras and onnx).

The ONNX form has the picture in NHWC, too: a Transpose, and then what an exporter of NCHW writes.  Beside
each, .in.npz and .out.npz have an input and what Keras makes of it.
"""
import os
import shutil

from record import HERE, np, tf

import keras
import onnx
from onnx import TensorProto, helper, numpy_helper
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

FOLDER = os.path.join(HERE, "same")
L = keras.layers


class Onnx:
    """The layers of the network as nodes of ONNX."""
    def __init__(self):
        self.nodes, self.weights = [], []

    def add(self, op, inputs, **attrs):
        name = f"{op}_{len(self.nodes)}"
        names = []
        for i, x in enumerate(inputs):
            if not isinstance(x, str):
                self.weights.append(numpy_helper.from_array(np.ascontiguousarray(x), f"{name}_{i}"))
                x = f"{name}_{i}"
            names.append(x)
        self.nodes.append(helper.make_node(op, names, [name], name=name, **attrs))
        return name

    def conv(self, x, layer, group=1):
        w = layer.get_weights()
        kernel = w[0].transpose(2, 3, 0, 1).reshape(-1, 1, *w[0].shape[:2]) if group > 1 else w[0].transpose(3, 2, 0, 1)
        return self.add("Conv", [x, kernel] + w[1:], strides=layer.strides, auto_pad="SAME_UPPER" if layer.padding == "same" else
                        "VALID", group=group)

    def write(self, path, shape, y, out):
        g = helper.make_graph(self.nodes, "same", [helper.make_tensor_value_info("x:0", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(y, TensorProto.FLOAT, out)], self.weights)
        onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def main():
    keras.utils.set_random_seed(3)
    x = keras.Input((12, 12, 3), batch_size=1, name="x")
    conv = [L.Conv2D(8, 3, 2, padding="same"), L.Conv2D(8, 3, padding="same", use_bias=False), L.Conv2D(16, 1)]
    deep, norm, dense = L.DepthwiseConv2D(3, padding="same"), L.BatchNormalization(), L.Dense(5)
    a = L.ReLU()(conv[0](x))
    b = L.Add()([a, L.ReLU()(norm(conv[1](a)))])
    y = L.MaxPooling2D()(L.ReLU()(conv[2](deep(b))))
    y = L.Softmax()(dense(L.GlobalAveragePooling2D()(y)))
    net = keras.Model(x, y)
    rng = np.random.default_rng(5)
    for layer in conv + [deep, dense]:  # a bias of zeros goes in some of the formats
        w = layer.get_weights()
        layer.set_weights(w[:1] + [rng.uniform(-1, 1, v.shape).astype(np.float32) for v in w[1:]])
    norm.set_weights([rng.uniform(0.5, 1.5, 8).astype(np.float32) for _ in range(4)])

    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    path = os.path.join(FOLDER, "network")
    net.export(path, verbose=False)
    if os.path.exists(os.path.join(path, "fingerprint.pb")):
        os.remove(os.path.join(path, "fingerprint.pb"))
    f = tf.function(lambda x: net(x, training=False)).get_concrete_function(tf.TensorSpec([1, 12, 12, 3], tf.float32, name="x"))
    g = convert_variables_to_constants_v2(f)
    tf.io.write_graph(g.graph.as_graph_def(), FOLDER, "network.pb", as_text=False)
    with open(path + ".tflite", "wb") as out:
        out.write(tf.lite.TFLiteConverter.from_concrete_functions([f]).convert())

    o = Onnx()
    a = o.add("Relu", [o.conv(o.add("Transpose", ["x:0"], perm=[0, 3, 1, 2]), conv[0])])
    gamma, beta, mean, var = norm.get_weights()
    b = o.add("BatchNormalization", [o.conv(a, conv[1]), gamma, beta, mean, var], epsilon=norm.epsilon)
    b = o.add("Add", [a, o.add("Relu", [b])])
    c = o.add("MaxPool", [o.add("Relu", [o.conv(o.conv(b, deep, 8), conv[2])])], kernel_shape=[2, 2], strides=[2, 2])
    c = o.add("ReduceMean", [c], axes=[2, 3], keepdims=0)
    c = o.add("Add", [o.add("MatMul", [c, dense.get_weights()[0]]), dense.get_weights()[1]])
    o.write(path + ".onnx", [1, 12, 12, 3], o.add("Softmax", [c], axis=-1), [1, 5])

    value = rng.uniform(-1, 1, (1, 12, 12, 3)).astype(np.float32)
    for form, into, out in (("network", "x", "output_0"), ("network.pb", "x:0", "Identity:0"), ("network.tflite", "x", "Identity"),
                            ("network.onnx", "x:0", o.nodes[-1].name)):
        np.savez(os.path.join(FOLDER, form + ".in.npz"), **{into: value})
        np.savez(os.path.join(FOLDER, form + ".out.npz"), **{out: net(value).numpy()})


main()
