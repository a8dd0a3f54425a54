#!/usr/bin/env python3
"""Trains the model of this example: handwritten digits, 16 x 16 pixels.

The pictures are the 8 x 8 digits that come with scikit-learn, enlarged; the network is two
convolutions and a matrix product, trained with plain numpy.  Writes digits.onnx, the sample pictures
samples/*.pgm, and inputs.npz and outputs.npz, which ONNX Runtime computed.

    python3 -m venv venv && venv/bin/pip install numpy scikit-learn onnx onnxruntime
    venv/bin/python train.py
"""
import os

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SIZE, EPOCHS, BATCH = 16, 30, 32
HERE = os.path.dirname(os.path.abspath(__file__))


def enlarge(images):
    """8 x 8 to 16 x 16, bilinear, values from 0 to 1."""
    at = (np.arange(SIZE) + 0.5) / 2 - 0.5
    low = np.clip(np.floor(at), 0, 7).astype(int)
    high = np.clip(low + 1, 0, 7)
    f = np.clip(at - low, 0, 1).astype(np.float32)
    rows = images[:, low] * (1 - f)[:, None] + images[:, high] * f[:, None]
    return rows[:, :, low] * (1 - f) + rows[:, :, high] * f


def shift(images, rng):
    """Each picture moved by up to two pixels."""
    out = np.zeros_like(images)
    for i, (dy, dx) in enumerate(rng.integers(-2, 3, (len(images), 2))):
        moved = np.pad(images[i], 2)
        out[i] = moved[2 + dy:2 + dy + SIZE, 2 + dx:2 + dx + SIZE]
    return out


def columns(x):
    """Neighbourhoods of 3 x 3 with a border of zeros: (n, h, w, c) to (n, h, w, 9 c)."""
    n, h, w, _ = x.shape
    p = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return np.concatenate([p[:, i:i + h, j:j + w] for i in range(3) for j in range(3)], axis=3)


def columns_back(g, channels):
    """The gradient of columns()."""
    n, h, w, _ = g.shape
    p = np.zeros((n, h + 2, w + 2, channels), np.float32)
    for k in range(9):
        i, j = divmod(k, 3)
        p[:, i:i + h, j:j + w] += g[..., k * channels:(k + 1) * channels]
    return p[:, 1:-1, 1:-1]


def pool(x):
    n, h, w, c = x.shape
    blocks = x.reshape(n, h // 2, 2, w // 2, 2, c)
    y = blocks.max(axis=(2, 4))
    return y, blocks == y[:, :, None, :, None]


class Net:
    def __init__(self, rng):
        def layer(inputs, outputs):
            scale = np.sqrt(2 / inputs)
            return [(rng.standard_normal((inputs, outputs)) * scale).astype(np.float32),
                    np.zeros(outputs, np.float32)]

        self.weights = layer(9, 8) + layer(72, 16) + layer(16 * 16, 10)
        self.m = [np.zeros_like(w) for w in self.weights]
        self.v = [np.zeros_like(w) for w in self.weights]
        self.steps = 0

    def forward(self, images):
        w1, b1, w2, b2, w3, b3 = self.weights
        c1 = columns(images[..., None])
        a1 = np.maximum(c1 @ w1 + b1, 0)
        p1, mask1 = pool(a1)
        c2 = columns(p1)
        a2 = np.maximum(c2 @ w2 + b2, 0)
        p2, mask2 = pool(a2)
        flat = p2.transpose(0, 3, 1, 2).reshape(len(images), -1)  # channels first, as in ONNX
        self.saved = c1, a1, mask1, c2, a2, mask2, flat
        return flat @ w3 + b3

    def train(self, images, labels, rate):
        w1, _, w2, _, w3, _ = self.weights
        logits = self.forward(images)
        c1, a1, mask1, c2, a2, mask2, flat = self.saved
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        p[np.arange(len(labels)), labels] -= 1
        p /= len(labels)
        g = (p @ w3.T).reshape(-1, 16, 4, 4).transpose(0, 2, 3, 1)
        g2 = (mask2 * g[:, :, None, :, None]).reshape(a2.shape) * (a2 > 0)
        g = columns_back(g2 @ w2.T, 8)
        g1 = (mask1 * g[:, :, None, :, None]).reshape(a1.shape) * (a1 > 0)
        flat_of = lambda x: x.reshape(-1, x.shape[-1])
        self.adam([flat_of(c1).T @ flat_of(g1), flat_of(g1).sum(0),
                   flat_of(c2).T @ flat_of(g2), flat_of(g2).sum(0), flat.T @ p, p.sum(0)], rate)

    def adam(self, gradients, rate):
        self.steps += 1
        for i, g in enumerate(gradients):
            self.m[i] += 0.1 * (g - self.m[i])
            self.v[i] += 0.001 * (g * g - self.v[i])
            m = self.m[i] / (1 - 0.9 ** self.steps)
            v = self.v[i] / (1 - 0.999 ** self.steps)
            self.weights[i] -= (rate * m / (np.sqrt(v) + 1e-8)).astype(np.float32)


def to_onnx(net):
    w1, b1, w2, b2, w3, b3 = net.weights

    def filters(w, inputs):  # (9 in, out) to (out, in, 3, 3)
        return np.ascontiguousarray(w.reshape(3, 3, inputs, -1).transpose(3, 2, 0, 1))

    constants = {"w1": filters(w1, 1), "b1": b1, "w2": filters(w2, 8), "b2": b2,
                 "w3": np.ascontiguousarray(w3.T), "b3": b3}
    conv = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    half = dict(kernel_shape=[2, 2], strides=[2, 2])
    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["c1"], "conv1", **conv),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("MaxPool", ["r1"], ["p1"], "pool1", **half),
        helper.make_node("Conv", ["p1", "w2", "b2"], ["c2"], "conv2", **conv),
        helper.make_node("Relu", ["c2"], ["r2"], "relu2"),
        helper.make_node("MaxPool", ["r2"], ["p2"], "pool2", **half),
        helper.make_node("Flatten", ["p2"], ["flat"], "flatten", axis=1),
        helper.make_node("Gemm", ["flat", "w3", "b3"], ["logits"], "dense", transB=1),
        helper.make_node("Softmax", ["logits"], ["digit"], "softmax", axis=1),
    ]
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, SIZE, SIZE])],
        [helper.make_tensor_value_info("digit", TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model


def save_pgm(path, image):
    with open(path, "wb") as f:
        f.write(b"P5 %d %d 255\n" % (SIZE, SIZE))
        f.write(np.round(image * 255).astype(np.uint8).tobytes())


def main():
    rng = np.random.default_rng(1)
    digits = load_digits()
    images = np.round(enlarge(digits.images.astype(np.float32) / 16) * 255).astype(np.float32) / 255
    train_x, test_x, train_y, test_y = train_test_split(
        images, digits.target, test_size=0.25, random_state=1, stratify=digits.target)
    net = Net(rng)
    for epoch in range(EPOCHS):
        order = rng.permutation(len(train_x))
        rate = 2e-3 * (1 - epoch / EPOCHS) + 1e-5
        moved = shift(train_x, rng)
        for i in range(0, len(order), BATCH):
            some = order[i:i + BATCH]
            net.train(moved[some], train_y[some], rate)

    model = to_onnx(net)
    path = os.path.join(HERE, "digits.onnx")
    onnx.save(model, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    run = lambda image: session.run(None, {"image": image[None, None].astype(np.float32)})[0]
    right = sum(int(run(x).argmax()) == y for x, y in zip(test_x, test_y))
    accuracy = right / len(test_x)
    print(f"held-out accuracy {accuracy:.4f}, {os.path.getsize(path)} bytes")
    assert accuracy >= 0.97

    os.makedirs(os.path.join(HERE, "samples"), exist_ok=True)
    for digit in range(10):
        first = np.flatnonzero(test_y == digit)[0]
        save_pgm(os.path.join(HERE, "samples", f"{digit}.pgm"), test_x[first])
    sample = test_x[np.flatnonzero(test_y == 7)[0]]
    np.savez(os.path.join(HERE, "inputs.npz"), image=sample[None, None].astype(np.float32))
    np.savez(os.path.join(HERE, "outputs.npz"), digit=run(sample))


if __name__ == "__main__":
    main()
