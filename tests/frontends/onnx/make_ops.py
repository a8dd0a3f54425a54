#!/usr/bin/env python3
"""Writes more of models/run_*.onnx: make_ops.py (needs onnx, numpy, onnxruntime).

Operators of later opsets, other domains, and forms that few models have.  What ONNX Runtime lacks is
recorded from the standard's own evaluator (onnx.reference).
"""
import os
import zlib

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper as nh
from make import HERE, SEEDS, F, I, init, model, node, save, value


def evaluate(m, outs, feeds):
    so = ort.SessionOptions()
    so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    so.log_severity_level = 4
    return ort.InferenceSession(m.SerializeToString(), so, providers=["CPUExecutionProvider"]).run(outs, feeds)


def refer(m, outs, feeds):
    from onnx.reference import ReferenceEvaluator
    return ReferenceEvaluator(m).run(outs, feeds)


def case(name, nodes, feeds, outs="y", opset=17, domains=(), by=evaluate, version=1, **inits):
    ins = [value(k, h.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()]
    outs = outs.split()
    m = model(nodes, ins, [onnx.ValueInfoProto(name=o) for o in outs], [init(k, v) for k, v in inits.items()], opset, domains)
    for i in m.opset_import:
        i.version = version if i.domain == "ai.onnx.ml" else i.version
    save("run_" + name, m)
    np.savez_compressed(os.path.join(HERE, "run_" + name + ".npz"), **{"in." + k: v for k, v in feeds.items()},
                        **{"out." + k: v for k, v in zip(outs, by(m, outs, feeds))})


rng = np.random.default_rng(2)


def f(*s):
    return rng.standard_normal(s).astype(np.float32)


def ints(*v):
    return np.array(v, np.int64)


def elements():
    case("bit_cast", [node("BitCast", "x", "a", to=T.INT32), node("BitCast", "a", "b", to=F), node("BitCast", "c", "d", to=T.UINT8)],
         {"x": f(3, 2), "c": np.array([True, False])}, "a b d", opset=26, by=refer)
    case("swiglu", [node("SwiGLU", "x z", "a"), node("SwiGLU", "x z", "b", alpha=1.5)], {"x": f(2, 5), "z": f(2, 5)}, "a b", opset=28,
         by=refer)
    case("cumprod", [node("CumProd", "x ax", "a"), node("CumProd", "x ax", "b", exclusive=1, reverse=1)], {"x": f(2, 5)}, "a b",
         opset=26, by=refer, ax=np.array(-1, np.int64))
    case("cumsum_axis", [node("CumSum", "x ax", "a", exclusive=1), node("CumSum", "x ax", "b", reverse=1)],
         {"x": f(2, 3, 4), "ax": np.array(-2, np.int32)}, "a b")
    case("det", [node("Det", "x", "a"), node("Det", "z", "b"), node("Det", "w", "c")],
         {"x": f(2, 3, 4, 4), "z": f(1, 1), "w": np.array([[[0, 1, 2], [0, 0, 3], [4, 1, 1]], [[1, 2, 3], [2, 4, 6], [0, 1, 1]]], np.float32)},
         "a b c")


def state():
    causal = lambda *k, **a: node("CausalConvWithState", *k, **a)
    case("causal_conv", [causal("x w b p", "a s", activation="silu"), causal("x w", "c t"), causal("x one", "d u")],
         {"x": f(2, 3, 4), "p": f(2, 3, 2)}, "a s c t d u", opset=27, by=refer, w=f(3, 1, 3), b=f(3), one=f(3, 1, 1))
    case("causal_conv_short", [causal("x w", "a s")], {"x": f(1, 2, 2)}, "a s", opset=27, by=refer, w=f(2, 1, 5))
    linear = lambda rule, ins, outs, **a: node("LinearAttention", ins, outs, update_rule=rule, kv_num_heads=2, **a)
    qkv = {"q": f(1, 3, 8), "k": f(1, 3, 4), "v": f(1, 3, 6)}
    case("linear_attention", [linear("linear", "q k v", "a s", q_num_heads=4), linear("gated", "q k v s d", "b t", q_num_heads=4, scale=0.5),
                              linear("gated_delta", "q k v t e z", "c u", q_num_heads=4)], qkv | {"z": abs(f(1, 3, 1))}, "a b c u",
         opset=27, by=refer, d=-abs(f(1, 3, 4)), e=-abs(f(1, 3, 2)))
    case("linear_attention_half", [linear("delta", "q k v _ _ z", "a s", q_num_heads=4)],
         {k: v.astype(np.float16) for k, v in (qkv | {"z": abs(f(1, 3, 2))}).items()}, "a s", opset=27, by=refer)
    write = lambda *k, **a: node("TensorScatter", *k, **a)
    case("tensor_scatter", [write("c u i", "a"), write("c u j", "b", mode="circular"), write("c u", "d"), write("e v i", "g", axis=1)],
         {"c": f(2, 2, 5, 3), "u": f(2, 2, 2, 3), "e": f(2, 4), "v": f(2, 1), "i": ints(0, 3), "j": ints(4, 2)}, "a b d g", opset=24,
         by=refer)


def patches():
    case("col2im", [node("Col2Im", "x size block", "a", strides=[2, 1], pads=[1, 0, 0, 1]),
                    node("Col2Im", "z size2 block", "b", dilations=[1, 2])], {"x": f(1, 8, 12), "z": f(2, 4, 12)}, "a b", opset=18,
         size=ints(5, 4), size2=ints(4, 6), block=ints(2, 2))
    case("col2im_line", [node("Col2Im", "x size block", "y", strides=[2])], {"x": f(2, 6, 3)}, opset=18, size=ints(7), block=ints(3))
    whole = np.round(f(1, 2, 5, 6) * 2)
    case("max_pool_where", [node("MaxPool", "x", "a i", kernel_shape=[2, 3], strides=[2, 1], pads=[1, 0, 0, 2]),
                            node("MaxPool", "x", "b j", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, storage_order=1),
                            node("MaxPool", "x", "c k", kernel_shape=[2, 2], dilations=[2, 3])], {"x": whole}, "a i b j c k")
    case("max_pool_where_line", [node("MaxPool", "x", "a i", kernel_shape=[2], pads=[1, 1]),
                                 node("MaxPool", "z", "b j", kernel_shape=[2, 2, 2], strides=[1, 2, 1])],
         {"x": np.array([[[-np.inf, -np.inf, 2, 2]]], np.float32), "z": f(1, 2, 3, 4, 3)}, "a i b j")
    case("max_unpool", [node("MaxPool", "x", "p i", kernel_shape=[2, 2], strides=[2, 2]),
                        node("MaxUnpool", "p i", "y", kernel_shape=[2, 2], strides=[2, 2])], {"x": f(1, 2, 4, 6)})
    case("max_unpool_larger", [node("MaxUnpool", "p i s", "y", kernel_shape=[2, 2], strides=[2, 2])],
         {"p": np.array([[[[1, 2], [3, 4]]]], np.float32), "i": ints(5, 7, 13, 15).reshape(1, 1, 2, 2)}, by=refer, s=ints(1, 1, 5, 5))


def deformed():
    roi = lambda *k, **a: node("RoiAlign", *k, output_height=2, output_width=3, **a)
    boxes = {"r": np.array([[0, 1, 4, 5], [-2, -1, 3.5, 2]], np.float32)}
    case("roi_align", [roi("x r i", "a", sampling_ratio=2, spatial_scale=0.5), roi("x r i", "b", mode="max")], {"x": f(2, 2, 5, 6)} | boxes,
         "a b", i=ints(1, 0))
    case("roi_align_10", [roi("x r i", "y")], {"x": f(2, 2, 5, 6)} | boxes, opset=10, i=ints(1, 0))
    conv = lambda *k, **a: node("DeformConv", *k, **a)
    case("deform_conv", [conv("x w o b m", "y", group=2, offset_group=2, strides=[2, 1], pads=[1, 0, 1, 1])],
         {"x": f(1, 4, 5, 6), "o": f(1, 16, 3, 6), "m": f(1, 8, 3, 6)}, opset=19, w=f(4, 2, 2, 2), b=f(4))
    case("deform_conv_plain", [conv("x w o", "y", dilations=[1, 2])], {"x": f(2, 3, 4, 5), "o": f(2, 8, 3, 3)}, opset=19, w=f(2, 3, 2, 2))


def attention():
    ref = lambda name, *nodes: h.make_graph(list(nodes), name, [value("s", F, None)], [value("t", F, None)])
    flex = lambda ins, out, **a: node("FlexAttention", ins, out, domain="ai.onnx.preview", **a)
    half = ref("half", node("Mul", "s k", "t"))
    half.node.insert(0, node("Constant", "", "k", value=init("c", np.float32(0.5))))
    case("flex_attention", [flex("q k v", "a"), flex("q k v", "b", scale=0.25, score_mod=ref("tanh", node("Tanh", "s", "t")),
                                                    prob_mod=half)],
         {"q": f(1, 4, 3, 5), "k": f(1, 2, 6, 5), "v": f(1, 2, 6, 2)}, "a b", opset=24, domains=["ai.onnx.preview"], by=refer)


def signals():
    case("mel", [node("MelWeightMatrix", "bands length rate lo hi", "m"), node("MatMul", "x m", "y")], {"x": f(2, 9)}, bands=ints(8)[0],
         length=ints(16)[0], rate=ints(8192)[0], lo=np.float32(0), hi=np.float32(4096))


def forms():
    crop = dict(coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.0)
    case("resize_crop", [node("Resize", "x r _ z", "a", mode="linear", **crop), node("Resize", "x r _ z", "b", **crop),
                         node("Resize", "x q s", "c", mode="cubic", **crop)], {"x": f(1, 1, 4, 5)}, "a b c", opset=13,
         r=np.array([0, 0, 0.15, -0.3, 1, 1, 0.8, 1.1], np.float32), q=np.array([0, 0, 0.1, 0, 1, 1, 1, 1], np.float32),
         z=ints(1, 1, 3, 6), s=np.array([1, 1, 0.5, 1.5], np.float32))
    case("resize_exclude", [node("Resize", "x _ s", "y", mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5)], {"x": f(1, 2, 4, 5)}, opset=13,
         s=np.array([1, 1, 0.8, 1.7], np.float32))
    smooth = lambda *k, **a: node("Resize", *k, antialias=1, **a)
    case("resize_antialias", [smooth("x _ s", "a", mode="linear"), smooth("x _ s", "b", mode="cubic", exclude_outside=1),
                              smooth("x _ _ z", "c", mode="linear", axes=[3, 2])], {"x": f(1, 2, 8, 9)}, "a b c", opset=18, by=refer,
         s=np.array([1, 1, 0.6, 0.4], np.float32), z=ints(4, 11))
    case("grid_sample_volume", [node("GridSample", "x g", "a", align_corners=1), node("GridSample", "x g", "b", mode="nearest"),
                                node("GridSample", "x g", "c", padding_mode="border")],
         {"x": f(1, 2, 3, 4, 2), "g": f(1, 2, 2, 3, 3)}, "a b c", opset=20, by=refer)
    case("lp_pool", [node("LpPool", "x", "a", kernel_shape=[2, 3], p=3, pads=[1, 0, 0, 1]), node("LpPool", "z", "b", kernel_shape=[2], p=4),
                     node("LpPool", "v", "c", kernel_shape=[2, 2, 2], p=1, strides=[1, 2, 1]), node("GlobalLpPool", "x", "d", p=3)],
         {"x": f(1, 2, 4, 5), "z": f(1, 2, 6), "v": f(1, 1, 3, 4, 3)}, "a b c d", opset=18)
    case("lp_pool_hangs_over", [node("LpPool", "x", "y", kernel_shape=[3], strides=[2], ceil_mode=1, p=1)], {"x": f(1, 2, 6)}, opset=18)
    case("batch_norm_training", [node("BatchNormalization", "x s b m v", "y rm rv", training_mode=1, momentum=0.8)], {"x": f(3, 2, 4)},
         "y rm rv", opset=15, by=refer, s=f(2), b=f(2), m=f(2), v=abs(f(2)))
    case("conv_transpose_volume", [node("ConvTranspose", "x w b", "a", strides=[2, 1, 2], pads=[1, 0, 1, 0, 1, 0], output_padding=[1, 0, 1]),
                                   node("ConvTranspose", "x w", "c", dilations=[3, 1, 1])],
         {"x": f(1, 2, 3, 3, 2)}, "a c", w=f(2, 1, 2, 2, 3), b=f(1))
    case("dft_real", [node("DFT", "x _ ax", "s", onesided=1), node("DFT", "s _ ax", "a", onesided=1, inverse=1),
                      node("DFT", "s n ax", "b", onesided=1, inverse=1)], {"x": f(2, 6, 1)}, "s a b", opset=20, by=refer, ax=ints(1)[0],
         n=ints(5)[0])
    case("einsum_diagonal", [node("Einsum", "x", "a", equation="ii->i"), node("Einsum", "x", "b", equation="ii"),
                             node("Einsum", "z x", "c", equation="bikij,ii->bk")], {"x": f(3, 3), "z": f(2, 3, 2, 3, 2)}, "a b c")
    case("quantize_blocks", [node("QuantizeLinear", "x s z", "a", axis=1, block_size=2), node("QuantizeLinear", "x t", "b", axis=0, block_size=3,
                                                                                             output_dtype=T.INT8)],
         {"x": f(3, 4) * 9}, "a b", opset=21, s=abs(f(3, 2)), z=np.arange(6, dtype=np.uint8).reshape(3, 2), t=abs(f(1, 4)))


def trees():
    ml = lambda op, ins, outs, **a: node(op, ins, outs, domain="ai.onnx.ml", **a)
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]

    def forest(count, depth, features, kinds=modes):
        """Nodes of full trees, cut at random, and their leaves."""
        lists = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
                                 "missing_value_tracks_true")}
        leaves = []
        for t in range(count):
            for i in range(2 ** (depth + 1) - 1):
                leaf = i >= 2 ** depth - 1 or (i > 1 and rng.random() < 0.2)
                row = (t, i, int(rng.integers(features)), float(np.round(rng.standard_normal(), 1)),
                       "LEAF" if leaf else kinds[rng.integers(len(kinds))], 0 if leaf else 2 * i + 1, 0 if leaf else 2 * i + 2,
                       int(rng.integers(2)))
                for k, v in zip(lists, row):
                    lists[k].append(v)
                if leaf:
                    leaves.append((t, i))
        keep, alive = [], set()
        for j, (t, i, m) in enumerate(zip(lists["treeids"], lists["nodeids"], lists["modes"])):
            if i == 0 or (t, i) in alive:
                keep.append(j)
                if m != "LEAF":
                    alive |= {(t, 2 * i + 1), (t, 2 * i + 2)}
        number = {}
        for j in keep:  # from 0 on in each tree
            t = lists["treeids"][j]
            number[t, lists["nodeids"][j]] = sum(k[0] == t for k in number)
        for k in ("truenodeids", "falsenodeids", "nodeids"):
            lists[k] = [number.get((t, i), 0) for t, i in zip(lists["treeids"], lists[k])]
        return ({"nodes_" + k: [v[j] for j in keep] for k, v in lists.items()}, [(t, number[t, i]) for t, i in leaves if (t, i) in number])

    x = np.round(f(7, 4), 1)
    x[2, 1] = np.nan
    def regress(name, feeds, targets=1, depth=2, count=2, opset_ml=1, **a):
        nodes, leaves = forest(count, depth, 4)
        w = [float(v) for v in np.round(rng.standard_normal(len(leaves)), 2)]
        case(name, [ml("TreeEnsembleRegressor", "x", "y", n_targets=targets, target_treeids=[l[0] for l in leaves],
                       target_nodeids=[l[1] for l in leaves], target_ids=[int(rng.integers(targets)) for _ in leaves],
                       target_weights=w, **nodes, **a)], feeds, domains=["ai.onnx.ml"])

    def classify(name, labels, ids, weights, depth=1, count=3, by=evaluate, **a):
        nodes, leaves = forest(count, depth, 4, modes[:1])
        case(name, [ml("TreeEnsembleClassifier", "x", "y z", classlabels_int64s=labels, class_treeids=[l[0] for l in leaves],
                       class_nodeids=[l[1] for l in leaves], class_ids=[ids(i) for i in range(len(leaves))],
                       class_weights=[float(weights()) for _ in leaves], **nodes, **a)], {"x": x}, "y z", domains=["ai.onnx.ml"], by=by)

    regress("trees", {"x": x}, base_values=[0.5])
    regress("trees_average", {"x": x}, targets=3, aggregate_function="AVERAGE", post_transform="SOFTMAX")
    regress("trees_max", {"x": x}, aggregate_function="MAX", count=1, depth=3)
    classify("trees_classes", [5, -2, 9], lambda i: i % 3, rng.standard_normal, post_transform="SOFTMAX")
    classify("trees_probability", [3, 8], lambda i: 0, lambda: rng.random() / 3)
    classify("trees_logistic", [0, 1], lambda i: 0, rng.standard_normal, post_transform="LOGISTIC")
    classify("trees_two", [3, 8], lambda i: i % 2, rng.random, by=refer)  # onnxruntime knows one class by its score alone
    number = lambda name, v, t=np.float32: nh.from_array(np.array(v, t), name)
    case("trees_members", [ml("TreeEnsemble", "x", "y", n_targets=3, aggregate_function=1, post_transform=0, tree_roots=[0],
                              nodes_modes=number("m", [0, 6, 6], np.uint8), nodes_featureids=[0, 0, 0],
                              nodes_splits=number("s", [11, 232344.0, np.nan]), nodes_truenodeids=[1, 0, 1], nodes_trueleafs=[0, 1, 1],
                              nodes_falsenodeids=[2, 2, 3], nodes_falseleafs=[0, 1, 1], leaf_targetids=[0, 1, 2, 0],
                              leaf_weights=number("w", [1, 10, 1000, 100]),
                              membership_values=number("v", [1.2, 3.7, 8, 9, np.nan, 12, 7, np.nan]))],
         {"x": np.array([[1.2], [3.4], [-0.12], [np.nan], [12], [7]], np.float32)}, domains=["ai.onnx.ml"], version=5, by=refer)


def learned():
    def ml(name, op, feeds, outs="y", version=1, **a):
        case(name, [node(op, " ".join(feeds), outs, domain="ai.onnx.ml", **a)], feeds, outs, domains=["ai.onnx.ml"], version=version)

    x = np.round(f(4, 3), 1)
    holes = x.copy()
    holes[1, 2] = holes[0, 0] = np.nan
    w = lambda n: [float(v) for v in np.round(rng.standard_normal(n), 2)]
    ml("ml_features", "ArrayFeatureExtractor", {"x": x, "i": ints(2, 0)})
    ml("ml_binarizer", "Binarizer", {"x": x}, threshold=0.3)
    ml("ml_scaler", "Scaler", {"x": x}, offset=w(3), scale=w(3))
    for norm in ("MAX", "L1", "L2"):
        ml("ml_normalizer_" + norm.lower(), "Normalizer", {"x": np.concatenate([x, 0 * x[:1]])}, norm=norm)
    ml("ml_imputer", "Imputer", {"x": holes}, replaced_value_float=float("nan"), imputed_value_floats=[1.0, 2.0, 3.0])
    ml("ml_imputer_integers", "Imputer", {"x": ints(1, 0, 2)}, replaced_value_int64=0, imputed_value_int64s=[7])
    ml("ml_regressor", "LinearRegressor", {"x": x}, targets=2, coefficients=w(6), intercepts=w(2))
    ml("ml_classifier", "LinearClassifier", {"x": x}, "y z", coefficients=w(9), intercepts=w(3), classlabels_ints=[4, 7, -1],
       post_transform="SOFTMAX")
    ml("ml_classifier_two", "LinearClassifier", {"x": x}, "y z", coefficients=w(6), intercepts=w(2), classlabels_ints=[4, 7],
       post_transform="LOGISTIC")
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        ml("ml_svm_" + kernel.lower(), "SVMRegressor", {"x": x}, kernel_type=kernel, kernel_params=[0.4, 1.0, 2.0], n_supports=2,
           support_vectors=w(6), coefficients=w(2), rho=w(1))
    ml("ml_svm_plain", "SVMRegressor", {"x": x}, kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0],
       coefficients=w(3), rho=w(1), one_class=1)
    ml("ml_one_hot", "OneHotEncoder", {"x": ints(3, 1, 9)}, cats_int64s=[1, 2, 3])
    ml("ml_labels", "LabelEncoder", {"x": ints(3, 1, 9)}, version=2, keys_int64s=[1, 2, 3], values_floats=[0.5, 1.5, 2.5], default_float=-7.0)
    ml("ml_vectorizer", "FeatureVectorizer", {"x": x, "z": f(4, 2)}, inputdimensions=[3, 2])


def chance():
    case("dropout_nothing", [node("Dropout", "x r t", "y m")], {"x": f(2, 3), "r": np.array(0.25, np.float32), "t": np.array(False)}, "y m")
    # numbers are the compiler's own; what holds whatever they are
    case("random", [node("RandomUniform", "", "u", shape=[400], low=2.0, high=3.0, seed=1.0), node("Floor", "u", "a"),
                    node("RandomNormalLike", "u", "n", seed=2.0, mean=5.0, scale=1e-20),
                    node("Multinomial", "z", "c", sample_size=9)], {"z": np.array([[-1e9, 0, -1e9]], np.float32)}, "a n c")
    # onnxruntime has 1 with the probability 1 - p
    case("bernoulli", [node("Bernoulli", "p", "y", seed=3.0)], {"p": np.array([0, 1, 1, 0], np.float32)}, by=refer)


def contrib():
    def ms(name, op, ins, feeds, outs="y", inits=None, **a):
        case(name, [node(op, ins, outs, domain="com.microsoft", **a)], feeds, outs, domains=["com.microsoft"], **(inits or {}))

    i32 = lambda v: np.array(v, np.int32)
    qkv = {"q": f(2, 3, 8), "k": f(2, 4, 8), "v": f(2, 4, 6)}
    ms("multi_head", "MultiHeadAttention", "q k v b m", qkv | {"m": i32([[1, 1, 1, 0], [1, 0, 1, 1]])}, inits={"b": f(22)}, num_heads=2)
    ms("multi_head_past", "MultiHeadAttention", "q k v _ _ a p r", {"q": f(1, 2, 4), "k": f(1, 2, 4), "v": f(1, 2, 4), "a": f(1, 1, 2, 5),
                                                                  "p": f(1, 2, 3, 2), "r": f(1, 2, 3, 2)}, "y pk pv", num_heads=2,
       unidirectional=1, scale=0.5)
    ms("multi_head_lengths", "MultiHeadAttention", "q k v _ m", qkv | {"m": i32([2, 4])}, num_heads=2, mask_filter_value=-50.0)
    ms("fused_attention", "Attention", "x w b m", {"x": f(2, 3, 4), "m": i32([[1, 1, 0], [1, 1, 1]])}, inits={"w": f(4, 12), "b": f(12)},
       num_heads=2)
    ms("fused_attention_past", "Attention", "x w b _ p", {"x": f(1, 2, 4), "p": f(2, 1, 2, 3, 2)}, "y t",
       inits={"w": f(4, 12), "b": f(12)}, num_heads=2, unidirectional=1)
    tables = {"w": f(5, 4), "p": f(6, 4), "s": f(2, 4), "g": f(4), "b": f(4)}
    ids = {"i": i32([[4, 0, 1], [2, 2, 3]]), "t": i32([[0, 1, 1], [0, 0, 0]]), "m": i32([[1, 1, 0], [1, 1, 1]])}
    ms("embed_layer_norm", "EmbedLayerNormalization", "i t w p s g b m", ids, "y c", inits=tables)


def volumes():
    """Each slice of a result by itself, those with the same taps as one batch (small pictures), taps added (more than 64 slices, slices
    that see padding alone)."""
    conv = lambda *k, **a: node("Conv", *k, **a)
    case("volume_slices", [conv("x w b", "a", pads=[2, 1, 0, 1, 1, 1]), conv("x w", "c", strides=[3, 2, 1], pads=[1, 0, 0, 3, 0, 0]),
                           conv("x w", "d", dilations=[2, 1, 1], pads=[3, 1, 1, 2, 1, 1]), conv("x w", "e", strides=[2, 1, 1], dilations=[3, 1, 1],
                                                                                               pads=[6, 0, 0, 4, 0, 0])],
         {"x": f(2, 2, 5, 7, 6)}, "a c d e", w=f(3, 2, 3, 2, 2) / 4, b=f(3))
    case("volume_batches", [conv("x w b", "a", pads=[1, 1, 1, 1, 1, 1]), conv("x w", "c", strides=[2, 1, 1], pads=[2, 1, 1, 2, 1, 1]),
                            conv("x w", "d", dilations=[2, 1, 1], pads=[2, 1, 1, 2, 1, 1])],
         {"x": f(2, 2, 8, 2, 2)}, "a c d", w=f(5, 2, 3, 3, 3) / 8, b=f(5))
    case("volume_long", [conv("x w", "a", pads=[1, 0, 0, 1, 0, 0])], {"x": f(1, 2, 66, 2, 3)}, "a", w=f(2, 2, 3, 1, 2) / 2)
    case("volume_padding", [conv("x w", "a", pads=[3, 1, 1, 3, 1, 1]), conv("x w", "c", strides=[2, 1, 1], pads=[5, 1, 1, 4, 1, 1])],
         {"x": f(1, 2, 2, 5, 4)}, "a c", w=f(3, 2, 2, 3, 3) / 6)
    # Two dimensions that windows move through cell by cell are one.
    case("volume_lines", [conv("x v", "a", strides=[2, 1, 1], pads=[1, 0, 0, 2, 0, 0], dilations=[2, 1, 1]),
                          conv("x w b", "c", group=2, pads=[0, 0, 2, 0, 0, 1]), conv("x p", "d"), conv("x w", "e", group=2, strides=[1, 2, 1]),
                          node("MaxPool", "x", "g", kernel_shape=[1, 2, 3], strides=[1, 2, 1], pads=[0, 1, 0, 0, 0, 2]),
                          node("AveragePool", "x", "k", kernel_shape=[3, 1, 1], strides=[2, 1, 1], pads=[1, 0, 0, 1, 0, 0], count_include_pad=1),
                          node("MaxPool", "x", "l", kernel_shape=[2, 1, 1], strides=[2, 1, 1], ceil_mode=1)],
         {"x": f(2, 4, 5, 6, 7)}, "a c d e g k l", w=f(6, 2, 1, 1, 3), b=f(6), v=f(3, 4, 3, 1, 1), p=f(5, 4, 1, 1, 1))
    # Windows that lie apart, and what none of them reads.
    case("volume_apart", [conv("x w b", "a", strides=[4, 4, 4], pads=[1] * 6), conv("x w", "c", strides=[4, 5, 1], dilations=[2, 3, 1]),
                          conv("x p", "d", strides=[2, 3, 2]), conv("x p", "e", strides=[3, 4, 1], pads=[2, 1, 0, 0, 3, 1]),
                          conv("x v", "g", group=2, strides=[3, 3, 2], pads=[0, 2, 1, 1, 2, 0])],
         {"x": f(2, 4, 9, 11, 6)}, "a c d e g", w=f(3, 4, 2, 2, 2) / 5, b=f(3), p=f(5, 4, 1, 1, 1), v=f(6, 2, 2, 2, 2) / 4)


if __name__ == "__main__":
    for family in (elements, state, patches, deformed, attention, signals, forms, trees, learned, chance, contrib, volumes):
        rng = np.random.default_rng(zlib.crc32(family.__name__.encode()))
        family()
