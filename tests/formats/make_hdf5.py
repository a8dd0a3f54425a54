#!/usr/bin/env python3
"""Writes hdf5/*.h5, small files of every form that formats/hdf5*.c reads (unit.hdf5).

    make_hdf5.py FOLDER      needs h5py and numpy; FOLDER: where they go

Every dataset's cell i is (7 * i + 3) % 101, as a number of its type, as a bool that is its lowest bit, or as
"text" and the number; so are the cells of attributes.  Attribute `count` of the root says how many datasets
are below it, attribute `empty` of a dataset that its cells were never written and are all of that value.
Names of groups end in .g, of types in .t.
"""

import sys

import h5py
import numpy as np

folder = sys.argv[1]


def cells(shape, dtype):
    n = int(np.prod(shape, dtype=int))
    return ((7 * np.arange(n) + 3) % 101).reshape(shape).astype(dtype)


def texts(n):
    return ["text%d" % ((7 * i + 3) % 101) for i in range(n)]


def types(g):
    for t in ("i1", "u1", "<i2", ">i2", "<u4", ">i8", "<f2", "<f4", ">f4", "<f8"):
        g[t.replace("<", "l").replace(">", "b")] = cells((2, 3), t)
    g["bool"] = (cells((5,), "i4") % 2).astype(bool)
    g["fixed"] = np.array(texts(4), "S9")
    g["variable"] = np.array(texts(3), dtype=h5py.string_dtype())
    g["scalar"] = np.float32(3)
    g["none"] = np.zeros((0, 4), "f4")
    g["latin"] = "text3"
    return 16


def attributes(o, many):
    o.attrs["numbers"] = cells((4,), "f4")
    o.attrs["names"] = np.array(texts(3), "S7")
    o.attrs["text"] = "text3"
    o.attrs["bytes"] = b"text3"
    for i in range(many):
        o.attrs["a%d" % i] = cells((3,), "i4")


def links(g, n):
    d = g.create_dataset("d", data=cells((3,), "i2"))
    for i in range(n):
        g["link%d" % i] = d
    return n + 1


def chunks(f, latest):
    n = 0

    def one(name, shape, dtype="i2", **how):
        nonlocal n
        f.create_dataset(name, data=cells(shape, dtype), **how)
        n += 1

    one("edges", (5, 7), chunks=(2, 3))
    one("deflate", (20, 9), chunks=(8, 4), compression="gzip")
    one("shuffle", (50,), "f4", chunks=(16,), compression="gzip", shuffle=True)
    one("checked", (50,), chunks=(16,), fletcher32=True)
    one("all", (50,), chunks=(16,), compression="gzip", shuffle=True, fletcher32=True)
    one("cube", (3, 5, 4), "f8", chunks=(2, 2, 3))
    one("single", (4, 6), chunks=(4, 6))
    one("single_deflate", (4, 6), chunks=(4, 6), compression="gzip")
    one("grows", (300,), "i1", chunks=(1,), maxshape=(None,))
    one("grows_wide", (3, 40), "i1", chunks=(2, 3), maxshape=(3, None))
    one("grows_deflate", (40, 5), chunks=(2, 5), maxshape=(None, 5), compression="gzip")
    one("grows_both", (30, 8), "i1", chunks=(2, 2), maxshape=(None, None))
    one("grows_both_deflate", (30, 8), "i1", chunks=(2, 2), maxshape=(None, None), compression="gzip")
    one("less_than_most", (5, 5), chunks=(2, 2), maxshape=(9, 8))
    if latest:
        one("pages", (1100,), "i1", chunks=(1,))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((2, 3))
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        space = h5py.h5s.create_simple((5, 7))
        d = h5py.Dataset(h5py.h5d.create(f.id, b"implicit", h5py.h5t.NATIVE_INT16, space, plist))
        d[...] = cells((5, 7), "i2")
        n += 1
    for name, value in (("unwritten", None), ("unwritten_nines", 9)):
        d = f.create_dataset(name, (6, 6), "i2", chunks=(2, 2), fillvalue=value)
        d.attrs["empty"] = value or 0
        n += 1
    d = f.create_dataset("unwritten_whole", (6, 6), "f4", fillvalue=4)
    d.attrs["empty"] = 4
    return n + 1


def compact(f):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((3, 4))
    d = h5py.Dataset(h5py.h5d.create(f.id, b"compact", h5py.h5t.NATIVE_FLOAT, space, plist))
    d[...] = cells((3, 4), "f4")
    return 1


for name, how in (
    ("old", {"libver": "earliest"}),
    ("middle", {"libver": ("v108", "v108")}),
    ("new", {"libver": "latest"}),
    ("behind", {"libver": "earliest", "userblock_size": 512}),
):
    for kind in ("types", "links", "chunks"):
        if kind != "types" and name in ("middle", "behind"):
            continue
        with h5py.File("%s/%s_%s.h5" % (folder, name, kind), "w", **how) as f:
            if kind == "types":
                count = types(f.create_group("types.g")) + types(f.create_group("deep.g/er.g", track_order=True)) + compact(f)
                attributes(f, 20)
                attributes(f["types.g"], 0)
                f["committed.t"] = np.dtype("<f4")
                f.create_dataset("of_committed", data=cells((4,), "f4"), dtype=f["committed.t"])
                count += 1
            elif kind == "links":
                few = links(f.create_group("few.g"), 3)
                count = few + links(f.create_group("many.g"), 300 if name == "old" else 1200)
                f.create_group("none.g")
                attributes(f["many.g"], 60)
            else:
                count = chunks(f, name == "new")
            f.attrs["count"] = count
