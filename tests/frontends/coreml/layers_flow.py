"""Networks with branches and loops."""
import numpy as np
from coremltools.models.neural_network import NeuralNetworkBuilder

from record import Network, case


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def fill(net, layers):
    """Layers of a network in a layer."""
    net.SetInParent()
    layers(NeuralNetworkBuilder(nn_spec=net, disable_rank5_shape_mapping=True))


def branch(b, name, cond, yes, no=None):
    b.add_branch(name, cond)
    layer = b.nn_spec.layers[-1].branch
    fill(layer.ifBranch, yes)
    if no:
        fill(layer.elseBranch, no)


def loop(b, name, body, condition_network=None, **settings):
    b.add_loop(name, **settings)
    layer = b.nn_spec.layers[-1].loop
    fill(layer.bodyNetwork, body)
    if condition_network:
        fill(layer.conditionNetwork, condition_network)


def above(b, name, x, least):
    """name: whether the sum of x is above least."""
    b.add_reduce_sum(name + "_sum", x, name + "_sum", axes=None, keepdims=False, reduce_all=True)
    b.add_greater_than(name, [name + "_sum"], name, alpha=least)


def add(b, name, x, y, out):
    b.add_add_broadcastable(name, [x, y], out)


@case
def flow_branches(rng):
    """Names that both branches give, that one gives anew, and that a branch in a branch does."""
    x, y = np.abs(floats(rng, 2, 3)), floats(rng, 2, 3)
    n = Network("flow_branches", {"x": x, "y": y})
    b = n.b
    for i, least in enumerate((0.0, 100.0)):
        c, out, kept = f"c{i}", f"out{i}", f"kept{i}"
        up = x.sum() > least
        above(b, c, "x", least)
        b.add_copy(kept + "_copy", "y", kept)

        def yes(b, c=c, out=out, kept=kept):
            add(b, c + "_yes", "x", "y", out)
            above(b, c + "_in", "x", 1.0)
            branch(b, c + "_inner", c + "_in", lambda b: add(b, c + "_more", out, "x", kept), lambda b: b.add_copy(c + "_same", "x", out))

        def no(b, c=c, out=out):
            b.add_multiply_broadcastable(c + "_no", ["x", "y"], out)
        branch(b, c + "_branch", c, yes, no)
        add(b, out + "_sum", out, kept, n.out(f"sum{i}", x + y + x + y + x if up else x * y + y))
    b.add_load_constant_nd("known", "known", np.array([0], np.float32), [1])
    b.add_copy("z_copy", "x", n.out("z", y))
    branch(b, "never", "known", lambda b: add(b, "sum", "x", "y", "z"), lambda b: b.add_copy("other", "y", "z"))
    branch(b, "one", "c1", lambda b: add(b, "unused", "x", "y", "z"))
    n.save()


@case
def flow_loops(rng):
    x, y, rounds = np.abs(floats(rng, 2, 3)) + 0.1, np.abs(floats(rng, 2, 3)) + 0.1, np.array([4], np.float32)
    n = Network("flow_loops", {"x": x, "y": y, "rounds": rounds})
    b = n.b
    b.add_multiply_broadcastable("half", ["y", "y"], "step")
    for name in "abcdef":
        b.add_copy(name + "_start", "x", n.out(name, None))
    step = y * y

    # So many times; what a round gives first is there behind the loop.
    def fixed(b):
        add(b, "a_add", "a", "step", "a")
        b.add_multiply_broadcastable("last_mul", ["a", "y"], "last")
    loop(b, "for", fixed, max_iterations=3)
    b.add_copy("last_copy", "last", n.out("seen", (x + 3 * step) * y))
    n.results["a"] = x + 3 * step

    # As many times as an input says, or never.
    loop(b, "given", lambda b: add(b, "b_add", "b", "step", "b"), input_name="rounds")
    n.results["b"] = x + 4 * step

    # While something holds, of its own and with a most.
    loop(b, "while", lambda b: add(b, "c_add", "c", "step", "c"), condition="c_go",
               condition_network=lambda b: (b.add_reduce_sum("c_all", "c", "c_all", axes=None, keepdims=False, reduce_all=True),
                                                  b.add_less_than("c_less", ["c_all"], "c_go", alpha=20.0)))
    c = x.copy()
    while c.sum() < 20:
        c += step
    n.results["c"] = c
    loop(b, "while_few", lambda b: add(b, "d_add", "d", "step", "d"), condition="d_go", max_iterations=2,
               condition_network=lambda b: above(b, "d_go", "d", -1.0))
    n.results["d"] = x + 2 * step
    loop(b, "never", lambda b: add(b, "e_add", "e", "step", "e"), condition="e_go", max_iterations=2,
               condition_network=lambda b: above(b, "e_go", "e", 1000.0))
    n.results["e"] = x

    # One in another.
    def outer(b):
        loop(b, "in", lambda b: add(b, "f_add", "f", "step", "f"), max_iterations=2)
        b.add_multiply_broadcastable("f_mul", ["f", "y"], "f")
    loop(b, "out", outer, max_iterations=3)
    f = x.copy()
    for _ in range(3):
        f = (f + 2 * step) * y
    n.results["f"] = f
    n.save()


@case
def flow_leaves(rng):
    """Rounds and loops that are left in the middle, where the run says so."""
    x, one = np.abs(floats(rng, 2, 3)) + 0.1, np.array([1], np.float32)
    n = Network("flow_leaves", {"x": x})
    b = n.b
    b.add_load_constant_nd("one", "one", one, [1])
    b.add_load_constant_nd("zero", "zero", 0 * one, [1])
    for name in ("s", "t", "u"):
        b.add_copy(name + "_start", "x", n.out(name, None))
        b.add_copy(name + "_first", "zero", n.out(name + "_rounds", None))

    def count(b, name):
        add(b, name + "_count", name + "_rounds", "one", name + "_rounds")

    # Left once the sum is above 9, before the last addition.
    def leaving(b):
        count(b, "s")
        above(b, "s_over", "s", 9.0)
        branch(b, "s_if", "s_over", lambda b: b.add_loop_break("s_break"))
        add(b, "s_add", "s", "x", "s")
    loop(b, "s_loop", leaving, max_iterations=50)
    s, rounds = x.copy(), 0
    for _ in range(50):
        rounds += 1
        if s.sum() > 9:
            break
        s = s + x
    n.results.update(s=s, s_rounds=rounds * one)

    # Rounds above 5 add nothing more; above 5 in the 6th round the loop ends, too.
    def skipping(b):
        count(b, "t")
        above(b, "t_over", "t", 5.0)

        def over(b):
            b.add_greater_than("t_late", ["t_rounds"], "t_late", alpha=5.0)
            branch(b, "t_late_if", "t_late", lambda b: b.add_loop_break("t_break"), lambda b: b.add_loop_continue("t_continue"))
        branch(b, "t_if", "t_over", over, lambda b: add(b, "t_early", "t", "one", "t"))
        add(b, "t_add", "t", "x", "t")
    loop(b, "t_loop", skipping, condition="t_go", condition_network=lambda b: above(b, "t_go", "t", -1.0))
    t, rounds = x.copy(), 0
    while True:
        rounds += 1
        if t.sum() > 5:
            if rounds > 5:
                break
            continue
        t = t + 1 + x
    n.results.update(t=t, t_rounds=rounds * one)

    # A loop in a loop, of which the inner one is left; nothing behind a continue.
    def outer(b):
        def within(b):
            add(b, "u_add", "u", "one", "u")
            above(b, "u_over", "u", 30.0)
            branch(b, "u_if", "u_over", lambda b: b.add_loop_break("u_break"))
            add(b, "u_more", "u", "x", "u")
        loop(b, "u_in", within, max_iterations=3)
        count(b, "u")
        b.add_loop_continue("u_continue")
        add(b, "u_behind", "u", "one", "u")
    loop(b, "u_loop", outer, max_iterations=3)
    u = x.copy()
    for _ in range(3):
        for _ in range(3):
            u = u + 1
            if u.sum() > 30:
                break
            u = u + x
    n.results.update(u=u, u_rounds=3 * one)
    n.save()
