# terminal.py <tvmcc> <work folder>
#
# What a terminal sees: one line of progress that fits its width and is wiped at the end, colours as
# --color, NO_COLOR and CLICOLOR_FORCE say.  Anywhere else neither is there.
import fcntl, os, pty, re, struct, subprocess, sys, termios

tvmcc, work = os.path.abspath(sys.argv[1]), sys.argv[2]
os.makedirs(work, exist_ok=True)
os.chdir(work)



def write_many(pairs):
    with open("many.relay", "w") as f:
        f.write("fn @main(%s) {\n  (%s)\n}\n" % (
            ", ".join(f"%x{i}: Tensor[({i + 3}, {i + 40}), f32]" for i in range(pairs)),
            ", ".join(f"nn.softmax(tanh(%x{i}))" for i in range(pairs))))


with open("bad.relay", "w") as f:
    f.write("fn @main(%x: Tensor[(1, 4), f32]) { nn.dense(%x) }\n")

failed = 0


def check(ok, what, seen=""):
    global failed
    if not ok:
        failed += 1
        print("FAIL", what, repr(seen)[:2000])


def environment(**more):
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE", "COLUMNS")}
    return {**env, "TERM": "xterm", **more}


def on_terminal(columns, arguments, **more):
    """All that a terminal of this width gets, as text."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen([tvmcc] + arguments, stdin=other, stdout=other, stderr=other, env=environment(**more))
    os.close(other)
    seen = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    child.wait()
    os.close(main)
    return seen.decode()


def elsewhere(arguments, **more):
    r = subprocess.run([tvmcc] + arguments, capture_output=True, text=True, env=environment(**more))
    return r.stdout + r.stderr


compile = ["-c", "many.relay", "-mcpu=haswell", "-fno-cache", "-j1"]
# The line is written five times a second: as many kernels that differ as it takes to see one of each kind.
for columns, wanted in ((120, r"\[6/7\] code \d+/%d  .*  [0-9.]+/s  \w+\.[0-9a-f]{8}$"), (40, r"\[6/7\] code \d+/%d  .*\.\.\.$"),
                        (12, r"\[6/7\] ")):
    for pairs in (12, 36, 108, 324):
        write_many(pairs)
        seen = on_terminal(columns, compile)
        lines = [x.removeprefix("\x1b[K") for x in seen.split("\r") if x]
        check(all(len(x) < columns for x in lines), f"a line is broken at {columns} columns", lines)
        check(not lines or seen.endswith("\r\x1b[K"), "the line is not wiped", seen[-60:])
        check("\n" not in seen, "more than one line", seen)
        found = any(re.match(wanted.replace("%d", str(2 * pairs)), x) for x in lines)
        if found:
            break
    check(found, f"no such line at {columns} columns: {wanted}", lines)
write_many(12)
check(elsewhere(compile) == "", "progress where there is no terminal", elsewhere(compile))
check(on_terminal(80, compile, TERM="dumb") == "", "progress on a dumb terminal")
seen = on_terminal(80, compile + ["--explain"])
check("\x1b[K" not in seen, "progress between the lines of --explain", seen)

bad = ["-c", "bad.relay", "-mcpu=haswell"]
red = "\x1b[1;31merror:\x1b[0m "
check(red in on_terminal(80, bad), "no colour on a terminal", on_terminal(80, bad))
check("\x1b[1;32m^\x1b[0m" in on_terminal(80, bad), "no colour of the caret")
for what, arguments, more in (("NO_COLOR", [], {"NO_COLOR": "1"}), ("dumb", [], {"TERM": "dumb"}),
                              ("never", ["--color=never"], {}), ("cc", ["-fno-diagnostics-color"], {})):
    check("\x1b[1" not in on_terminal(80, bad + arguments, **more), f"colour in spite of {what}")
check("\x1b" not in elsewhere(bad), "colour where there is no terminal")
check("\x1b" not in elsewhere(bad + ["--color=auto"]), "auto is not by the terminal")
for arguments, more in ((["--color=always"], {"NO_COLOR": "1"}), (["-fdiagnostics-color"], {}),
                        (["-fdiagnostics-color=always"], {}), ([], {"CLICOLOR_FORCE": "1"})):
    check(red in elsewhere(bad + arguments, **more), f"no colour with {arguments} {more}")
check("\x1b" not in elsewhere(bad + ["--color=always", "-fdiagnostics-format=json"]), "colour in JSON")
sys.exit(failed != 0)
