#!/usr/bin/env python3
"""Writes the models of learned/: make_learned.py (needs skl2onnx, scikit-learn, onnxruntime, numpy).

Models of scikit-learn as skl2onnx exports them, and forms of ai.onnx.ml that it does not write.  Files are as those
of sizes/ (make_sizes.py), at one size.  What is a list of maps in ONNX is a tensor of their values here.
"""
import os
import warnings

import numpy as np
import onnxruntime as ort
import skl2onnx
from make import F, I, model, node, value
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn import (cluster, compose, discriminant_analysis, ensemble, impute, linear_model,
                     naive_bayes, neighbors, neural_network, pipeline, preprocessing, svm, tree)
from sklearn.datasets import load_iris

warnings.filterwarnings("ignore")
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "learned")
KINDS = {"f": FloatTensorType, "i": Int64TensorType, "O": StringTensorType}
lines = []
X, Y = load_iris(return_X_y=True)
X = X.astype(np.float32)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
rng = np.random.default_rng(5)


def write(name, m, feeds):
    with open(os.path.join(HERE, name + ".onnx"), "wb") as f:
        f.write(m)
    so = ort.SessionOptions()
    so.log_severity_level = 4
    s = ort.InferenceSession(m, so, providers=["CPUExecutionProvider"])
    text = lambda v: v.astype(str) if v.dtype == object else v
    values = lambda v: text(v if isinstance(v, np.ndarray) else np.array([list(row.values()) for row in v], np.float32))
    np.savez_compressed(os.path.join(HERE, name + ".0.in.npz"), **{k: text(v) for k, v in feeds.items()})
    np.savez_compressed(os.path.join(HERE, name + ".0.out.npz"),
                        **{o.name: values(v) for o, v in zip(s.get_outputs(), s.run(None, feeds))})
    lines.append(f"{name} 1")


def case(name, fitted, feeds, **options):
    types = [(k, KINDS[v.dtype.kind]([None] + list(v.shape[1:]))) for k, v in feeds.items()]
    options = {"options": {id(fitted): options}} if options else {}
    write(name, skl2onnx.convert_sklearn(fitted, initial_types=types, target_opset={"": 21, "ai.onnx.ml": 3}, **options).SerializeToString(), feeds)


def flowers(name, e, labels=NAMES, **options):
    case(name, e.fit(X, labels), {"x": X[::11]}, **options)


def classifiers():
    L, two = linear_model, (Y > 0).astype(int)
    flowers("logistic", L.LogisticRegression(max_iter=500))
    flowers("logistic_two", L.LogisticRegression(), two, zipmap=False)
    flowers("descent", L.SGDClassifier(loss="log_loss", random_state=0), zipmap=False)
    flowers("support", svm.SVC(), zipmap=False)
    flowers("support_two", svm.SVC(kernel="poly"), two, zipmap=False)
    flowers("support_chances", svm.SVC(probability=True, random_state=0), zipmap=False)
    flowers("support_chances_two", svm.SVC(kernel="sigmoid", probability=True, random_state=0), two, zipmap=False)
    flowers("tree", tree.DecisionTreeClassifier(max_depth=3, random_state=0))
    flowers("forest", ensemble.RandomForestClassifier(3, max_depth=3, random_state=0), zipmap=False)
    flowers("boosted", ensemble.GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0), zipmap=False)
    flowers("bayes", naive_bayes.GaussianNB(), zipmap=False)
    flowers("neighbours", neighbors.KNeighborsClassifier(3).fit(X[::3], Y[::3]), Y, zipmap=False, optim="cdist")
    flowers("network", neural_network.MLPClassifier((5,), max_iter=50, random_state=0), zipmap=False)
    flowers("discriminant", discriminant_analysis.LinearDiscriminantAnalysis(), zipmap=False)


def others():
    P, y = preprocessing, X @ np.array([1, -2, 0.5, 3]) + 1
    regress = lambda name, e: case(name, e.fit(X, y), {"x": X[::11]})
    regress("line", linear_model.Ridge())
    regress("support_line", svm.SVR(C=0.1))
    regress("forest_line", ensemble.RandomForestRegressor(3, max_depth=3, random_state=0))
    case("outliers", svm.OneClassSVM(nu=0.1).fit(X), {"x": X[::11]})
    case("means", cluster.KMeans(3, n_init=1, random_state=0).fit(X), {"x": X[::11]})
    gaps = X.copy()
    gaps[::7, 1] = np.nan
    scaled = pipeline.make_pipeline(impute.SimpleImputer(), P.RobustScaler(), P.Normalizer("l1"), P.PolynomialFeatures(2))
    case("scaled", scaled.fit(gaps), {"x": gaps[::11]})
    case("bins", P.KBinsDiscretizer(4, encode="onehot-dense").fit(X), {"x": X[::11]})
    numbers = rng.standard_normal((20, 2)).astype(np.float32)
    colours = rng.choice(["red", "green", "blue"], (20, 1)).astype(object)
    columns = compose.ColumnTransformer([("n", pipeline.make_pipeline(impute.SimpleImputer(), P.StandardScaler()), [0, 1]),
                                         ("c", P.OneHotEncoder(handle_unknown="ignore"), [2])])
    columns = pipeline.make_pipeline(columns, linear_model.LogisticRegression())
    columns.fit(np.concatenate([numbers.astype(object), colours], 1), numbers[:, 0] > 0)
    case("columns", columns, {"n": numbers, "c": np.where(np.arange(20)[:, None] == 3, "violet", colours).astype(object)})
    case("ordinal", P.OrdinalEncoder().fit(colours), {"c": colours})


def machines():
    """SVMClassifier with transformed scores, of four classes."""
    per, width = [2, 1, 3, 2], 3
    a = dict(kernel_params=[0.5, 0.1, 2.0], support_vectors=rng.standard_normal(sum(per) * width).tolist(), vectors_per_class=per,
             coefficients=rng.standard_normal(3 * sum(per)).tolist(), rho=rng.standard_normal(6).tolist(), classlabels_ints=[7, 5, 3, 9])
    chances = dict(prob_a=(-abs(rng.standard_normal(6))).tolist(), prob_b=rng.standard_normal(6).tolist())
    for kernel, after, more in (("LINEAR", "SOFTMAX", {}), ("RBF", "LOGISTIC", {}), ("POLY", "NONE", chances), ("SIGMOID", "SOFTMAX_ZERO", chances)):
        n = node("SVMClassifier", "x", "y z", domain="ai.onnx.ml", kernel_type=kernel, post_transform=after, **a, **more)
        write("machine_" + kernel.lower(), model([n], [value("x", F, [None, width])], [value("y", I, None), value("z", F, None)],
                                                 domains=["ai.onnx.ml"]).SerializeToString(), {"x": rng.standard_normal((5, width)).astype(np.float32)})


if __name__ == "__main__":
    os.makedirs(HERE, exist_ok=True)
    for family in (classifiers, others, machines):
        family()
    with open(os.path.join(HERE, "cases.txt"), "w") as out:
        out.write("\n".join(lines) + "\n")
