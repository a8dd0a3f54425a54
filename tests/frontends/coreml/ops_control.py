"""Control flow, states and classifiers."""
import coremltools as ct
import numpy as np
import torch
import torch.nn.functional as F
from coremltools.converters.mil import Builder as mb

from record import case, program, save_program


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


@case
def branches(rng):
    x, y = floats(rng, 2, 3), floats(rng, 2, 3)

    def body(x, y):
        sum_ = mb.reduce_sum(x=x, axes=[0, 1])
        a = mb.cond(pred=mb.greater(x=sum_, y=0.0), _true_fn=lambda: mb.add(x=x, y=y), _false_fn=lambda: mb.mul(x=x, y=y))
        b, c = mb.cond(pred=mb.less(x=sum_, y=0.0), _true_fn=lambda: (mb.add(x=x, y=1.0), y), _false_fn=lambda: (mb.sub(x=x, y=y), x))
        return mb.identity(x=a, name="a"), mb.identity(x=b, name="b"), mb.identity(x=c, name="c")
    up = x.sum() > 0
    save_program("branches", program(mb, [mb.TensorSpec(x.shape), mb.TensorSpec(y.shape)], ["x", "y"], body, ct.target.iOS16), {"x": x, "y": y},
                 {"a": x + y if up else x * y, "b": x - y if x.sum() >= 0 else x + 1, "c": x if x.sum() >= 0 else y}, target=ct.target.iOS16)


@case
def loops(rng):
    """The body reads y, which stands outside."""
    x, y = np.abs(floats(rng, 2, 3)) + 0.1, np.abs(floats(rng, 2, 3)) + 0.1

    def body(x, y):
        z = mb.mul(x=y, y=0.5)
        i, s = mb.while_loop(_cond=lambda i, s: mb.less(x=mb.reduce_sum(x=s, axes=[0, 1]), y=20.0),
                             _body=lambda i, s: (mb.add(x=i, y=1.0), mb.add(x=s, y=z)), loop_vars=(mb.const(val=np.float32(0)), x))
        return mb.identity(x=s, name="s"), mb.identity(x=mb.expand_dims(x=i, axes=[0]), name="i")
    s, i = x.copy(), 0
    while s.sum() < 20:
        s, i = s + 0.5 * y, i + 1
    save_program("loops", program(mb, [mb.TensorSpec(x.shape), mb.TensorSpec(y.shape)], ["x", "y"], body, ct.target.iOS16), {"x": x, "y": y},
                 {"s": s, "i": np.array([i], np.float32)}, target=ct.target.iOS16)


@case
def classes(rng):
    x, w = floats(rng, 1, 4), floats(rng, 3, 4)
    prog = program(mb, [mb.TensorSpec(x.shape)], ["x"], lambda x: mb.softmax(x=mb.linear(x=x, weight=w), axis=-1, name="p"), ct.target.iOS16)
    p = F.softmax(torch.tensor(x @ w.T), -1)[0]
    save_program("classes", prog, {"x": x}, {"classLabel_probs": p, "classLabel": np.array([[20, 30, 50][int(p.argmax())]])}, target=ct.target.iOS16,
                 classifier_config=ct.ClassifierConfig([20, 30, 50]))


@case
def labels(rng):
    """Labels that are texts are no result."""
    x, w = floats(rng, 1, 4), floats(rng, 3, 4)
    prog = program(mb, [mb.TensorSpec(x.shape)], ["x"], lambda x: mb.softmax(x=mb.linear(x=x, weight=w), axis=-1, name="p"), ct.target.iOS16)
    save_program("labels", prog, {"x": x}, {"classLabel_probs": F.softmax(torch.tensor(x @ w.T), -1)[0]}, target=ct.target.iOS16,
                 classifier_config=ct.ClassifierConfig(["a", "b", "c"]))


@case
def converted(rng):
    """A network that coremltools converted from PyTorch, in float16, with an image for its input."""
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.n, self.b = torch.nn.Conv2d(3, 8, 3, 2, 1), torch.nn.BatchNorm2d(8), torch.nn.Conv2d(8, 8, 3, 1, 1, groups=8)
            self.c, self.d = torch.nn.LayerNorm(8), torch.nn.Linear(8, 5)

        def forward(self, x):
            x = F.hardswish(self.n(self.a(x)))
            x = F.interpolate(x + F.gelu(self.b(x)), scale_factor=2, mode="nearest")
            return self.d(self.c(x.flatten(2).transpose(1, 2))).softmax(-1).amax(1)
    torch.manual_seed(1)
    net, x = Net().eval(), rng.integers(0, 256, (3, 8, 8)).astype(np.float32)
    model = ct.convert(torch.jit.trace(net, torch.zeros(1, 3, 8, 8)), inputs=[ct.ImageType("image", (1, 3, 8, 8), 1 / 127, [-1, -1.1, -0.9])],
                       outputs=[ct.TensorType("y", dtype=np.float32)], minimum_deployment_target=ct.target.iOS16, skip_model_load=True)
    from record import save_package
    bias = torch.tensor([-1, -1.1, -0.9])[:, None, None]
    save_package("half_converted", model, {"image": x}, {"y": net((torch.tensor(x) / 127 + bias)[None])})
