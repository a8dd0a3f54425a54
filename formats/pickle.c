/* Python's pickles, as data.
 *
 * A pickle is a program for a stack machine.  Here it builds a tree of values, and nothing is ever
 * looked up or called: a class is its name (PICKLE_GLOBAL), what would be called stays a call of
 * that name with its arguments (PICKLE_CALL), and whoever reads the tree decides which names mean
 * something.  Protocols 0 to 5, as far as data needs them.
 *
 * Values that the pickle shares are one value here, so a hostile one may contain itself: readers
 * bound their depth.  Each opcode makes at most a few values, so memory is bounded by the file. */
#include "formats/formats.h"

#include <string.h>

typedef struct {
    Diags *d;
    Arena *a;
    Loc    loc;
    Reader r;
    VEC(Pickle *) stack;
    VEC(uint32_t) marks; /* heights of the stack */
    VEC(Pickle *) memo;
    uint32_t    count;
    const char *fault;
} Machine;

enum { MOST_MEMO = 1 << 24 };

static bool fail(Machine *m, const char *what)
{
    m->fault = m->fault ? m->fault : what;
    return false;
}

/* ---- the stack ---------------------------------------------------------------------------------- */

static Pickle *new_value(Machine *m, PickleKind kind)
{
    Pickle *p = NEW(m->a, Pickle);

    p->kind = kind;
    p->id = m->count++;
    return p;
}

static bool push(Machine *m, Pickle *p)
{
    if (p)
        vec_push(m->a, &m->stack, p);
    return p != NULL;
}

static uint32_t floor_of(const Machine *m)
{
    return m->marks.n ? m->marks.at[m->marks.n - 1] : 0;
}

static Pickle *pop(Machine *m)
{
    if (m->stack.n > floor_of(m))
        return m->stack.at[--m->stack.n];
    fail(m, "an empty stack");
    return NULL;
}

static Pickle *top(Machine *m)
{
    if (m->stack.n > floor_of(m))
        return m->stack.at[m->stack.n - 1];
    fail(m, "an empty stack");
    return NULL;
}

static void add(Machine *m, Pickle *to, Pickle *item)
{
    vec_push(m->a, &to->items, item);
}

/* What lies above the last mark, as the items of `to`. */
static bool take_marked(Machine *m, Pickle *to, bool pairs)
{
    uint32_t from;

    if (!m->marks.n)
        return fail(m, "a missing mark");
    from = m->marks.at[--m->marks.n];
    if (pairs && (m->stack.n - from) % 2)
        return fail(m, "a key without a value");
    for (uint32_t i = from; i < m->stack.n; i++)
        add(m, to, m->stack.at[i]);
    m->stack.n = from;
    return true;
}

static bool push_marked(Machine *m, PickleKind kind)
{
    Pickle *p = new_value(m, kind);

    return take_marked(m, p, kind == PICKLE_DICT) && push(m, p);
}

/* The last n of the stack as a tuple. */
static bool push_tuple(Machine *m, uint32_t n)
{
    Pickle *p = new_value(m, PICKLE_TUPLE);

    if (m->stack.n - floor_of(m) < n)
        return fail(m, "an empty stack");
    m->stack.n -= n;
    for (uint32_t i = 0; i < n; i++)
        add(m, p, m->stack.at[m->stack.n + i]);
    return push(m, p);
}

/* ---- values ------------------------------------------------------------------------------------- */

static bool push_int(Machine *m, int64_t v)
{
    Pickle *p = new_value(m, PICKLE_INT);

    p->i = v;
    p->f = (double)v;
    return push(m, p);
}

static bool push_bool(Machine *m, bool v)
{
    Pickle *p = new_value(m, PICKLE_BOOL);

    p->i = v;
    return push(m, p);
}

static bool push_float(Machine *m)
{
    uint64_t bits = 0;
    Pickle  *p = new_value(m, PICKLE_FLOAT);

    for (int i = 0; i < 8; i++)
        bits = bits << 8 | read_u8(&m->r);
    memcpy(&p->f, &bits, sizeof bits);
    return push(m, p);
}

static bool push_long(Machine *m, uint64_t n)
{
    Bytes    b = read_bytes(&m->r, n);
    uint64_t v = 0;

    if (m->r.bad || b.n > 8)
        return fail(m, "a number of more than 64 bits");
    for (size_t i = 0; i < b.n; i++)
        v |= (uint64_t)b.at[i] << (8 * i);
    if (b.n && b.n < 8 && b.at[b.n - 1] & 0x80)
        v |= ~UINT64_C(0) << (8 * b.n);
    return push_int(m, (int64_t)v);
}

static bool text_value(Machine *m, Bytes b, const char **out)
{
    char *text;

    if (m->r.bad || memchr(b.at, 0, b.n))
        return fail(m, "a text with a zero in it, or beyond the end");
    text = arena_alloc(m->a, b.n + 1);
    memcpy(text, b.at, b.n);
    *out = text;
    return true;
}

static bool push_text(Machine *m, uint64_t n)
{
    Pickle *p = new_value(m, PICKLE_TEXT);

    return text_value(m, read_bytes(&m->r, n), &p->text) && push(m, p);
}

static Bytes line(Machine *m)
{
    const uint8_t *end = memchr(m->r.at, '\n', reader_left(&m->r));
    Bytes          b = read_bytes(&m->r, end ? (uint64_t)(end - m->r.at) : UINT64_MAX);

    if (end)
        read_u8(&m->r);
    return b;
}

static bool push_global(Machine *m, const char *module, const char *name)
{
    Pickle *p = new_value(m, PICKLE_GLOBAL);

    p->text = arena_printf(m->a, "%s.%s", module, name);
    return push(m, p);
}

static bool global_lines(Machine *m)
{
    const char *module, *name;

    return text_value(m, line(m), &module) && text_value(m, line(m), &name) &&
           push_global(m, module, name);
}

static bool global_texts(Machine *m)
{
    Pickle *name = pop(m), *module = name ? pop(m) : NULL;

    if (!module)
        return false;
    if (name->kind != PICKLE_TEXT || module->kind != PICKLE_TEXT)
        return fail(m, "a class without a name");
    return push_global(m, module->text, name->text);
}

/* ---- what is made of others ------------------------------------------------------------------------ */

static bool push_call(Machine *m, PickleKind kind)
{
    Pickle *args = pop(m), *of = args ? pop(m) : NULL, *p;

    if (!of)
        return false;
    if (of->kind != PICKLE_GLOBAL || args->kind != PICKLE_TUPLE)
        return fail(m, "a call of something that is no class or function");
    p = new_value(m, kind);
    p->text = of->text;
    p->args = args;
    return push(m, p);
}

static bool build(Machine *m)
{
    Pickle *state = pop(m), *p = state ? top(m) : NULL;

    if (!p)
        return false;
    if ((p->kind != PICKLE_OBJECT && p->kind != PICKLE_CALL) || p->state)
        return fail(m, "a state of something that has none");
    p->state = state;
    return true;
}

static bool persistent(Machine *m)
{
    Pickle *id = pop(m), *p;

    if (!id)
        return false;
    p = new_value(m, PICKLE_PERSISTENT);
    p->args = id;
    return push(m, p);
}

static bool holds_items(Machine *m, const Pickle *p, bool pairs)
{
    return p && ((p->kind == (pairs ? PICKLE_DICT : PICKLE_LIST)) || p->kind == PICKLE_CALL ||
                 p->kind == PICKLE_OBJECT || fail(m, "items of something that is no list"));
}

static bool append_one(Machine *m)
{
    Pickle *item = pop(m), *to = item ? top(m) : NULL;

    if (!holds_items(m, to, false))
        return false;
    add(m, to, item);
    return true;
}

static bool set_one(Machine *m)
{
    Pickle *value = pop(m), *key = value ? pop(m) : NULL, *to = key ? top(m) : NULL;

    if (!holds_items(m, to, true))
        return false;
    add(m, to, key);
    add(m, to, value);
    return true;
}

static bool add_marked(Machine *m, bool pairs)
{
    uint32_t from = floor_of(m);
    Pickle  *to;

    if (!m->marks.n || from == 0 || (m->marks.n > 1 && from <= m->marks.at[m->marks.n - 2]))
        return fail(m, "a missing mark");
    to = m->stack.at[from - 1];
    return holds_items(m, to, pairs) && take_marked(m, to, pairs);
}

/* ---- the memo ------------------------------------------------------------------------------------ */

static bool put(Machine *m, uint64_t at)
{
    Pickle *p = top(m);

    if (!p)
        return false;
    if (at > m->memo.n) /* writers count up */
        return fail(m, "a gap in the memo");
    if (at == m->memo.n)
        vec_push(m->a, &m->memo, p);
    m->memo.at[at] = p;
    return m->memo.n < MOST_MEMO || fail(m, "a memo without an end");
}

static bool get(Machine *m, uint64_t at)
{
    return at < m->memo.n ? push(m, m->memo.at[at]) : fail(m, "a value that was not there yet");
}

/* ---- opcodes -------------------------------------------------------------------------------------- */

static bool step_number(Machine *m, uint8_t op, bool *known)
{
    switch (op) {
    case 'J': return push_int(m, (int32_t)read_u32(&m->r));
    case 'K': return push_int(m, read_u8(&m->r));
    case 'M': return push_int(m, read_u16(&m->r));
    case 0x8a: return push_long(m, read_u8(&m->r));
    case 0x8b: return push_long(m, read_u32(&m->r));
    case 'G': return push_float(m);
    case 0x88: return push_bool(m, true);
    case 0x89: return push_bool(m, false);
    case 'N': return push(m, new_value(m, PICKLE_NONE));
    case 'X':
    case 'T':
    case 'B': return push_text(m, read_u32(&m->r));
    case 0x8c:
    case 'U':
    case 'C': return push_text(m, read_u8(&m->r));
    case 0x8d: return push_text(m, read_u64(&m->r));
    }
    *known = false;
    return true;
}

static bool step_list(Machine *m, uint8_t op, bool *known)
{
    switch (op) {
    case ']': return push(m, new_value(m, PICKLE_LIST));
    case '}': return push(m, new_value(m, PICKLE_DICT));
    case ')': return push(m, new_value(m, PICKLE_TUPLE));
    case 'l': return push_marked(m, PICKLE_LIST);
    case 'd': return push_marked(m, PICKLE_DICT);
    case 't': return push_marked(m, PICKLE_TUPLE);
    case 0x85:
    case 0x86:
    case 0x87: return push_tuple(m, op - 0x84u);
    case 'a': return append_one(m);
    case 'e': return add_marked(m, false);
    case 's': return set_one(m);
    case 'u': return add_marked(m, true);
    }
    *known = false;
    return true;
}

static bool step_other(Machine *m, uint8_t op, bool *known)
{
    switch (op) {
    case 0x80: return read_u8(&m->r) <= 5 || fail(m, "a newer protocol than 5");
    case 0x95: return read_u64(&m->r) <= reader_left(&m->r) || fail(m, "a frame beyond the end");
    case '(': vec_push(m->a, &m->marks, m->stack.n); return true;
    case '0': return pop(m) != NULL;
    case '1': return take_marked(m, new_value(m, PICKLE_LIST), false);
    case '2': return push(m, top(m));
    case 'c': return global_lines(m);
    case 0x93: return global_texts(m);
    case 'R': return push_call(m, PICKLE_CALL);
    case 0x81: return push_call(m, PICKLE_OBJECT);
    case 'b': return build(m);
    case 'Q': return persistent(m);
    case 'q': return put(m, read_u8(&m->r));
    case 'r': return put(m, read_u32(&m->r));
    case 0x94: return put(m, m->memo.n);
    case 'h': return get(m, read_u8(&m->r));
    case 'j': return get(m, read_u32(&m->r));
    }
    *known = false;
    return true;
}

Pickle *pickle_read(Diags *d, Arena *a, Loc loc, const char *what, Bytes bytes)
{
    Machine m = {.d = d, .a = a, .loc = loc, .r = reader(bytes)};

    for (;;) {
        uint8_t op = read_u8(&m.r);
        bool    known = true, ok;

        if (m.r.bad || op == '.')
            break;
        ok = step_number(&m, op, &known);
        if (!known)
            ok = (known = true, step_list(&m, op, &known));
        if (!known)
            ok = (known = true, step_other(&m, op, &known));
        if (!known)
            return diag_error(d, E_UNSUPPORTED, loc,
                              "the pickle '%s' has opcode %u, which no data needs", what, op);
        if (!ok || m.r.bad)
            break;
    }
    if (m.r.bad)
        fail(&m, "its end too early");
    if (!m.fault && (m.stack.n != 1 || m.marks.n))
        fail(&m, "more or less than one value");
    if (m.fault)
        return diag_error(d, E_PARSE_MODEL, loc, "the pickle '%s' has %s", what, m.fault);
    return m.stack.at[0];
}

const Pickle *pickle_item(const Pickle *p, const char *key)
{
    for (uint32_t i = 0; p && i + 1 < p->items.n; i += 2)
        if (p->items.at[i]->kind == PICKLE_TEXT && !strcmp(p->items.at[i]->text, key))
            return p->items.at[i + 1];
    return NULL;
}
