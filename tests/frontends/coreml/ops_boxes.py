"""Boxes of which the best are kept, and slices that are written; results by NumPy."""
import coremltools as ct
import numpy as np
from coremltools.models import datatypes
from coremltools.models.neural_network import NeuralNetworkBuilder
from coremltools.proto import Model_pb2

from record import Network, case, operators, save_network


def boxes_of(rng, n, count):
    """Clusters of boxes (x, y, width, height) that overlap."""
    middle = np.repeat(rng.uniform(0, 10, (n, count // 3, 2)), 3, 1)
    return np.concatenate([middle + rng.uniform(-0.4, 0.4, middle.shape), rng.uniform(1.5, 2.5, middle.shape)], -1).astype(np.float32)


def overlap(a, b):
    low = np.maximum(a[:2] - a[2:] / 2, b[:2] - b[2:] / 2)
    high = np.minimum(a[:2] + a[2:] / 2, b[:2] + b[2:] / 2)
    both = np.prod(np.maximum(high - low, 0))
    return both / (np.prod(a[2:]) + np.prod(b[2:]) - both)


def kept(boxes, scores, share, least, most, apart):
    """Positions of the boxes that stay, best first."""
    best, own, out = scores.max(-1), scores.argmax(-1), []
    for i in np.argsort(-best, kind="stable"):
        if best[i] >= least and all(overlap(boxes[i], boxes[k]) <= share or (apart and own[i] != own[k]) for k in out):
            out.append(i)
    return out[:most]


def padded(boxes, scores, share, least, most, apart, one=False):
    n, c = boxes.shape[0], scores.shape[-1]
    out = [np.zeros((n, most, 4), "f4"), np.zeros((n, most, c), "f4"), np.full((n, most), -1, "i4"), np.zeros(n, "i4")]
    for i in range(n):
        at = kept(boxes[i], scores[i], share, least, most, apart)
        at = at or ([scores[i].max(-1).argmax()] if one else [])
        for o, v in zip(out, (boxes[i, at], scores[i, at], at, len(at))):
            if o.ndim == 1:
                o[i] = v
            else:
                o[i, :len(at)] = v
    return out


@case
def suppressed(rng):
    b, s = boxes_of(rng, 2, 12), rng.uniform(0, 1, (2, 12, 3)).astype(np.float32)

    def old(m, v, **more):
        return m.non_maximum_suppression(boxes=v["b"], scores=v["s"], iou_threshold=0.4, score_threshold=0.6, max_boxes=5, **more)
    operators("suppressed", {"b": b, "s": s}, [
        ("across", old, lambda t: padded(b, s, 0.4, 0.6, 5, False)),
        ("apart", lambda m, v: old(m, v, per_class_suppression=True), lambda t: padded(b, s, 0.4, 0.6, 5, True)),
    ], opset=ct.target.iOS16, target=ct.target.iOS16)


@case
def suppressed_rows(rng):
    """Since iOS 17 boxes lie along the last dimension, and no score is too low."""
    b, s = boxes_of(rng, 2, 12), rng.uniform(0, 1, (2, 12, 3)).astype(np.float32)

    def ref(apart, most):
        out = padded(b, s, 0.4, -1, most, apart)
        return out[0].transpose(0, 2, 1), out[1].transpose(0, 2, 1), out[2]
    operators("suppressed_rows", {"b": b.transpose(0, 2, 1).copy(), "s": s.transpose(0, 2, 1).copy()}, [
        ("across", lambda m, v: m.non_maximum_suppression(boxes=v["b"], scores=v["s"], iou_threshold=0.4, max_boxes=14),
         lambda t: ref(False, 14)),
        ("apart", lambda m, v: m.non_maximum_suppression(boxes=v["b"], scores=v["s"], iou_threshold=0.4, max_boxes=4,
                                                         per_class_suppression=True), lambda t: ref(True, 4)),
    ])


@case
def slices_written(rng):
    x, y, z = (rng.standard_normal(s).astype(np.float32) for s in ((2, 5, 4), (2, 2, 4), (1, 3, 2)))
    one, two, three = x.copy(), x.copy(), x.copy()
    one[:, 1:3] = y
    two[1:2, 2:, 1:3] = z
    three[1, -2, :] = x[0, 0]
    zero = np.zeros(3, np.int32)
    operators("slices_written", {"x": x, "y": y, "z": z}, [
        ("rows", lambda m, v: m.slice_update(x=v["x"], update=v["y"], begin=np.array([0, 1, 0], np.int32), end=np.array([0, 3, 0], np.int32),
                                             begin_mask=[True, False, True], end_mask=[True, False, True]), lambda t: one),
        ("block", lambda m, v: m.slice_update(x=v["x"], update=v["z"], begin=np.array([1, 2, 1], np.int32),
                                              end=np.array([2, 5, -1], np.int32)), lambda t: two),
        ("line", lambda m, v: m.slice_update(x=v["x"], update=m.slice_by_index(x=v["x"], begin=zero, end=np.array([1, 1, 4], np.int32),
                                                                               squeeze_mask=[True, True, False]),
                                             begin=np.array([1, -2, 0], np.int32), end=np.array([0, 0, 4], np.int32),
                                             squeeze_mask=[True, True, False]), lambda t: three),
    ])


@case
def layer_suppressed(rng):
    """Nothing is above the least score in the second picture: its best box stays."""
    b, s = boxes_of(rng, 2, 9), rng.uniform(0, 1, (2, 9, 2)).astype(np.float32)
    s[1] *= 0.1
    n = Network("layer_suppressed", {"b": b, "s": s})
    for name, apart in (("across", False), ("apart", True)):
        names = [f"{name}_{k}" for k in ("boxes", "scores", "indices", "count")]
        n.b.add_nms(name, ["b", "s"], names, 0.3, 0.5, 4, apart)
        for k, v in zip(names, padded(b, s, 0.3, 0.5, 4, apart, one=True)):
            n.out(k, v.astype(np.float32))
    n.save()


@case
def detector(rng):
    """A network, then the model that picks boxes; its least score is an input, and how many boxes there are the run knows."""
    b, s = boxes_of(rng, 1, 12)[0], rng.uniform(0, 1, (12, 3)).astype(np.float32)
    first = NeuralNetworkBuilder([("b", datatypes.Array(12, 4)), ("s", datatypes.Array(12, 3))],
                                 [("boxes", datatypes.Array(12, 4)), ("scores", datatypes.Array(12, 3))],
                                 disable_rank5_shape_mapping=True)
    first.add_elementwise("half", "b", "boxes", "MULTIPLY", alpha=0.5)
    first.add_activation("same", "LINEAR", "s", "scores", params=[1.0, 0.0])
    last = Model_pb2.Model()
    last.specificationVersion = 3
    for list_, name in ((last.description.input, "boxes"), (last.description.input, "scores"), (last.description.output, "coordinates"),
                        (last.description.output, "confidence")):
        f = list_.add()
        f.name = name
        f.type.multiArrayType.dataType = ct.proto.FeatureTypes_pb2.ArrayFeatureType.FLOAT32
    f = last.description.input.add()
    f.name = "confidenceThreshold"
    f.type.doubleType.SetInParent()
    f.type.isOptional = True
    m = last.nonMaximumSuppression
    m.confidenceInputFeatureName, m.coordinatesInputFeatureName = "scores", "boxes"
    m.confidenceOutputFeatureName, m.coordinatesOutputFeatureName = "confidence", "coordinates"
    m.iouThreshold, m.confidenceThreshold = 0.35, 0.9
    m.confidenceThresholdInputFeatureName = "confidenceThreshold"
    m.pickTop.perClass = True
    for label in "abc":
        m.stringClassLabels.vector.append(label)
    p = Model_pb2.Model()
    p.specificationVersion = 3
    p.description.input.extend([*first.spec.description.input, last.description.input[2]])
    p.description.output.extend(last.description.output)
    p.pipeline.models.extend([first.spec, last])
    at = kept(b / 2, s, 0.35, 0.6, 12, True)
    save_network("detector", p, {"b": b, "s": s, "confidenceThreshold": np.array([0.6])}, {"coordinates": b[at] / 2, "confidence": s[at]})
