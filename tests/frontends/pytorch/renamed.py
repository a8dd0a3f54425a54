#!/usr/bin/env python3
"""renamed.py OLD.npz NEW.npz OLD=NEW ..: arrays by other names; "OLD=" leaves one out."""
import sys
import zipfile

names = dict(x.split("=") for x in sys.argv[3:])
with zipfile.ZipFile(sys.argv[1]) as old, zipfile.ZipFile(sys.argv[2], "w") as new:
    for entry in old.namelist():
        name = entry[: -len(".npy")]
        if names.get(name, name):
            new.writestr(names.get(name, name) + ".npy", old.read(entry))
