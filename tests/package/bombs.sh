#!/bin/bash
# bombs.sh <tvmcc> <source> <work folder>
#
# Small files that unpack to gigabytes: in one member, in many, through several compressors, with a
# size that is a lie, in archives in archives, as .npz.  Every command that reads them
# refuses them within MEMORY and SECONDS, and leaves nothing.
tvmcc=$1 source=$2 work=$3
. "$(dirname "$0")/../lib.sh"
enter "$work"
quiet "$tvmcc" "$source/examples/digits/digits.onnx" -mcpu=x86-64 -o good.tar
python3 - "$tvmcc" "$source" ${4:+-v} <<'END'
import gzip, io, lzma, os, resource, struct, subprocess, sys, tarfile, zipfile, zlib

MEMORY, SECONDS, MIB, GIB = 400 << 20, 4, 1 << 20, 1 << 30
tvmcc, digits = sys.argv[1], sys.argv[2] + "/examples/digits/digits.onnx"

xz_zeros = lzma.compress(bytes(MIB))

def header(path, size):
    i = tarfile.TarInfo(path)
    i.size = size
    return i.tobuf(tarfile.USTAR_FORMAT)

def deflated(head, n):  # raw, of `head` and n MiB of zeros
    c = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = c.compress(head) + c.flush(zlib.Z_FULL_FLUSH)
    one = c.compress(bytes(MIB)) + c.flush(zlib.Z_FULL_FLUSH)
    return start + one * n + c.flush()

def gz(raw):
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + raw + bytes(8)

def zstd(head, n):
    raw = struct.pack("<I", len(head) << 3)[:3] + head
    rle = struct.pack("<I", (128 << 10) << 3 | 2)[:3] + b"\0"
    return b"\x28\xb5\x2f\xfd\x00\x38" + raw + rle * (8 * n) + b"\1\0\0"

def xz(head, n):
    return lzma.compress(head) + xz_zeros * n

def write(name, data):
    with open(name, "wb") as f:
        f.write(data)

def make_zip(name, entries, raw, size, crc=0):
    body, central = b"", b""
    for entry in entries:
        common = struct.pack("<4H3I2H", 0, 8, 0, 33, crc, len(raw), size, len(entry), 0)
        central += struct.pack("<4s2H", b"PK\1\2", 20, 20) + common + struct.pack("<3H2I", 0, 0, 0, 0, len(body)) + entry
        body += struct.pack("<4sH", b"PK\3\4", 20) + common + entry + raw
    n = len(entries)
    write(name, body + central + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, n, n, len(central), len(body), 0))

def tar_of(name, path, data):
    with tarfile.open(name, "w") as t:
        i = tarfile.TarInfo(path)
        i.size = len(data)
        t.addfile(i, io.BytesIO(data))

big = header("net/zeros", 3 * GIB)
one = gz(deflated(big, 3 << 10))
write("one.tar.gz", one)
write("one.tar.xz", xz(big, 3 << 10))
write("one.tar.zst", zstd(big, 3 << 10))
write("twice.tar.gz", gzip.compress(one))
parts = []
for i in range(3 << 10):
    c = zlib.compressobj(9, zlib.DEFLATED, -15)
    parts.append(c.compress(header("net/%05d" % i, MIB)) + c.flush(zlib.Z_FULL_FLUSH))
zeros = zlib.compressobj(9, zlib.DEFLATED, -15)
zeros = zeros.compress(bytes(MIB)) + zeros.flush(zlib.Z_FULL_FLUSH)
write("many.tar.gz", gz(b"".join(p + zeros for p in parts)))
write("many.tar.xz", b"".join(lzma.compress(header("net/%05d" % i, MIB), preset=0) + xz_zeros for i in range(1000)))
make_zip("one.zip", [b"net/zeros"], deflated(b"", 3 << 10), 3 * GIB)
make_zip("lies.zip", [b"net/zeros"], deflated(b"", 3 << 10), MIB)
make_zip("many.zip", [b"net/%d" % i for i in range(1000)], deflated(b"", 1), MIB, zlib.crc32(bytes(MIB)))
npy = b"\x93NUMPY\1\0" + struct.pack("<H", 118) + b"{'descr': '|u1', 'fortran_order': False, 'shape': (3221225472,), }".ljust(117) + b"\n"
make_zip("one.npz", [b"image.npy"], deflated(npy, 3 << 10), 3 * GIB + 128)
make_zip("many.npz", [b"%d.npy" % i for i in range(1000)], deflated(npy, 1), MIB + 128, zlib.crc32(npy + bytes(MIB)))
inner = gz(deflated(header("net/zeros", 60 * MIB), 60))
tar_of("nested.tar", "net/net.o", one)
with tarfile.open("nests.tar", "w") as t, tarfile.open("nests2.tar", "w") as u:
    for i in range(400):
        for at, data in ((t, inner), (u, inner + b"\0")):
            info = tarfile.TarInfo("net/%d.tar.gz" % i)
            info.size = len(data)
            at.addfile(info, io.BytesIO(data))

archives = ["one.tar.gz", "one.tar.xz", "one.tar.zst", "twice.tar.gz", "many.tar.gz", "many.tar.xz", "one.zip", "lies.zip",
            "many.zip"]
runs = [(["unpack", x, "-C", "out"], 1) for x in archives] + [
    (["audit", "one.tar.gz"], 1), (["audit", "many.tar.gz"], 1), (["audit", "nested.tar"], 1), (["inspect", "one.tar.gz"], 1),
    (["inspect", "many.tar.xz"], 1), (["diff", "one.tar.gz", "many.tar.gz"], 2), (["diff", "many.tar.gz", "many.tar.xz"], 2),
    (["diff", "nests.tar", "nests2.tar"], 1), (["refit", "one.tar.gz", digits, "-o", "out/x.tar"], 1),
    (["cache", "import", "many.tar.gz"], 1), (["run", digits, "--inputs", "one.npz"], 4),
    (["run", digits, "--inputs", "many.npz"], 4), (["verify", "one.tar.gz", "--inputs", "one.npz", "--expect", "one.npz"], 1),
    (["verify", "good.tar", "--inputs", "one.npz", "--expect", "one.npz"], 4)]
os.mkdir("out")
for words, want in runs:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([tvmcc] + words, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    memory = after.ru_maxrss << 10  # of the largest so far
    what = "tvmcc %s: status %d, %.1f s, %d MiB: %s" % (" ".join(words), done.returncode, seconds, memory >> 20, done.stderr[-200:])
    assert done.returncode == want and seconds < SECONDS and memory < MEMORY, what
    assert os.listdir("out") == [], what
    if "-v" in sys.argv:
        print(what)

# What is not too much is unpacked: 60 MiB of zeros in 60 KB, and the archive that we made.
write("zeros.tar.gz", gzip.compress(header("net/zeros", 60 * MIB) + bytes(60 * MIB) + bytes(1024)))
for name in ("zeros.tar.gz", "good.tar"):
    subprocess.run([tvmcc, "unpack", name, "-C", "out"], check=True, stdout=subprocess.DEVNULL)
assert os.path.getsize("out/net/zeros") == 60 * MIB
# ... and with the user's own limit, anything.
subprocess.run([tvmcc, "unpack", "zeros.tar.gz", "-C", "out", "--force", "--max-size=3GiB"], check=True, stdout=subprocess.DEVNULL)
END
[ $? = 0 ] || die "a bomb"
cd / && rm -rf "$work"
