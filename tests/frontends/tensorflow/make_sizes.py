#!/usr/bin/env python3
"""Writes sizes/: graphs whose dimensions a run decides, with TensorFlow's results for several sizes (needs the package
tensorflow).

    make_sizes.py [NAME ..]        those alone

sizes/cases.txt has for each its name, how many sizes were recorded, and the options that bound them."""
import os
import sys

from record import HERE, Model, np, raw, tf

FOLDER = os.path.join(HERE, "sizes")
CASES = {}


def case(*options):
    """A function of a Model and its image, which is compiled with each of the options."""
    def add(f):
        CASES[f.__name__] = (f, options)
        return f
    return add


def halved(x, w, times=1):
    """Padded as layers of Keras do it: the height becomes (H + 1) // 2 each time."""
    for _ in range(times):
        x = tf.nn.relu(tf.nn.conv2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), w, 2, "VALID"))
    return x


@case("--dim H=33..96 --dim W=33..96", "--dim H=1.. --dim W=1..")
def pyramid(m, x):
    """Two levels of a pyramid: one of (H + 15) // 16 rows, the other of (H + 31) // 32, which is resized to the first."""
    fine = halved(halved(x, m.f32(3, 3, 3, 4)), m.f32(3, 3, 4, 4, lo=-0.4, hi=0.4), 3)
    coarse = halved(fine, m.f32(3, 3, 4, 4))
    size = tf.shape(fine)[1:3]
    for corners, half in (False, False), (True, False), (False, True):
        at = dict(images=coarse, size=size, align_corners=corners, half_pixel_centers=half)
        m.out(f"near_{corners:d}{half:d}", fine + raw.ResizeNearestNeighbor(**at))
        m.out(f"linear_{corners:d}{half:d}", fine + raw.ResizeBilinear(**at))
    m.out("back", coarse - raw.ResizeBilinear(images=fine, size=tf.shape(coarse)[1:3], half_pixel_centers=True))


@case("--dim H=9..40 --dim W=9..40", "--dim H=1.. --dim W=1..")
def best(m, x):
    """As many of the boxes as there are, at most: the size of the image decides how many are looked at."""
    x = halved(halved(x, m.f32(3, 3, 3, 4)), m.f32(3, 3, 4, 4))
    x = tf.reshape(tf.nn.conv2d(x, m.f32(1, 1, 4, 10), 1, "SAME"), [-1, 5])
    at = tf.sigmoid(x[:, :4])
    boxes = tf.concat([at[:, :2], at[:, :2] + at[:, 2:]], 1)
    scores = tf.sigmoid(x[:, 4])
    all_of = tf.shape(boxes)[0]
    v3 = dict(boxes=boxes, scores=scores, iou_threshold=0.4, score_threshold=0.3)
    kept = raw.NonMaxSuppressionV3(max_output_size=all_of, name="kept", **v3)
    m.out("boxes", tf.gather(boxes, kept))
    m.out("scores", tf.gather(scores, kept))
    m.out("half", raw.NonMaxSuppressionV3(max_output_size=all_of // 2, name="few", **v3))
    m.out("seven", raw.NonMaxSuppressionV3(max_output_size=7, name="seven_of", **v3))
    for name, most in ("padded", all_of), ("padded_half", (all_of + 1) // 2), ("padded_fixed", 500):
        m.out(name, *raw.NonMaxSuppressionV4(max_output_size=most, pad_to_max_output_size=True, **v3))
    m.out("faded", *raw.NonMaxSuppressionV5(max_output_size=all_of, soft_nms_sigma=np.float32(0), name="five", **v3))


SIZES = {"pyramid": [(33, 96), (64, 64), (65, 47), (96, 80)], "best": [(9, 9), (40, 40), (13, 31)]}


def main():
    os.makedirs(FOLDER, exist_ok=True)
    lines = []
    for name, (f, options) in CASES.items():
        lines += [f"{name} {len(SIZES[name])} {o} --shape x:0:[1,H,W,3]" for o in options]
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        m = Model(name)
        with m.graph.as_default():
            x = tf.compat.v1.placeholder(tf.float32, [1, None, None, 3], name="x")
            f(m, x)
        tf.io.write_graph(m.graph.as_graph_def(), FOLDER, name + ".pb", as_text=False)
        with tf.compat.v1.Session(graph=m.graph) as s:
            for k, (h, w) in enumerate(SIZES[name]):
                value = m.f32(1, h, w, 3)
                path = os.path.join(FOLDER, f"{name}.{k}")
                results = s.run(m.outs, {x: value})
                np.savez_compressed(path + ".in.npz", **{"x:0": value})
                np.savez_compressed(path + ".out.npz", **{t.name: np.asarray(v) for t, v in zip(m.outs, results)})
    with open(os.path.join(FOLDER, "cases.txt"), "w") as f:
        f.write("\n".join(lines) + "\n")


main()
