#!/usr/bin/env python3
"""Writes broken/: nets with one fault each, for goldens.txt; and one as text, which has none.

    make_broken.py FOLDER
"""
import os
import sys

import numpy as np
from net import Net, given, net, op, place

FOLDER = sys.argv[1]
W = given("w", np.full((2, 3), 0.5, np.float32))
B = given("b", np.full(2, 0.25, np.float32))


def write(name, ops, outputs=("y",), init=(W, B, place("x", (1, 3)))):
    with open(os.path.join(FOLDER, name + ".predict_net.pb"), "wb") as f:
        f.write(net(name, ops, ["x", "w", "b"], outputs))
    if init:
        with open(os.path.join(FOLDER, name + ".init_net.pb"), "wb") as f:
            f.write(net("init", init))


FC = op("FC", ["x", "w", "b"], ["y"])
os.makedirs(FOLDER, exist_ok=True)
write("good", [FC])
write("operators", [op("Foo", ["x"], ["a"]), op("Bar", ["a"], ["c"]), op("Foo", ["c"], ["y"])])
write("arguments", [op("LeakyRelu", ["x"], ["a"], alfa=0.1), op("Softmax", ["a"], ["y"], axes=1)])
write("operands", [op("FC", ["x", "w"], ["y"])])
write("no_init", [FC], init=())
write("missing", [FC], init=(W, place("x", (1, 3))))
write("open_shape", [FC], init=(W, B, place("x", (1,))))
write("random", [FC], init=(op("XavierFill", [], ["w"], shape=(2, 3)), B, place("x", (1, 3))))
write("values", [FC], init=(op("GivenTensorFill", [], ["w"], shape=(2, 4), values=np.zeros(6, np.float32)), B, place("x", (1, 3))))
write("training", [op("Dropout", ["x"], ["y"], ratio=0.5)])
write("output", [FC], outputs=("z",))
write("kernel", [op("MaxPool", ["x"], ["y"])], init=(place("x", (1, 3, 4, 4)),))
write("kind_of_int", [op("Softmax", ["x"], ["y"], axis=1.5)])
write("kind_of_list", [op("ReduceSum", ["x"], ["y"], axes=1)])
Q = op("Int8Quantize", ["x"], ["q"], Y_scale=0.5, Y_zero_point=3)
write("bytes_wanted", [op("Int8Relu", ["x"], ["y"], Y_scale=0.5)])
write("bytes_given", [Q, op("Relu", ["q"], ["y"])])
write("bytes_scale", [Q, op("Int8Flatten", ["q"], ["y"], Y_scale=0.25, Y_zero_point=3)])
write("bytes_order", [Q, op("Int8MaxPool", ["q"], ["y"], kernel=1, order="NCHW")])
THEN, ELSE = Net(net("then", [op("Relu", ["x"], ["y"])])), Net(net("else", [op("Slice", ["x"], ["y"], starts=(0, 1), ends=(1, 3))]))
FLAG = op("GT", ["x", "x"], ["flags"]), op("Slice", ["flags"], ["flag"], starts=(0, 0), ends=(1, 1))
write("no_branch", [*FLAG, op("If", ["flag"], ["y"], else_net=THEN)])
write("branches", [*FLAG, op("If", ["flag"], ["y"], then_net=THEN, else_net=ELSE)])
write("branch_operators", [*FLAG, op("If", ["flag"], ["y"], then_net=Net(net("then", [op("Foo", ["x"], ["y"])])), else_net=THEN)])
write("one_branch", [*FLAG, op("If", ["flag"], ["y"], then_net=Net(net("then", [op("Foo", ["x"], ["z"])])))])
write("many_levels", [op("DistributeFpnProposals", ["x"], ["y", "z"])], init=(place("x", (4, 5)),))
with open(os.path.join(FOLDER, "text.predict_net.pbtxt"), "w") as f:
    f.write('name: "text"\nop { input: "x" output: "a" type: "Relu" }\nop { input: "a" output: "y" type: "Softmax" arg { name: "axis" i: 1 } }\n'
            'external_input: "x"\nexternal_output: "y"\n')
