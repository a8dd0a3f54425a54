"""Lists, images at computed places, random numbers."""
import coremltools as ct
import numpy as np
import torch
import torch.nn.functional as F
from coremltools.converters.mil import Builder as mb

from record import Network, case, program, save_program


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


@case
def lists(rng):
    """In a loop, too, where the run says the position."""
    x, i = floats(rng, 2, 3), np.array([1, -1], np.int32)

    def body(x, i):
        ls = mb.make_list(init_length=4, dynamic_length=False, elem_shape=(2, 3), dtype="fp32")
        ls = mb.list_write(ls=ls, index=0, value=x)
        ls = mb.list_scatter(ls=ls, indices=i, value=mb.stack(values=[mb.mul(x=x, y=2.0), mb.mul(x=x, y=3.0)], axis=0))
        k, ls = mb.while_loop(_cond=lambda k, ls: mb.less(x=k, y=3),
                              _body=lambda k, ls: (mb.add(x=k, y=1), mb.list_write(
                                  ls=ls, index=k, value=mb.add(x=mb.list_read(ls=ls, index=k), y=mb.cast(x=k, dtype="fp32")))),
                              loop_vars=(0, ls))
        return (mb.list_gather(ls=ls, indices=[3, 0, 2], name="some"), mb.list_read(ls=ls, index=1, name="one"),
                mb.expand_dims(x=mb.cast(x=mb.list_length(ls=ls), dtype="fp32"), axes=[0], name="length"))
    all_ = np.stack([x, 2 * x, np.zeros_like(x), 3 * x])
    all_[:3] += np.arange(3)[:, None, None]
    save_program("lists", program(mb, [mb.TensorSpec(x.shape), mb.TensorSpec(i.shape, dtype=ct.converters.mil.mil.types.int32)], ["x", "i"], body,
                                  ct.target.iOS16), {"x": x, "i": i},
                 {"some": all_[[3, 0, 2]], "one": all_[1], "length": np.array([4], np.float32)}, target=ct.target.iOS16)


@case
def places(rng):
    x, at, m = floats(rng, 2, 3, 5, 4), floats(rng, 2, 3, 2, 2) * 0.7, floats(rng, 2, 6) * 0.5
    how = {"sampling_mode": "bilinear", "padding_value": 0.0}

    def body(x, at, m):
        cells = mb.mul(x=mb.add(x=at, y=1.0), y=np.array([1.5, 2], np.float32))
        return (mb.resample(x=x, coordinates=at, padding_mode="constant", coordinates_mode="normalized_minus_one_to_one",
                            align_corners=False, name="a", **how),
                mb.resample(x=x, coordinates=at, padding_mode="border", coordinates_mode="normalized_minus_one_to_one",
                            align_corners=True, name="b", **how),
                mb.resample(x=x, coordinates=cells, padding_mode="constant", coordinates_mode="unnormalized",
                            align_corners=True, name="c", **how),
                mb.resample(x=x, coordinates=at, padding_mode="constant", coordinates_mode="normalized_minus_one_to_one",
                            align_corners=False, name="f", sampling_mode="bilinear", padding_value=-1.5),
                mb.affine(x=x, transform_matrix=m, output_height=4, output_width=6, padding_mode="constant",
                          coordinates_mode="normalized_minus_one_to_one", align_corners=True, name="d", **how),
                mb.affine(x=x, transform_matrix=m, output_height=4, output_width=6, padding_mode="constant",
                          coordinates_mode="normalized_minus_one_to_one", align_corners=False, name="e", **how))
    tx, ta, tm = (torch.tensor(a) for a in (x, at, m))

    def moved(align):
        return F.grid_sample(tx, F.affine_grid(tm.reshape(2, 2, 3), (2, 3, 4, 6), align_corners=align), align_corners=align)
    save_program("places", program(mb, [mb.TensorSpec(a.shape) for a in (x, at, m)], ["x", "at", "m"], body, ct.target.iOS16),
                 {"x": x, "at": at, "m": m},
                 {"a": F.grid_sample(tx, ta, align_corners=False), "b": F.grid_sample(tx, ta, padding_mode="border", align_corners=True),
                  "c": F.grid_sample(tx, ta, align_corners=True), "d": moved(True), "e": moved(False),
                  "f": F.grid_sample(tx, ta, align_corners=False) - 1.5 * (1 - F.grid_sample(torch.ones_like(tx), ta, align_corners=False))}, target=ct.target.iOS16)


def philox(seed, count):
    """The first numbers in [0, 1) of Philox 4x32-10, whose key is the seed."""
    out = []
    for i in range((count + 3) // 4):
        x, key = [i, 0, 0, 0], [seed & 0xffffffff, seed >> 32]
        for _ in range(10):
            a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
            x = [(b >> 32) ^ x[1] ^ key[0], b & 0xffffffff, (a >> 32) ^ x[3] ^ key[1], a & 0xffffffff]
            key = [(key[0] + 0x9E3779B9) & 0xffffffff, (key[1] + 0xBB67AE85) & 0xffffffff]
        out += x
    return np.array([v & 0x7fffff for v in out], np.float32) / np.float32(1 << 23)


def normal(seed, count):
    u = philox(seed, count + 3).reshape(-1, 2)
    size, turn = np.sqrt(-2 * np.log(np.maximum(u[:, 0], 1e-7))), 2 * np.pi * u[:, 1]
    return np.stack([np.sin(turn) * size, np.cos(turn) * size], 1).reshape(-1)[:count].astype(np.float32)


@case
def random(rng):
    x = floats(rng, 2, 5)

    def body(x):
        return (mb.add(x=mb.random_uniform(shape=[2, 5], low=-1.0, high=3.0, seed=7), y=x, name="a"),
                mb.add(x=mb.random_normal(shape=[2, 5], mean=2.0, stddev=0.5, seed=8), y=x, name="b"),
                mb.add(x=mb.random_bernoulli(shape=[2, 5], prob=0.3, seed=9), y=x, name="c"),
                mb.random_categorical(x=x, mode="logits", size=6, seed=10, name="d"),
                mb.random_categorical(x=mb.softmax(x=x), mode="probs", size=6, seed=11, name="e"))
    p = np.cumsum(F.softmax(torch.tensor(x), -1).numpy(), -1)[:, None]

    def drawn(seed):
        return (p <= philox(seed, 12)[:12].reshape(2, 6, 1)).sum(-1)
    save_program("random", program(mb, [mb.TensorSpec(x.shape)], ["x"], body, ct.target.iOS16), {"x": x},
                 {"a": philox(7, 10)[:10].reshape(2, 5) * 4 - 1 + x, "b": normal(8, 10).reshape(2, 5) * 0.5 + 2 + x,
                  "c": (philox(9, 10)[:10].reshape(2, 5) < 0.3) + x, "d": drawn(10).astype(np.float32), "e": drawn(11).astype(np.float32)},
                 target=ct.target.iOS16)


@case
def nd_random(rng):
    """Layers; float32 is what all of them give."""
    x = floats(rng, 2, 5)
    n = Network("nd_random", {"x": x})
    b = n.b
    b.add_get_shape("shape", "x", n.out("shape", np.array([2, 5], np.float32)))
    for kind, way, more in (("like", {"input_name": "x"}, {}), ("static", {}, {"output_shape": (2, 5)}), ("dynamic", {"input_names": ["shape"]}, {})):
        feeds = list(way.values())
        for op, settings, want in (("normal", {"mean": 2.0, "stddev": 0.5, "seed": 8}, normal(8, 10) * 0.5 + 2),
                                   ("uniform", {"minval": -1.0, "maxval": 3.0, "seed": 7}, philox(7, 10)[:10] * 4 - 1),
                                   ("bernoulli", {"prob": 0.3, "seed": 9}, philox(9, 10)[:10] < 0.3)):
            out = n.out(f"{op}_{kind}", np.asarray(want, np.float32).reshape(2, 5))
            getattr(b, f"add_random_{op}_{kind}")(out, *feeds, output_name=out, **settings, **more)
    p = np.cumsum(F.softmax(torch.tensor(x) / 2, -1).numpy(), -1)[:, None]
    b.add_categorical_distribution("dice", "x", n.out("dice", (p <= philox(10, 12)[:12].reshape(2, 6, 1)).sum(-1).astype(np.float32)), 6, True, 1e-10, 2.0, 10)
    n.save()
