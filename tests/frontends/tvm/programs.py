"""Modules with data types, matches, functions as values, references and recursion, written as TVM's text printer
writes them; numpy says what they come to."""
import numpy as np

LISTS = """
type List[A] {
  Cons(A, List[A]),
  Nil,
}

type Option[A] {
  Some(A),
  None,
}

type Tree[A] {
  Rose(A, List[Tree[A]]),
}

extern type Unused

def @id[A](%x: A) -> A {
  %x
}

def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B) -> fn (A) -> C {
  fn (%x: A) -> C {
    %0 = %g(%x);
    %f(%0)
  }
}

def @flip[A, B, C](%f: fn (A, B) -> C) -> fn (B, A) -> C {
  fn (%b: B, %a: A) -> C {
    %f(%a, %b)
  }
}

def @hd[A](%xs: List[A]) -> A {
  match? (%xs) {
    Cons(%x: A, _) => {
      %x
    },
  }
}

def @tl[A](%xs: List[A]) -> List[A] {
  match? (%xs) {
    Cons(_, %rest: List[A]) => {
      %rest
    },
  }
}

def @nth[A](%xs: List[A], %n: int32) -> A {
  %0 = equal(%n, 0 /* ty=int32 */);
  if (%0) {
    @hd(%xs)
  } else {
    %1 = @tl(%xs);
    %2 = subtract(%n, 1 /* ty=int32 */);
    @nth(%1, %2)
  }
}

def @length[A](%xs: List[A]) -> int32 {
  match (%xs) {
    Cons(_, %rest: List[A]) => {
      %0 = @length(%rest);
      add(1 /* ty=int32 */, %0)
    },
    Nil => {
      0 /* ty=int32 */
    },
  }
}

def @update[A](%xs: List[A], %n: int32, %v: A) -> List[A] {
  if (%n == 0) {
    Cons(%v, @tl(%xs))
  } else {
    Cons(@hd(%xs), @update(@tl(%xs), %n - 1, %v))
  }
}

def @map[A, B](%f: fn (A) -> B, %xs: List[A]) -> List[B] {
  match (%xs) {
    Cons(%x: A, %rest: List[A]) => {
      %0 = %f(%x);
      %1 = @map(%f, %rest);
      Cons(%0, %1)
    },
    Nil => {
      Nil
    },
  }
}

def @foldl[A, B](%f: fn (A, B) -> A, %acc: A, %xs: List[B]) -> A {
  match (%xs) {
    Cons(%x: B, %rest: List[B]) => {
      %0 = %f(%acc, %x);
      @foldl(%f, %0, %rest)
    },
    Nil => {
      %acc
    },
  }
}

def @foldr[A, B](%f: fn (A, B) -> B, %acc: B, %xs: List[A]) -> B {
  match (%xs) {
    Cons(%x: A, %rest: List[A]) => %f(%x, @foldr(%f, %acc, %rest)),
    Nil => %acc,
  }
}

def @foldr1[A](%f: fn (A, A) -> A, %xs: List[A]) -> A {
  match? (%xs) {
    Cons(%x, Nil) => %x,
    Cons(%x, %rest) => %f(%x, @foldr1(%f, %rest)),
  }
}

def @filter[A](%f: fn (A) -> bool, %xs: List[A]) -> List[A] {
  match (%xs) {
    Cons(%x, %rest) => {
      if (%f(%x)) {
        Cons(%x, @filter(%f, %rest))
      } else {
        @filter(%f, %rest)
      }
    },
    Nil => Nil,
  }
}

def @zip[A, B](%xs: List[A], %ys: List[B]) -> List[(A, B)] {
  match (%xs, %ys) {
    (Cons(%x, %x_rest), Cons(%y, %y_rest)) => Cons((%x, %y), @zip(%x_rest, %y_rest)),
    _ => Nil,
  }
}

def @rev[A](%xs: List[A]) -> List[A] {
  @foldl(@flip(Cons), Nil, %xs)
}

def @map_accuml[A, B, C](%f: fn (A, B) -> (A, C), %init: A, %xs: List[B]) -> (A, List[C]) {
  let %updater = fn (%acc: (A, List[C]), %x: B) -> (A, List[C]) {
    let %f_out = %f(%acc.0, %x);
    (%f_out.0, Cons(%f_out.1, %acc.1))
  };
  @foldl(%updater, (%init, Nil), %xs)
}

def @unfoldr[A, B](%f: fn (A) -> Option[(A, B)], %seed: A) -> List[B] {
  match (%f(%seed)) {
    Some(%val) => Cons(%val.1, @unfoldr(%f, %val.0)),
    None => Nil,
  }
}

def @tmap[A, B](%f: fn (A) -> B, %t: Tree[A]) -> Tree[B] {
  match (%t) {
    Rose(%v, %sub_trees) => {
      let %list_f = fn (%tt: Tree[A]) -> Tree[B] {
        @tmap(%f, %tt)
      };
      Rose(%f(%v), @map(%list_f, %sub_trees))
    },
  }
}

def @size[A](%t: Tree[A]) -> int32 {
  match (%t) {
    Rose(_, %sub_trees) => {
      1 + @foldl(add, 0, @map(@size, %sub_trees))
    },
  }
}

def @iterate[A](%f: fn (A) -> A, %n: int32) -> fn (A) -> A {
  if (%n == 0) {
    @id
  } else {
    @compose(%f, @iterate(%f, %n - 1))
  }
}
"""


def write_all(f32, module, write):
    x, y, z = f32(2, 3), f32(2, 3), f32(2, 3)
    total = lambda s, v: s * np.float32(2) + v
    write("lists", module({"x": x, "y": y, "z": z}, """  let %xs = Cons(%x, Cons(%y, Cons(%z, Nil)));
  let %f = fn (%s, %v) {
    %0 = multiply(%s, 2f);
    add(%0, %v)
  };
  let %pairs = @zip(@map(tanh, %xs), @rev(%xs));
  let %sums = @map(fn (%p) {
    subtract(%p.0, %p.1)
  }, %pairs);
  let %tree = Rose(%x, Cons(Rose(%y, Nil), Cons(Rose(%z, Nil), Nil)));
  let %steps = @unfoldr(fn (%n: int32) {
    if (%n < 3) {
      Some((%n + 1, %n * %n))
    } else {
      None()
    }
  }, 0);
  let %states = @map_accuml(fn (%s, %v) {
    let %t = %s + %v;
    (%t, exp(%t))
  }, %x, %xs);
  let %twice = @iterate(@compose(negative, abs), @length(%xs) - 1);
  match (@tmap(sigmoid, %tree)) {
    Rose(%root, Cons(Rose(%leaf, _), _)) => {
      (@foldl(%f, %x, %xs), @foldr(%f, %x, %xs), @foldr1(maximum, %xs), @length(%xs), @nth(%sums, 1),
       @hd(@update(@tl(%xs), 0, %root)), %leaf, @size(%tree), @foldl(add, 0, %steps), %states.0, @hd(%states.1),
       %twice(%x))
    },
    Rose(%root, Nil) => {
      (%root,)
    },
  }
""", LISTS), {"x": x, "y": y, "z": z}, [
        total(total(total(x, x), y), z), total(x, total(y, total(z, x))), np.maximum(x, np.maximum(y, z)), np.int32(3),
        np.tanh(y) - y, 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(-y)), np.int32(3), np.int32(5), x + x + y + z,
        np.exp(x + x + y + z), -np.abs(-np.abs(x))])
    # What the run decides: which of two functions, what a list holds, which values pass.
    for name, c in (("chosen", True), ("chosen_not", False)):
        v = [np.float32(a) for a in (1.5, -2, 3)]
        kept = [a for a in v if a > 0]
        write(name, module({"c": np.bool_(c), "x": x, "a": v[0], "b": v[1], "d": v[2]}, """  let %f = if (%c) {
    tanh
  } else {
    fn (%v) {
      %v * 3f
    }
  };
  let %r = ref(%x);
  let %l = if (%c) {
    let %n = ref_write(%r, %f(%x));
    Cons(%a, Nil)
  } else {
    Cons(%b, Cons(%d, Nil))
  };
  let %m = ref_write(%r, ref_read(%r) + %x);
  let %kept = @filter(fn (%v) {
    greater(%v, 0f)
  }, Cons(%a, Cons(%b, Cons(%d, Nil))));
  let %o = if (%c) {
    Some(%x)
  } else {
    None
  };
  (%f(%x), @foldl(add, 0f, %l), ref_read(%r), @foldl(add, 0f, %kept), @length(%kept), match (%o) {
    Some(%v) => negative(%v),
    None => %x + %x,
  })
""", LISTS), {"c": np.bool_(c), "x": x, "a": v[0], "b": v[1], "d": v[2]},
              [np.tanh(x) if c else x * 3, v[0] if c else v[1] + v[2], (np.tanh(x) if c else x) + x, sum(kept),
               np.int32(len(kept)), -x if c else x + x])
    # Loops: by a local function, by one that takes functions, a state of a data type, one within another; rounds that are known.
    w = f32(3, 3)
    for name, n in (("loops", 4), ("loops_none", 0)):
        def rounds(s, k=n):
            for i in range(k):
                s = np.tanh(s @ w.T) + np.float32(i)
            return s
        inner = x
        for i in range(n):
            for j in range(i):
                inner = np.sin(inner) + y
        grown = np.concatenate([x] * 4, 0)
        write(name, module({"x": x, "y": y, "w": w, "n": np.int32(n)}, """  let %while_loop = fn (%i: int32, %s: Tensor[(2, 3), float32]) -> (int32, Tensor[(2, 3), float32]) {
    %0 = less(%i, %n);
    if (%0) {
      %1 = nn.dense(%s, %w, units=3);
      %2 = tanh(%1);
      %3 = cast(%i, dtype="float32");
      let %next = add(%2, %3);
      %while_loop(add(%i, 1), %next)
    } else {
      (%i, %s)
    }
  };
  %4 = %while_loop(0, %x);
  let %grow = fn (%i: int32, %s: Tensor[(?, 3), float32]) -> Tensor[(?, 3), float32] {
    if (%i < 3) {
      %5 = (%s, %x);
      %grow(%i + 1, concatenate(%5))
    } else {
      %s
    }
  };
  let %pair = @repeat(fn (%p) {
    match (%p) {
      Both(%a, (%b, _)) => Both(%b, (sin(%a) + %y, negative(%a))),
    }
  }, Both(%x, (%y, %y)), %n);
  let %outer = fn (%i, %s) {
    let %inner = fn (%j, %t) {
      if (%j < %i) {
        %inner(%j + 1, sin(%t) + %y)
      } else {
        %t
      }
    };
    if (%i < %n) {
      %outer(%i + 1, %inner(0, %s))
    } else {
      %s
    }
  };
  match (%pair) {
    Both(%a, %b) => (%4.1, %4.0, %grow(0, %x), %a, %b, %outer(0, %x)),
  }
""", """
type Pair[A] {
  Both(A, (A, A)),
}

def @repeat[A](%f: fn (A) -> A, %s: A, %n: int32) -> A {
  if (greater(%n, 0)) {
    %0 = %f(%s);
    %1 = subtract(%n, 1);
    @repeat(%f, %0, %1)
  } else {
    %s
  }
}
"""), {"x": x, "y": y, "w": w, "n": np.int32(n)}, [rounds(x), np.int32(n), grown, *pairs(x, y, n), inner])


def pairs(x, y, n):
    a, b, c = x, y, y
    for _ in range(n):
        a, b, c = b, np.sin(a) + y, -a
    return a, b, c


def saved(s, f32, at):
    """A sum over a list, by a function as a value; a loop by a function that a let binds; a reference."""
    x, y = f32(2, 3), f32(2, 3)
    t = s.type(x.shape)
    a = s.node("TypeVar", {"name_hint": s.text("A"), "kind": 0})
    header = s.node("GlobalTypeVar", {"name_hint": s.text("List"), "kind": 5})
    of = s.node("TypeCall", {"func": header, "args": s.array([a])})
    def ctor(name, fields, tag):
        return s.node("relay.Constructor", {"belong_to": header, "inputs": s.array(fields), "name_hint": s.text(name), "tag": tag})
    cons, nil = ctor("Cons", [a, of], 0), ctor("Nil", [], 1)
    data = s.node("relay.TypeData", {"header": header, "type_vars": s.array([a]), "constructors": s.array([cons, nil])})
    def matched(v, cases):
        clauses = [s.node("relay.Clause", {"lhs": p, "rhs": e}) for p, e in cases]
        return s.node("relay.Match", {"data": v, "clauses": s.array(clauses), "complete": 1})
    def fits(k, parts=()):
        return s.node("relay.PatternConstructor", {"constructor": k, "patterns": s.array(parts)})
    def let(v, value, body):
        return s.node("relay.Let", {"var": v, "value": value, "body": body})
    fold = s.node("GlobalVar", {"name_hint": s.text("fold")})
    f, acc, xs = (s.var(n, 0) for n in ("f", "acc", "xs"))
    head, rest = s.var("head", 0), s.var("rest", of)
    pattern = fits(cons, [s.node("relay.PatternVar", {"var": head}), s.node("relay.PatternVar", {"var": rest})])
    folded = s.function([f, acc, xs], matched(xs, [
        (pattern, s.call(fold, [f, s.call(f, [acc, head]), rest])), (fits(nil), acc)]))
    p, q = s.var("x", t), s.var("y", t)
    add = s.node("Op", repr_str="add")
    total = s.call(fold, [add, p, s.call(cons, [q, s.call(cons, [p, s.call(nil, [])])])])
    loop, v, r, done = s.var("loop", 0), s.var("v", t), s.var("r", 0), s.var("done", 0)
    small = s.call("less", [s.call("mean", [v]), s.constant(np.float32(8))])
    again = s.call(loop, [s.call("add", [s.call("exp", [v]), q])])
    body = s.function([v], s.node("relay.If", {"cond": small, "true_branch": again, "false_branch": v}))
    any_tensor = s.node("relay.PatternWildcard", {})
    read = s.node("relay.RefRead", {"ref": r})
    pair = s.node("relay.PatternTuple", {"patterns": s.array([any_tensor, s.node("relay.PatternVar", {"var": head})])})
    second = matched(s.tuple([p, s.call(loop, [q])]), [(pair, s.call("negative", [head]))])
    main = let(loop, body, let(r, s.node("relay.RefCreate", {"value": total}), let(
        done, s.node("relay.RefWrite", {"ref": r, "value": s.call("multiply", [read, q])}), s.tuple(
            [s.call(loop, [p]), s.node("relay.RefRead", {"ref": r}), second]))))
    functions = {"main": s.function([p, q], main)}
    root = s.module(functions, [header, data])
    data_map = s.nodes[int(s.nodes[root]["attrs"]["functions"])]["data"]
    data_map.extend([fold, folded])
    s.write(root, "saved_programs")
    def looped(v):
        while v.mean() < 8:
            v = np.exp(v) + y
        return v
    np.savez(at + ".in.npz", x=x, y=y)
    np.savez(at + ".out.npz", output0=looped(x), output1=(x + y + x) * y, output2=-looped(y))


def broken(one):
    """Programs that come to no end, or to nothing that a product can hold."""
    lists = "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n"
    some = "mean(%x) > 0f"
    one("match", "  match (%x) { Nil => 1f }\n")
    one("match_tensor", "  match (%x) { Nil => 1f }\n", lists)
    one("match_case", "  match? (Cons(%x, Nil)) { Nil => 1f }\n", lists)
    one("match_fields", "  match (Cons(%x, Nil)) { Cons(%a) => %a }\n", lists)
    one("adt", "  let %f = fn (%l: List[Tensor[(2, 3), float32]]) { %l };\n  %f(Nil)\n", "type Tree { Leaf }\n")
    one("fields", "  let %l = Cons(%x);\n  %x\n", lists)
    one("choice", f"  if ({some}) {{ Cons(%x, Nil) }} else {{ Nil }}\n", lists)
    one("operand", "  nn.relu(Cons(%x, Nil))\n", lists)
    one("growing", f"  let %f = fn (%s) {{ if (mean(%s) > 4f) {{ %f(concatenate((%s, %x))) }} else {{ %s }} }};\n  %f(%x)\n")
    one("growing_list", f"  let %f = fn (%s, %l) {{ if (mean(%s) > 4f) {{ %f(tanh(%s), Cons(%s, %l)) }} else {{ %l }} }};\n  %f(%x, Nil)\n", lists)
    one("outside", f"  let %r = ref(%x);\n  let %f = fn (%s) {{ if (mean(%s) > 4f) {{ ref_write(%r, %s); %f(tanh(%s)) }} else {{ %s }} }};\n  %f(%x)\n")
    one("endless", "  let %f = fn (%l) { %f(Cons(%x, %l)) };\n  %f(Nil)\n", lists)
    one("doubled", "  let %f = fn (%i, %l) { if (%i < 100) { %f(%i + 1, (%l, %l)) } else { %x } };\n  %f(0, Nil)\n", lists)
    one("doubled_tensors", "  let %f = fn (%i, %l) { if (%i < 100) { %f(%i + 1, (%l, %l)) } else { %x } };\n  %f(0, %x)\n", lists)
    one("both", "  let %f = fn (%i, %a) { if (mean(%a) > 0f) { %f(%i, tanh(%a)) } else { %f(%i, sin(%a)) } };\n  %f(0, %x)\n")
    one("condition", "  if (%x) { %x } else { %x }\n")
    one("free", "  %f(%x)\n")
