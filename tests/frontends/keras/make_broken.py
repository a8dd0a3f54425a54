#!/usr/bin/env python3
"""Writes broken/*.keras and *.h5 for goldens.txt: small models, each with one fault (needs Keras 3).

    make_broken.py FOLDER
"""

import io
import json
import os
import sys
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import h5py
import keras
import numpy as np

L = keras.layers
folder = sys.argv[1]


def build():
    x = keras.Input((6, 6, 3), name="picture")
    y = L.Conv2D(4, 3, activation="relu", name="conv")(x)
    y = L.BatchNormalization(name="norm")(y)
    y = L.Add(name="sum")([y, y])
    y = L.GlobalAveragePooling2D(name="mean")(y)
    return keras.Model(x, L.Dense(2, activation="softmax", name="end")(y))


def sequence():
    x = keras.Input((4, 3), name="steps")
    return keras.Model(x, L.LSTM(2, name="lstm")(x))


def parts(model):
    model.save(folder + "/whole.keras")
    with zipfile.ZipFile(folder + "/whole.keras") as z:
        entries = {n: z.read(n) for n in z.namelist()}
    os.remove(folder + "/whole.keras")
    config = json.loads(entries["config.json"])
    config.pop("compile_config", None)
    return config, entries


def write(name, config, entries, weights=None):
    with zipfile.ZipFile("%s/%s.keras" % (folder, name), "w", zipfile.ZIP_DEFLATED) as z:
        for n, data in entries.items():
            if n == "config.json":
                data = config if isinstance(config, str) else json.dumps(config)
            if n == "metadata.json":
                data = json.dumps({"keras_version": json.loads(data)["keras_version"]})
            if n == "model.weights.h5" and weights:
                f = io.BytesIO(data)
                with h5py.File(f, "a") as h:
                    weights(h)
                data = f.getvalue()
            if data:
                z.writestr(zipfile.ZipInfo(n), data, zipfile.ZIP_DEFLATED)


def broken(name, change=None, model=None, weights=None):
    keras.utils.set_random_seed(1)
    config, entries = parts((model or build)())
    layers = {l["name"]: l for l in config["config"]["layers"]}
    if change:
        change(layers, config)
    write(name, config, entries, weights)


def classes(layers, config):
    layers["conv"]["class_name"] = "Conv2d"
    layers["norm"].update(class_name="Lambda", config={"name": "norm", "function": {"class_name": "__lambda__", "config": {}}})
    layers["mean"].update(class_name="Mine", module="my_package", registered_name="my_package>Mine")
    layers["end"].update(class_name="StringLookup")


def settings(layers, config):
    layers["conv"]["config"]["stride"] = 2
    layers["conv"]["config"]["paddings"] = "same"
    layers["end"]["config"]["unit"] = 3


def set_in(name, **values):
    return lambda layers, config: layers[name]["config"].update(values)


def history(name, to):
    def change(layers, config):
        layers[name]["inbound_nodes"][0]["args"][0]["config"]["keras_history"] = to

    return change


def quantized(layers, config):
    layers["end"]["config"]["dtype"] = {"class_name": "QuantizedDTypePolicy", "config": {"mode": "int8", "source_name": "float32"}}


def fewer_channels(h):
    del h["layers/conv2d/vars/0"]
    h["layers/conv2d/vars/0"] = np.zeros((3, 3, 2, 4), "f4")


broken("ok_small")
broken("bad_classes", classes)
broken("bad_settings", settings)
broken("bad_activation", set_in("conv", activation="mine"))
broken("bad_padding", set_in("conv", padding="full"))
broken("bad_strides", set_in("conv", strides=[0, 1]))
broken("bad_quantized", quantized)
broken("bad_layer", history("norm", ["convolution", 0, 0]))
broken("bad_call", history("norm", ["conv", 1, 0]))
broken("bad_result", history("norm", ["conv", 0, 2]))
broken("bad_loop", history("conv", ["norm", 0, 0]))
broken("bad_weight", weights=lambda h: h["layers/dense/vars"].__delitem__("1"))
broken("bad_shape", weights=fewer_channels)
broken("bad_stateful", model=sequence, change=set_in("lstm", stateful=True))
broken("bad_unused", lambda layers, config: layers["end"]["inbound_nodes"][0]["kwargs"].update(temperature=2))
config, entries = parts(build())
write("bad_json", json.dumps(config)[:-100], entries)
write("bad_nothing", config, {**entries, "model.weights.h5": b""})
write("bad_subclass", {"class_name": "Mine", "config": {}, "module": "my_package", "registered_name": "Mine"}, entries)
with h5py.File(folder + "/bad_weights_only.h5", "w") as f:
    f.attrs["keras_version"] = "2.15.0"
    f.attrs["layer_names"] = [b"dense"]
    f["dense/kernel:0"] = np.zeros((2, 2), "f4")


def keras1(name, change, stem="theano_order"):
    """A file of make_keras1.py with another configuration."""
    with h5py.File("%s/../models/keras1_%s_h5.h5" % (folder, stem)) as old, h5py.File("%s/%s" % (folder, name), "w") as new:
        config = json.loads(old.attrs["model_config"])
        change(config["config"])
        new.attrs["keras_version"] = old.attrs["keras_version"]
        new.attrs["model_config"] = json.dumps(config).encode()
        old.copy("model_weights", new)


def layer(config, name):
    layers = config if isinstance(config, list) else config["layers"]
    return [l for l in layers if l["config"]["name"] == name][0]["config"]


keras1("bad_old_shape.h5", lambda c: layer(c, "trans").update(output_shape=[None, 2, 12, 7]))
keras1("bad_old_mode.h5", lambda c: layer(c, "norm").update(mode=2))
keras1("bad_old_merge.h5", lambda c: layer(c, "dot").update(mode="cos"), "merged")
keras1("bad_old_parts.h5", lambda c: layer(c, "lstm").update(consume_less="gpu"), "recurrent")
