#!/usr/bin/env python3
"""Writes the models of strings/: make_strings.py (needs onnx, numpy, onnxruntime).

strings/NAME.onnx    a small network with strings
strings/NAME.K/      the K-th inputs, input_0.pb .., and what they give, output_0.pb ..: what ONNX Runtime makes of them, or,
                     where it has no kernel or another opinion than the standard, what is written here
strings/cases.txt    NAME, how many inputs, the options for the model
"""
import os
import shutil

import numpy as np
import onnx
import onnxruntime as ort
from make import B, F, I, SEEDS, h, init, node, value
from onnx import numpy_helper as nh

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "strings")
S = onnx.TensorProto.STRING
lines = []


def words(*v):
    return np.array(v, dtype=object)


def ints(*v):
    return np.array(v, np.int64)


def case(name, feeds, nodes, ins, outs, options="", opset=20, ml=4, want=None, **inits):
    graph = h.make_graph(nodes, "g", ins, outs, [init(k, v) for k, v in inits.items()])
    m = h.make_model(graph, opset_imports=[h.make_opsetid("", opset), h.make_opsetid("ai.onnx.ml", ml)], ir_version=9)
    data = m.SerializeToString()
    for path in os.path.join(HERE, name + ".onnx"), os.path.join(SEEDS, f"string_{name}"):
        with open(path, "wb") as out:
            out.write(data)
    so = ort.SessionOptions()
    so.log_severity_level = 3
    session = None if want else ort.InferenceSession(data, so, providers=["CPUExecutionProvider"])
    for k, feed in enumerate(feeds):
        folder = os.path.join(HERE, f"{name}.{k}")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        got = want[k] if want else session.run(None, feed)
        for what, infos, values in ("input", ins, [feed[v.name] for v in ins]), ("output", outs, got):
            for i, (info, v) in enumerate(zip(infos, values)):
                sequence = info.type.WhichOneof("value") == "sequence_type"
                proto = nh.from_list(list(v)) if sequence else nh.from_array(np.asarray(v))
                with open(f"{folder}/{what}_{i}.pb", "wb") as out:
                    out.write(proto.SerializeToString())
    lines.append(f"{name} {len(feeds)} {options}".strip())


def moved():
    """Strings in other places, in twos of different rooms, and chosen."""
    grid = words("one", "two", "three", "vier", "fünf", "").reshape(2, 3)
    feeds = [dict(x=grid, y=words("seventeen", "a", "b"), i=ints(2, 0, -1)),
             dict(x=grid[::-1], y=words("x", "yy", "zzz"), i=ints(1, 1, 0))]
    case("moved", feeds,
         [node("Unsqueeze", "y zero", "row"), node("Concat", "x row", "all", axis=0),
          node("Gather", "all i", "picked", axis=-1), node("Transpose", "picked", "turned"),
          node("Slice", "turned zero two zero", "top"), node("Reshape", "top flat", "line"),
          node("Equal", "line word", "same"), node("Not", "same", "other"), node("Where", "same word line", "kept"),
          node("Compress", "kept other", "rest"), node("Expand", "line wide", "lines"), node("Size", "rest", "count"),
          node("Shape", "turned", "shape"), node("Split", "y", "a b c", num_outputs=3), node("StringConcat", "a c", "ac")],
         [value("x", S, [2, 3]), value("y", S, [3]), value("i", I, [3])],
         [value("kept", S, [6]), value("rest", S, None), value("lines", S, [2, 6]), value("count", I, []),
          value("shape", I, [2]), value("ac", S, [1])],
         zero=ints(0), two=ints(2), flat=ints(-1), wide=ints(2, 6), word=words("three"))


def chosen():
    """Strings out of branches, sequences and a loop, in which they become longer."""
    then = h.make_graph([node("StringConcat", "x dot", "t")], "then", [], [value("t", S, [2])])
    other = h.make_graph([node("Identity", "y", "e")], "else", [], [value("e", S, [2])])
    body = h.make_graph([node("StringConcat", "s dot", "longer"), node("Identity", "go", "still"),
                         node("Identity", "longer", "each")], "body",
                        [value("n", I, []), value("go", B, []), value("s", S, [2])],
                        [value("still", B, []), value("longer", S, [2]), value("each", S, [2])])
    x, y = words("a", "bcd"), words("many", "more words")
    case("chosen", [dict(x=x, y=y, c=np.array(True)), dict(x=x, y=y, c=np.array(False))],
         [node("If", "c", "v", then_branch=then, else_branch=other),
          node("SequenceConstruct", "x v y", "seq"), node("SequenceAt", "seq one", "at"),
          node("Loop", "three _ at", "grown all", body=body), node("SequenceLength", "seq", "length")],
         [value("x", S, [2]), value("y", S, [2]), value("c", B, [])],
         [value("v", S, [2]), value("grown", S, [2]), value("all", S, [3, 2]), value("length", I, [])],
         dot=words("."), one=np.array(1), three=np.array(3))


def constants():
    """Strings that are not inputs are folded; `--dim` leaves their room to the run."""
    case("constants", [dict(x=words("yes", "no"))],
         [node("Constant", "", "k", value_strings=["y", "n"]), node("Constant", "", "one", value_string="es"),
          node("StringConcat", "k one", "made"), node("Equal", "x made", "y"), node("Identity", "made", "z")],
         [value("x", S, [2])], [value("y", B, [2]), value("z", S, [2])], options="--dim x.bytes=1..40")


def split():
    """By what overlaps itself, by letters of several bytes, by spaces; at most so often."""
    feeds = [dict(x=words("aaaa", "baab", "", "a\u00e9b\u00e9", " one  two\tthree ", "x").reshape(2, 3)),
             dict(x=words("a", "\u00e9", "\u00e9\u00e9", "aaaaaaa", "   ", " y ").reshape(2, 3))]
    nodes = [node("StringSplit", "x", "aa naa", delimiter="aa"), node("StringSplit", "x", "e ne", delimiter="\u00e9"),
             node("StringSplit", "x", "s ns"), node("StringSplit", "x", "s1 ns1", maxsplit=1),
             node("StringSplit", "x", "a2 na2", delimiter="a", maxsplit=2)]

    def parts(t, *how):
        lists = [[v.split(*how) for v in row] for row in t]
        most = max(len(v) for row in lists for v in row)
        return (np.array([[v + [""] * (most - len(v)) for v in row] for row in lists], dtype=object),
                np.array([[len(v) for v in row] for row in lists]))

    want = [sum((parts(f["x"], *how) for how in (("aa",), ("\u00e9",), (), (None, 1), ("a", 2))), ()) for f in feeds]
    outs = [v for k in ("aa", "e", "s", "s1", "a2") for v in (value(k, S, None), value("n" + k, I, [2, 3]))]
    case("split", feeds, nodes, [value("x", S, [2, 3])], outs, want=want)


def matched():
    """Patterns of all kinds, as RE2 has them in ONNX Runtime."""
    patterns = [r"(a|b)*abb", r"[^a-c\d]{2,3}", r"\bfoo\b.*", r"(?i)straSSe|CAT", r"^a.c$", r"(?s)a.c", r"\x61[[:alpha:]]+\w",
                r"x*", r"(?:ab){2}(?P<n>c)??", r".", r"\Qa.c\E", r"[\x{e0}-\x{ff}]+\W?", r"(?m)a$\n^b", r"\D+\B.", r"a{,2}",
                r"(\d+|[a-f-]+){3}", r"[^\n]+@[^@]+", r"(\d|x)*?[^\x00-\x7f]\x{4e2D}?"]
    feeds = [dict(x=words("abb", "babb", "xy", "foo", "foo bar", "STRASSE", "a.c", "a\nc", "", "ababc", "\u00e9", "\u4e2d",
                          "\U0001f600", "a\nb", "a{,2}", "12-3", "joe@x", "cat", "food", "\u00e9\u00fc!"))]
    case("matched", feeds, [node("RegexFullMatch", "x", f"y{k}", pattern=p) for k, p in enumerate(patterns)],
         [value("x", S, [20])], [value(f"y{k}", B, [20]) for k in range(len(patterns))])


def normalized():
    """Words that are left out, in both ways of looking at case; all of them."""
    feeds = [dict(x=words("The", "CAT", "sat", "the", "Mat")), dict(x=words("the", "the", "THE", "the", "tHe"))]
    case("normalized", feeds,
         [node("StringNormalizer", "x", "y", locale="C", case_change_action="LOWER", is_case_sensitive=1, stopwords=["the", "mat"]),
          node("StringNormalizer", "x", "z", locale="C", case_change_action="UPPER", stopwords=["the", "sat"]),
          node("StringNormalizer", "x", "w", locale="C", case_change_action="UPPER")],
         [value("x", S, [5])], [value("y", S, None), value("z", S, None), value("w", S, [5])], options="--dim x.bytes=1..9")


def encoded():
    """Strings from and to strings and numbers, and as labels of classes."""
    ml = dict(domain="ai.onnx.ml")
    feeds = [dict(x=words("red", "blue", "gr\u00fcn", "").reshape(2, 2), i=ints(0, 7, 2), f=np.array([1.5, np.nan], np.float32),
                  d=np.array([[1, 2], [-3, 1], [0.5, -2]], np.float32))]
    nodes = [node("LabelEncoder", "x", "ss", keys_strings=["blue", "red"], values_strings=["sky", "strawberry"], **ml),
             node("LabelEncoder", "x", "sf", keys_strings=["", "gr\u00fcn"], values_floats=[2.5, -1.0], default_float=9.0, **ml),
             node("LabelEncoder", "i", "ns", keys_int64s=[0, 2, 5], values_strings=["zero", "two", "five"],
                  default_string="?", **ml),
             node("LabelEncoder", "f", "fs", keys_floats=[np.nan, 1.5], values_strings=["none", "some"], **ml),
             node("CategoryMapper", "x", "cn", cats_int64s=[3, 4], cats_strings=["red", "blue"], default_int64=-7, **ml),
             node("CategoryMapper", "i", "cs", cats_int64s=[7, 2], cats_strings=["seven", "two"], default_string="no", **ml),
             node("OneHotEncoder", "x", "hot", cats_strings=["red", "gr\u00fcn", "x"], **ml),
             node("LinearClassifier", "d", "linear p", classlabels_strings=["low", "middle", "high"],
                  coefficients=[1.0, 0.0, -1.0, 0.5, 0.0, 1.0], intercepts=[0.0, 0.1, -0.2], **ml),
             node("TreeEnsembleClassifier", "d", "tree q", classlabels_strings=["left", "right", "none"], nodes_treeids=[0, 0, 0],
                  nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0], nodes_values=[0.0, 0.0, 0.0],
                  nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
                  class_treeids=[0, 0], class_nodeids=[1, 2], class_ids=[0, 1], class_weights=[1.0, 1.0],
                  post_transform="NONE", **ml)]
    case("encoded", feeds, nodes,
         [value("x", S, [2, 2]), value("i", I, [3]), value("f", F, [2]), value("d", F, [3, 2])],
         [value("ss", S, [2, 2]), value("sf", F, [2, 2]), value("ns", S, [3]), value("fs", S, [2]), value("cn", I, [2, 2]),
          value("cs", S, [3]), value("hot", F, [2, 2, 3]), value("linear", S, [3]), value("tree", S, [3])])


def weighed():
    """Runs of words in rows of them, some left out between, weighed; a row length that the run decides."""
    pool = ["a", "bb", "c", "a", "bb", "bb", "c", "\u00e9", "a"]
    how = dict(min_gram_length=1, max_gram_length=2, max_skip_count=1, ngram_counts=[0, 3], ngram_indexes=[2, 0, 1, 5, 3, 4],
               pool_strings=pool, weights=[0.5, 2.0, 1.5, 1.0, 3.0, 0.25])
    feeds = [dict(x=words("a", "bb", "c", "a", "bb", "d", "\u00e9", "a", "x", "", "bb", "c").reshape(2, 6)),
             dict(x=words("a", "c").reshape(1, 2))]
    case("weighed", feeds, [node("TfIdfVectorizer", "x", m, mode=m, **how) for m in ("TF", "IDF", "TFIDF")],
         [value("x", S, ["N", "C"])], [value(m, F, ["N", 6]) for m in ("TF", "IDF", "TFIDF")],
         options="--dim N=1..3 --dim C=1..8 --dim x.bytes=1..8")


def cast():
    """Strings as numbers, and back."""
    big = str(2**63 - 1), str(-(2**63))
    feeds = [dict(x=words("12", "-7", "+003", "0", *big), f=words("3.25", "-1e-3", ".5", "7.", "INF", "-0"), i=ints(0, -12, 9, 10, 2**63 - 1, -(2**63))),
             dict(x=words("1", "22", "333", "-4444", "5", "6"), f=words("1e38", "-NaN", "2.5E+2", "-INF", "0.1", "123456789"), i=ints(1, 2, 3, -4, 99, 100))]
    case("cast", feeds,
         [node("Cast", "x", "a", to=I), node("Cast", "x", "b", to=F), node("Cast", "f", "c", to=F), node("CastLike", "f d", "e"),
          node("Cast", "i", "g", to=S), node("Cast", "i", "u", to=onnx.TensorProto.UINT8), node("Cast", "u", "k", to=S)],
         [value("x", S, [6]), value("f", S, [6]), value("i", I, [6])],
         [value("a", I, [6]), value("b", F, [6]), value("c", F, [6]), value("e", onnx.TensorProto.DOUBLE, [6]), value("g", S, [6]),
          value("k", S, [6])], d=np.float64(0))


def main():
    os.makedirs(HERE, exist_ok=True)
    for make in moved, chosen, constants, split, matched, normalized, encoded, weighed, cast:
        make()
    with open(os.path.join(HERE, "cases.txt"), "w") as out:
        out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
