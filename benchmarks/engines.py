"""The engines that compare.py measures, each as build(model, artifact) and load(artifact, ...) -> run().

A worker process does one of these for one engine:

    engines.py build ENGINE model.onnx artifact           prints {"cpu_s", "rss", "bytes"}
    engines.py work ENGINE model.onnx artifact THREADS    loads, checks, then obeys `run SECONDS` lines

All engines, tvmcc too, run in a Python process with NumPy and are called through Python, so that what
Python costs in time and memory is the same for all.  tvmcc's product is a shared library; it is opened
by the project's runtime, which TVMCC_RUNTIME names as a shared library.
"""
import ctypes
import importlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time

# Suffix of what is made ahead of time (tvmcc's by compare.py); engines that are not here read the .onnx file.
ARTIFACTS = {"tvmcc": ".so", "mnn": ".mnn", "ncnn": ".ncnn.param", "iree": ".vmfb", "tvm": ".tvm.so"}
ENGINES = ["ort", "openvino", "mnn", "ncnn", "iree", "tvm"]
# What belongs to Python, not to loading a model.
IMPORTS = {"ort": "onnxruntime", "openvino": "openvino", "mnn": "MNN", "ncnn": "ncnn", "iree": "iree.runtime",
           "tvm": "tvm.relax", "tvmcc": "numpy"}
SYSTEM = ("/lib/", "/usr/lib/", "/lib64/", "/usr/lib64/")  # libraries that every machine has


# ---- ahead of time ---------------------------------------------------------------------------------

def build_runtime(work, cc="cc"):
    """The project's runtime as a shared library, which Python can open; load_tvmcc finds it."""
    path, folder = os.path.join(work, "libtvmrt.so"), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    sources = [os.path.join(where, f) for where, _, files in os.walk(os.path.join(folder, "runtime"))
               for f in sorted(files) if f.endswith(".c")]
    subprocess.check_call([cc, "-shared", "-fPIC", "-O2", "-std=gnu11", "-I" + folder, "-I" + os.path.join(folder, "include"),
                           *sources, "-o", path, "-lpthread", "-ldl", "-lm"])
    os.environ["TVMCC_RUNTIME"] = path


def build_mnn(model, out):
    # The native converter: the mnnconvert script would install a telemetry client first.
    import _tools
    _tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", model, "--MNNModel", out, "--bizCode", "x"])


def build_ncnn(model, out):
    copy = out + ".onnx"  # pnnx writes files beside its input
    shutil.copy(model, copy)
    rest = [f"{key}={out}.tmp{i}" for i, key in enumerate(("ncnnpy", "pnnxparam", "pnnxbin", "pnnxpy", "pnnxonnx"))]
    subprocess.check_call([os.path.dirname(sys.executable) + "/pnnx", copy, "fp16=0", f"ncnnparam={out}",
                           f"ncnnbin={out.removesuffix('.param')}.bin", *rest])


def build_iree(model, out):
    tools, mlir = os.path.dirname(sys.executable), out + ".mlir"
    subprocess.check_call([tools + "/iree-import-onnx", model, "--opset-version", "17", "-o", mlir])
    subprocess.check_call([tools + "/iree-compile", mlir, "-o", out, "--iree-hal-target-device=local",
                           "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host",
                           "--iree-opt-level=O3"])
    os.remove(mlir)


def build_tvm(model, out):
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx
    cpu = os.environ.get("TVM_CPU", "x86-64-v3")  # compare.py says which
    mod = relax.transform.DecomposeOpsForInference()(from_onnx(onnx.load(model), keep_params_in_input=False))
    mod = relax.transform.FoldConstant()(mod)
    relax.build(mod, tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": os.cpu_count()})).export_library(out)


def size_of(path):
    files = [path, path.removesuffix(".param") + ".bin"]
    return sum(os.path.getsize(f) for f in dict.fromkeys(files) if os.path.exists(f))


def build(engine, model, out):
    globals()["build_" + engine](model, out)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print("\n" + json.dumps({"cpu_s": sum(u.ru_utime + u.ru_stime for u in used),
                             "rss": max(u.ru_maxrss for u in used) * 1024, "bytes": size_of(out)}))


# ---- run -------------------------------------------------------------------------------------------

class Tensor(ctypes.Structure):  # tvmcc_tensor_info and so on: the front of abi.h's structs
    _fields_ = [("name", ctypes.c_char_p), ("dims", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_size_t),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("ndim", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("align", ctypes.c_uint32),
                ("scale", ctypes.c_float), ("zero_point", ctypes.c_int32), ("layout", ctypes.c_char_p),
                ("state_input", ctypes.c_size_t)]


class Params(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_uint32), ("threads", ctypes.c_uint32), ("arena", ctypes.c_void_p),
                ("arena_bytes", ctypes.c_size_t), ("weights", ctypes.c_void_p), ("weights_bytes", ctypes.c_size_t),
                *[(name, ctypes.c_void_p if "count" not in name and "bytes" not in name else ctypes.c_size_t)
                  for name in ("state", "state_bytes", "launch", "barrier", "user", "devices", "device_count",
                               "instrument", "instrument_user")]]


class Info(ctypes.Structure):
    _fields_ = [("abi", ctypes.c_uint32), ("struct_bytes", ctypes.c_uint32), ("texts", ctypes.c_char_p * 3),
                ("hashes", ctypes.c_uint8 * 64), ("counts", ctypes.c_uint32 * 4),
                ("inputs", ctypes.POINTER(Tensor)), ("outputs", ctypes.POINTER(Tensor)),
                ("pools", ctypes.c_void_p), ("weights", ctypes.c_void_p), ("arena", ctypes.c_size_t * 2),
                ("arena_align", ctypes.c_uint32), ("device", ctypes.c_uint32), ("state_bytes", ctypes.c_size_t),
                ("run", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p))]


class Model(ctypes.Structure):  # tvmrt_model
    _fields_ = [("info", ctypes.POINTER(Info)), ("weights", ctypes.c_void_p), ("weights_bytes", ctypes.c_size_t),
                ("handle", ctypes.c_void_p), ("mapping", ctypes.c_void_p), ("mapping_bytes", ctypes.c_size_t),
                ("error", ctypes.c_char * 240)]


def aligned(n):
    import numpy as np
    memory = np.empty(n + 64, np.uint8)
    return memory[-memory.ctypes.data % 64:][:n]


POOLS = {}  # threads: the pool's memory; its threads live as long as the process


def pool_of(rt, threads):
    if threads not in POOLS:
        size = rt.tvmrt_pool_bytes(threads)
        POOLS[threads] = aligned(size)
        rt.tvmrt_pool_new(ctypes.c_void_p(POOLS[threads].ctypes.data), ctypes.c_size_t(size), threads)
    return ctypes.c_void_p(POOLS[threads].ctypes.data)


def load_tvmcc(path, feeds, outs, threads, arena=None, instrument=None, weights=None, ports=None):
    """instrument: a callback and what it is called with; weights: memory where they lie, not in their file; ports: memory
    where inputs and results lie."""
    import numpy as np
    rt, model = ctypes.CDLL(os.environ["TVMCC_RUNTIME"]), Model()
    for name in ("tvmrt_arena_bytes", "tvmrt_pool_bytes"):
        getattr(rt, name).restype = ctypes.c_size_t
    rt.tvmrt_pool_new.restype = ctypes.c_void_p
    if rt.tvmrt_model_open(ctypes.byref(model), path.encode(), None):
        raise RuntimeError(model.error.decode())
    info = model.info.contents
    if arena is None or arena.nbytes < rt.tvmrt_arena_bytes(model.info, threads):
        arena = aligned(rt.tvmrt_arena_bytes(model.info, threads))
    params = Params(ctypes.sizeof(Params), threads, arena.ctypes.data, arena.nbytes, model.weights, model.weights_bytes)
    if weights is not None and model.weights:
        params.weights = weights.ctypes.data
    if instrument:
        params.instrument, params.instrument_user = instrument[0], ctypes.addressof(instrument[1])
    if threads > 1:
        rt.tvmrt_pool_use(pool_of(rt, threads), ctypes.byref(params))
    kinds, used = {0: "i", 1: "u", 2: "f", 6: "b"}, 0

    def room(n):
        nonlocal used
        if ports is None or used + n > ports.nbytes:
            return aligned(n)
        at, used = used, used + -(-n // 64) * 64
        return ports[at:at + n]

    def tensors(n, infos):
        made = []
        for t in (infos[i] for i in range(n)):
            dtype = np.dtype(f"{kinds[t.code]}{t.bits // 8}")
            made.append(room(t.bytes).view(dtype).reshape([t.dims[i] for i in range(t.ndim)]))
        return made, (ctypes.c_void_p * n)(*[m.ctypes.data for m in made])

    ins, in_at = tensors(info.counts[0], info.inputs)
    results, out_at = tensors(info.counts[1], info.outputs)
    for i, value in enumerate(ins):
        value[...] = feeds[info.inputs[i].name.decode()]
    call, args, keep = info.run, (in_at, out_at, ctypes.byref(params)), (arena, model, rt, ins)

    def run():
        if code := call(*args):
            raise RuntimeError(f"status {code}, {len(keep)} objects kept")
        return results
    return run


def load_ort(path, feeds, outs, threads):
    import onnxruntime as ort
    o = ort.SessionOptions()
    o.intra_op_num_threads = threads
    s = ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
    return lambda: s.run(outs, feeds)


def load_openvino(path, feeds, outs, threads):
    import openvino as ov
    request = ov.Core().compile_model(path, "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32",
        "ENABLE_CPU_PINNING": False}).create_infer_request()
    for name, value in feeds.items():
        request.set_tensor(name, ov.Tensor(value))

    def run():
        request.infer()
        return [request.get_tensor(o).data for o in outs]
    return run


def load_mnn(path, feeds, outs, threads):
    import MNN
    import numpy as np
    net, keep = MNN.Interpreter(path), []
    session = net.createSession({"numThread": threads, "backend": "CPU", "precision": "high"})
    for name, value in feeds.items():
        real = value.dtype == np.float32
        value = value if real else value.astype(np.int32)
        kind = MNN.Halide_Type_Float if real else MNN.Halide_Type_Int
        tensor = net.getSessionInput(session, name)
        keep.append((value, MNN.Tensor(value.shape, kind, value, MNN.Tensor_DimensionType_Caffe)))
        tensor.copyFrom(keep[-1][1])

    def run():
        net.runSession(session)
        res = []
        for name in outs:
            tensor = net.getSessionOutput(session, name)
            host = MNN.Tensor(tensor.getShape(), MNN.Halide_Type_Float, np.zeros(tensor.getShape(), np.float32),
                              MNN.Tensor_DimensionType_Caffe)
            tensor.copyToHostTensor(host)
            res.append(np.array(host.getNumpyData()))  # a copy: the data go with `host`
        return res
    return run


def load_ncnn(path, feeds, outs, threads):
    import ncnn
    import numpy as np
    net = ncnn.Net()
    net.opt.num_threads = threads
    for option in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage"):
        setattr(net.opt, option, False)
    net.load_param(path)
    net.load_model(path.removesuffix(".param") + ".bin")
    ins, results = net.input_names(), net.output_names()
    mats = [ncnn.Mat(np.squeeze(v, 0) if v.ndim == 4 else v).clone() for v in feeds.values()]

    def run():
        extractor = net.create_extractor()
        for name, mat in zip(ins, mats):
            extractor.input(name, mat)
        return [np.array(extractor.extract(o)[1]) for o in results]
    return run


def load_iree(path, feeds, outs, threads):
    import iree.runtime as rt
    if threads > 1:
        rt.flags.parse_flags(f"--task_topology_group_count={threads}")
    config = rt.Config("local-sync" if threads == 1 else "local-task")
    context = rt.SystemContext(config=config)
    module = rt.VmModule.mmap(config.vm_instance, path)
    context.add_vm_module(module)
    name = next(n for n in module.function_names if not n.startswith("__") and not n.endswith("$async"))
    f, ins = context.modules[module.name][name], [rt.asdevicearray(config.device, v) for v in feeds.values()]

    def run():
        y = f(*ins)
        return [v.to_host() for v in (y if isinstance(y, (list, tuple)) else [y])]
    return run


def load_tvm(path, feeds, outs, threads):
    import tvm
    from tvm import relax
    main = relax.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())["main"]
    ins = [tvm.runtime.tensor(v) for v in feeds.values()]

    def run():
        y = main(*ins)
        return [v.numpy() for v in ([y] if hasattr(y, "numpy") else y)]
    return run


def libraries():
    """Shared libraries in this process that are not the system's, by path."""
    paths = {line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if ".so" in line}
    return {p for p in paths if os.path.exists(p) and not p.startswith(SYSTEM)}


def status(key):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(key + ":"))


def work(engine, model, path, threads):
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # engines chatter
    import numpy as np
    values = np.load(model.removesuffix(".onnx") + ".npz")
    feeds = {k[3:]: values[k] for k in values if k.startswith("in.")}
    want = {k[4:]: values[k] for k in values if k.startswith("out.")}
    os.environ.update(TVM_NUM_THREADS=str(threads), TVM_BIND_THREADS="0")  # read when it is imported
    before = libraries()
    importlib.import_module(IMPORTS[engine])
    start = time.perf_counter()
    run = globals()["load_" + engine](path, feeds, list(want), threads)
    load_s, start = time.perf_counter() - start, time.perf_counter()
    got = run()
    first_s = time.perf_counter() - start
    error = max(float(np.abs(np.asarray(y).ravel() - w.ravel()).max() / np.abs(w).max())
                for y, w in zip(got, want.values()))

    def say(what):
        print(json.dumps(what), file=out, flush=True)

    brought = libraries() - before - {os.path.realpath(path)}
    say({"load_s": load_s, "first_s": first_s, "error": error, "runtime_bytes": sum(map(os.path.getsize, brought))})
    for line in sys.stdin:
        ms, end = [], time.perf_counter() + float(line.split()[1])
        while not ms or time.perf_counter() < end:
            start = time.perf_counter()
            run()
            ms.append((time.perf_counter() - start) * 1e3)
        say({"ms": ms, "rss": status("VmHWM"), "rss_now": status("VmRSS")})


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build(*sys.argv[2:5])
    else:
        work(*sys.argv[2:5], int(sys.argv[5]))
