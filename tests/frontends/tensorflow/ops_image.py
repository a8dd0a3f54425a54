"""Images and boxes."""
import numpy as np
from record import model, raw


@model
def resizes(m):
    x = m.input("x", m.f32(2, 5, 4, 3))
    for op in "ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic":
        for i, (corners, half) in enumerate([(False, False), (True, False), (False, True)]):
            for h, w in (8, 7), (3, 2):
                m.out(f"{op}_{i}_{h}", getattr(raw, op)(images=x, size=[h, w], align_corners=corners,
                                                        half_pixel_centers=half))
    i = m.input("i", m.ints(0, 255, 1, 4, 4, 3, dtype=np.uint8))
    m.out("ResizeBilinear_u8", raw.ResizeBilinear(images=i, size=[6, 5]))
    m.out("ResizeNearest_u8", raw.ResizeNearestNeighbor(images=i, size=[6, 5]))


@model
def crops(m):
    x = m.input("x", m.f32(2, 6, 7, 3))
    boxes = m.input("boxes", np.float32([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [-0.2, 0.3, 0.5, 1.3], [0.8, 0.9, 0.1, 0.2]]))
    at = m.input("at", np.int32([0, 1, 1, 0]))
    for method in "bilinear", "nearest":
        for size in (4, 5), (1, 3):
            m.out(f"CropAndResize_{method}_{size[0]}", raw.CropAndResize(
                image=x, boxes=boxes, box_ind=at, crop_size=size, method=method, extrapolation_value=-2))


def boxes_of(m, *shape):
    p = m.random.uniform(0, 0.7, shape + (2,))
    return np.concatenate([p, p + m.random.uniform(0.1, 0.4, shape + (2,))], -1).astype(np.float32)


@model
def best_boxes(m):
    b = m.input("boxes", boxes_of(m, 12))
    s = m.input("scores", m.f32(12, lo=0))
    m.out("NonMaxSuppressionV2", raw.NonMaxSuppressionV2(boxes=b, scores=s, max_output_size=5, iou_threshold=0.3))
    v3 = dict(boxes=b, scores=s, iou_threshold=0.3, score_threshold=0.4)
    m.out("NonMaxSuppressionV3", raw.NonMaxSuppressionV3(max_output_size=20, **v3))
    m.out("NonMaxSuppressionV4", *raw.NonMaxSuppressionV4(max_output_size=20, pad_to_max_output_size=True, **v3))
    m.out("NonMaxSuppressionV5", *raw.NonMaxSuppressionV5(max_output_size=4, soft_nms_sigma=np.float32(0), **v3))
    q = m.input("q", boxes_of(m, 2, 9, 1))
    c = m.input("c", m.f32(2, 9, 3, lo=0))
    for i, (per_class, total, pad) in enumerate([(3, 5, False), (4, 40, False), (2, 40, True)]):
        m.out(f"CombinedNonMaxSuppression_{i}", *raw.CombinedNonMaxSuppression(
            boxes=q, scores=c, max_output_size_per_class=per_class, max_total_size=total, iou_threshold=0.3,
            score_threshold=0.2, pad_per_class=pad))
    q3 = m.input("q3", boxes_of(m, 2, 9, 3))
    m.out("CombinedNonMaxSuppression_each", *raw.CombinedNonMaxSuppression(
        boxes=q3, scores=c, max_output_size_per_class=3, max_total_size=6, iou_threshold=0.3, score_threshold=0.2))


@model
def picture(m):
    """What decodes a picture is an input, the picture."""
    import tensorflow as tf
    cells = m.ints(0, 255, 6, 8, 3, dtype=np.uint8)
    file = tf.compat.v1.placeholder(tf.string, [], name="file")
    m.feeds[file] = png_of(cells)
    y = raw.DecodePng(contents=file, channels=3, name="decoded")
    m.instead["decoded:0"] = cells
    m.out("bright", raw.Mul(x=raw.Cast(x=y, DstT=np.float32), y=np.float32(0.5)))


def png_of(cells):
    import struct
    import zlib
    h, w, _ = cells.shape
    part = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + row.tobytes() for row in cells)
    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)) +
            part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))
