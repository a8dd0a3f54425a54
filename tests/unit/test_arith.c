/* Index arithmetic against brute force: values, ranges, bounds, extents, text; worked examples. */
#include "ir/arith/arith.h"

#include "tests/unit/check.h"

#include <stdlib.h>

enum { NVARS = 4, NODES = 64 };

typedef struct {
    char    op; /* v c + * / % m M */
    int     a, b;
    int64_t k;
} Node;

typedef struct {
    Arith      *A;
    Arena      *arena;
    const Atom *var[NVARS];
    int64_t     extent[NVARS], lo[NVARS], value[NVARS];
    Node        node[NODES];
    int         n;
    uint64_t    seed;
} Rig;

static uint32_t rnd(Rig *r, uint32_t n)
{
    r->seed = r->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(r->seed >> 33) % n;
}

static int build(Rig *r, int depth)
{
    static const int64_t muls[] = {2, 3, 4, 6, 8, -1, 14, -3, 16};
    static const int64_t divs[] = {2, 3, 4, 6, 7, 8, 14, 16, 5};
    Node                 n = {0};
    if (!depth || r->n > NODES - 12) {
        n.op = rnd(r, 10) < 8 ? 'v' : 'c';
        n.k = n.op == 'v' ? rnd(r, NVARS) : (int64_t)rnd(r, 26) - 5;
    } else {
        uint32_t o = rnd(r, 100);
        n.a = build(r, depth - 1);
        if (o < 35)
            n.op = '+', n.b = build(r, depth - 1);
        else if (o < 50)
            n.op = '*', n.k = muls[rnd(r, 9)];
        else if (o < 74)
            n.op = '/', n.k = divs[rnd(r, 9)];
        else if (o < 95)
            n.op = '%', n.k = divs[rnd(r, 9)];
        else
            n.op = o < 97 ? 'm' : 'M', n.b = build(r, depth - 1);
    }
    r->node[r->n] = n;
    return r->n++;
}

static const Idx *form(Rig *r, int i)
{
    Node n = r->node[i];
    switch (n.op) {
    case 'v': return idx_atom(r->A, r->var[n.k]);
    case 'c': return idx_const(r->A, n.k);
    case '+': return idx_add(r->A, form(r, n.a), form(r, n.b));
    case '*': return idx_mulc(r->A, form(r, n.a), n.k);
    case '/': return idx_divc(r->A, form(r, n.a), n.k);
    case '%': return idx_modc(r->A, form(r, n.a), n.k);
    case 'm': return idx_min(r->A, form(r, n.a), form(r, n.b));
    default: return idx_max(r->A, form(r, n.a), form(r, n.b));
    }
}

static int64_t value(Rig *r, int i)
{
    Node    n = r->node[i];
    int64_t a = n.op == 'v' || n.op == 'c' ? 0 : value(r, n.a), b;
    switch (n.op) {
    case 'v': return r->value[n.k];
    case 'c': return n.k;
    case '+': return a + value(r, n.b);
    case '*': return a * n.k;
    case '/': return floor_div(a, n.k);
    case '%': return floor_mod(a, n.k);
    case 'm': b = value(r, n.b); return a < b ? a : b;
    default: b = value(r, n.b); return a > b ? a : b;
    }
}

static int64_t env_var(void *user, const Atom *a)
{
    Rig *r = user;
    for (int i = 0; i < NVARS; i++)
        if (r->var[i] == a)
            return r->value[i];
    abort();
}

static const Idx *by_name(void *user, const char *name, size_t n)
{
    Rig *r = user;
    for (int i = 0; i < NVARS; i++)
        if (strlen(r->var[i]->name) == n && !memcmp(r->var[i]->name, name, n))
            return idx_atom(r->A, r->var[i]);
    return NULL;
}

static const char *text(Rig *r, const Idx *x)
{
    StrBuf s = strbuf(r->arena);
    idx_print(x, NULL, &s);
    return s.at;
}

static const Idx *parse(Rig *r, const char *t)
{
    IdxParser  p = {.name = by_name, .user = r};
    const Idx *x = idx_parse(r->A, &t, &p);
    return x && !*t ? x : NULL;
}

static void vars(Rig *r, const int64_t *extents, bool shifted)
{
    static const char *const names[NVARS] = {"a", "b", "c", "d"};
    for (int i = 0; i < NVARS; i++) {
        r->extent[i] = extents ? extents[i] : 1 + rnd(r, i == 3 ? 3 : 7);
        r->lo[i] = shifted ? (int64_t)rnd(r, 5) - 2 : 0;
        r->var[i] = atom_var(r->A, names[i], r->lo[i], r->lo[i] + r->extent[i] - 1);
    }
}

/* Steps value[from..] like an odometer; false after the last. */
static bool next(Rig *r, int from)
{
    for (int i = NVARS - 1; i >= from; i--) {
        if (++r->value[i] < r->lo[i] + r->extent[i])
            return true;
        r->value[i] = r->lo[i];
    }
    return false;
}

static void random_forms(Rig *r, int count)
{
    IdxEnv env = {.var = env_var, .user = r};
    int    wrong = 0, range = 0, bounds = 0, round = 0, substs = 0, canon = 0;
    for (int k = 0; k < count; k++) {
        vars(r, NULL, k % 3 == 0);
        r->n = 0;
        int        top = build(r, 4);
        const Idx *x = form(r, top);
        if (k % 4 == 0 && parse(r, text(r, x)) != x)
            round++;
        int      ninner = 1 + k % NVARS, outer = NVARS - ninner;
        AtomSet *inner = atomset_new(r->arena);
        for (int i = outer; i < NVARS; i++)
            atomset_add(inner, r->var[i]);
        const Idx *lo, *hi;
        idx_bound(r->A, x, inner, &lo, &hi);
        if (idx_uses_any(lo, inner) || idx_uses_any(hi, inner))
            bounds++;
        int64_t extent = idx_extent(r->A, lo, hi);
        /* a -> 2*b' + a' style substitution keeps values: checked at each point below */
        IdxSubst *s = subst_new(r->A, r->arena);
        subst_bind(s, r->var[0], idx_addc(r->A, idx_atom(r->A, r->var[1]), 2));
        const Idx *sx = idx_subst(s, x);
        memcpy(r->value, r->lo, sizeof r->lo);
        do {
            int64_t v = value(r, top);
            wrong += idx_eval(x, &env) != v;
            range += v < x->lo || v > x->hi;
            int64_t l = idx_eval(lo, &env);
            bounds += v < l || v > idx_eval(hi, &env) || v > l + extent - 1;
            int64_t keep = r->value[0];
            int64_t moved = idx_eval(sx, &env);
            r->value[0] = r->value[1] + 2;
            substs += r->value[0] >= r->var[0]->lo && r->value[0] <= r->var[0]->hi &&
                      value(r, top) != moved;
            r->value[0] = keep;
        } while (next(r, 0));
        /* e - k*Div(e,k) built by hand is the mod */
        int64_t kk = 2 + rnd(r, 9);
        canon +=
            idx_sub(r->A, x, idx_mulc(r->A, idx_divc(r->A, x, kk), kk)) != idx_modc(r->A, x, kk);
    }
    if (wrong || range || bounds || round || substs || canon)
        printf("random: value %d range %d bound %d text %d subst %d mod %d\n", wrong, range, bounds,
               round, substs, canon);
    CHECK(!wrong && !range && !bounds && !round && !substs && !canon);
}

/* x covers exactly n cells over the inner variables (from `outer` on). */
static void check_extent(Rig *r, const Idx *x, int outer, int64_t n)
{
    AtomSet *inner = atomset_new(r->arena);
    for (int i = outer; i < NVARS; i++)
        atomset_add(inner, r->var[i]);
    const Idx *lo, *hi;
    idx_bound(r->A, x, inner, &lo, &hi);
    CHECK_INT(idx_extent(r->A, lo, hi), n);
}

static void examples(Rig *r)
{
    Arith *A = r->A;
    vars(r, (int64_t[]){1000, 4, 2, 8}, false);
    const Idx *x = idx_atom(A, r->var[0]);
    /* fuse then split cancels */
    const Idx *fused = parse(r, "a//6*6+(a//3)%2*3+a%3");
    CHECK(fused == x);
    CHECK(parse(r, "a//12*12+a%12") == x);
    /* pack: o = (oc*2+ov)*8+oi */
    CHECK(parse(r, "((b*2+c)*8+d)//16") == idx_atom(A, r->var[1]));
    CHECK(parse(r, "((b*2+c)*8+d)%16") == parse(r, "c*8+d"));
    CHECK(parse(r, "(b*8+d)//16") == parse(r, "b//2")); /* d stays inside a period */
    CHECK_STR(text(r, parse(r, "(b*8+d)%16")), "%b%2*8+%d");
    CHECK_STR(text(r, parse(r, "c+b*2")), "%b*2+%c");
    CHECK_STR(text(r, parse(r, "a//14%14")), "%a//14%14");
    CHECK_STR(text(r, parse(r, "5-a//14")), "-%a//14+5");
    CHECK(parse(r, "-%a//14+5") == parse(r, "5-a//14"));
    CHECK(!parse(r, "a//0") && !parse(r, "zz") && !parse(r, "(a") &&
          !parse(r, "99999999999999999999"));

    /* Winograd: blk*28+t over 14 columns */
    vars(r, (int64_t[]){7, 28, 4, 4}, false);
    const Idx *ty = parse(r, "(a*28+b)//14"), *tx = parse(r, "(a*28+b)%14");
    CHECK(ty == parse(r, "a*2+b//14") && tx == parse(r, "b%14"));
    const Idx *y = idx_add(A, idx_mulc(A, ty, 4), idx_atom(A, r->var[2]));
    const Idx *xq = idx_add(A, idx_mulc(A, tx, 4), idx_atom(A, r->var[3]));
    const Idx *t = idx_add(A, idx_mulc(A, idx_divc(A, y, 4), 14), idx_divc(A, xq, 4));
    CHECK(t == parse(r, "a*28+b"));
    CHECK(tx->lo == 0 && tx->hi == 13 && xq->hi == 55 && ty->hi == 13);
    check_extent(r, t, 1, 28);

    /* wrapped group: g*2 + px//14 */
    vars(r, (int64_t[]){7, 3, 6, 3}, false);
    const Idx *row = parse(r, "a*2+(b*6+c)//14+d");
    CHECK(row->lo == 0 && row->hi == 12 + 1 + 2);
    check_extent(r, row, 1, 4);
    check_extent(r, row, 2, 4);

    /* fuse 12x6, then split: rows touched by one part */
    vars(r, (int64_t[]){8, 9, 1, 1}, false);
    check_extent(r, parse(r, "(a*9+b)//6"), 1, 2);
    vars(r, (int64_t[]){8, 10, 1, 1}, false);
    check_extent(r, parse(r, "(a*10+b)//7"), 1, 3);
    vars(r, (int64_t[]){6, 12, 1, 1}, false);
    check_extent(r, parse(r, "(a*12+b)//6"), 1, 2);
    vars(r, (int64_t[]){49, 64, 1, 1}, false);
    check_extent(r, parse(r, "(a*64+b)//56"), 1, 2);
}

static void predicates(Rig *r)
{
    Arith *A = r->A;
    vars(r, (int64_t[]){10, 6, 1, 1}, false);
    const Idx *e = parse(r, "55-a*6-b"), *f = parse(r, "56-a*6-b");
    Pred       p = pred_and(A, r->arena, PRED_TRUE, e);
    CHECK(p.n == 1 && pred_implies(A, p, f) && !pred_implies(A, PRED_TRUE, f));
    CHECK(pred_and(A, r->arena, p, f).n == 1);
    CHECK(pred_and(A, r->arena, PRED_TRUE, parse(r, "a*6+b")).n == 0);
    p = pred_and(A, r->arena, PRED_TRUE, parse(r, "a*6-7"));
    CHECK(p.n == 1 && p.ge0[0] == parse(r, "a-2"));
    CHECK(idx_never(parse(r, "-a-1")) && !idx_never(parse(r, "-a")));
}

static void symbolic(Rig *r)
{
    Arith *A = r->A;
    vars(r, (int64_t[]){512, 512, 8, 3}, false);
    const Idx  *i = idx_atom(A, r->var[0]), *n = idx_addc(A, idx_atom(A, r->var[1]), 0);
    const Atom *dim = atom_var(A, "n", 1, 512);
    n = idx_atom(A, dim);
    const Idx *flat = idx_add(A, idx_mul(A, i, n), idx_atom(A, r->var[3]));
    CHECK(idx_mul(A, n, i) == idx_mul(A, i, n));
    CHECK(idx_mul(A, idx_addc(A, i, 1), n) == idx_add(A, idx_mul(A, i, n), n));
    CHECK(idx_div(A, idx_mul(A, i, n), n) == i);
    CHECK(idx_mul(A, idx_mul(A, i, n), n) == idx_mul(A, idx_mul(A, n, n), i));
    CHECK(flat->lo == 0 && flat->hi == 511 * 512 + 2);
    CHECK(!arith_overflow(A));
    idx_mulc(A, idx_mulc(A, i, INT64_MAX / 600), 1000);
    CHECK(arith_overflow(A));
}

static int64_t env_zero(void *user, const Atom *a)
{
    (void)user, (void)a;
    return 0;
}

/* A divisor that is 0 counts as 1: of a size that a run makes empty nothing is read, but code that
 * was moved out of its loops must not trap. */
static void test_empty_divisor(void)
{
    Arena     *arena = arena_new(NULL);
    Arith     *A = arith_new(arena, strings_new(arena));
    const Idx *t = idx_atom(A, atom_var(A, "t", 0, 7)), *i = idx_atom(A, atom_var(A, "i", 0, 20));
    const Idx *q = idx_div(A, idx_addc(A, i, 9), t), *none = idx_const(A, 0);
    IdxSubst  *s = subst_new(A, arena);
    IdxEnv     env = {.var = env_zero};

    CHECK(q->lo == 1 && q->hi == 29);
    CHECK(idx_eval(q, &env) == 9);
    CHECK(idx_divisor(A, q->t[0].atom)->lo == 1);
    subst_bind(s, t->t[0].atom, none);
    CHECK(idx_subst(s, q) == idx_addc(A, i, 9));
    CHECK(!arith_overflow(A));
    arena_free(arena);
}

/* A product has up to 16 factors; of more none is lost without a word. */
static void test_many_factors(void)
{
    Arena     *arena = arena_new(NULL);
    Arith     *A = arith_new(arena, strings_new(arena));
    const Idx *p = idx_const(A, 1);

    for (int i = 0; i < 16; i++)
        p = idx_mul(A, p, idx_atom(A, atom_var(A, "n", 0, 3)));
    CHECK(!arith_overflow(A));
    idx_mul(A, p, idx_atom(A, atom_var(A, "n", 0, 3)));
    CHECK(arith_overflow(A));
    arena_free(arena);
}

/* Of what is left of e by k, the size s that it has takes no more than is left. */
static void sizes(Rig *r)
{
    Arith *A = r->A;

    for (int64_t k = 2; k <= 16; k++)
        for (int64_t s = 1; s < k; s++)
            for (int64_t more = 0; more < 3; more++) {
                const Idx *e = idx_addc(A, idx_atom(A, atom_var(A, "e", 1, 200)), more);
                const Idx *has = idx_sub(A, idx_divc(A, idx_addc(A, e, -s), k),
                                         idx_divc(A, idx_addc(A, e, -s - 1), k));
                const Idx *rest = idx_sub(A, idx_modc(A, e, k), idx_mulc(A, has, s));
                CHECK(has->lo == 0 && has->hi == 1 && rest->lo == 0 && rest->hi <= k - 1);
            }
}

static Rig rig;

static void test_sizes(void)
{
    sizes(&rig);
}
static void test_random(void)
{
    random_forms(&rig, 3000);
}
static void test_examples(void)
{
    examples(&rig);
}
static void test_predicates(void)
{
    predicates(&rig);
}
static void test_symbolic(void)
{
    symbolic(&rig);
}

static const Idx *dim_by_name(void *user, const char *name, size_t n)
{
    const Idx *const *at = user;

    return n == 1 && *name == 'N' ? at[0] : n == 1 && *name == 'T' ? at[1] : NULL;
}

/* What is bounded twice is bounded once. */
static void test_nested_ends(void)
{
    Arena     *arena = arena_new(NULL);
    Arith     *A = arith_new(arena, strings_new(arena));
    const Idx *n = idx_atom(A, atom_var(A, "N", 1, 64)), *t = idx_atom(A, atom_var(A, "T", 0, 99));
    const Idx *ten = idx_const(A, 10), *twenty = idx_const(A, 20), *least = idx_min(A, n, ten);

    CHECK(idx_min(A, n, least) == least);
    CHECK(idx_min(A, least, ten) == least);
    CHECK(idx_min(A, least, twenty) == least);
    CHECK(idx_min(A, idx_min(A, n, twenty), ten) == least);
    CHECK(idx_min(A, idx_addc(A, least, 3), idx_addc(A, n, 3)) == idx_addc(A, least, 3));
    CHECK(idx_max(A, idx_max(A, t, ten), twenty) == idx_max(A, t, twenty));
    CHECK(idx_max(A, ten, idx_max(A, t, twenty)) == idx_max(A, t, twenty));
    CHECK(idx_max(A, least, t) != least);
    CHECK(idx_min(A, least, t) != least);
    arena_free(arena);
}

/* Products and quotients of dimensions read back as what they are. */
static void test_text_of_products(void)
{
    Arena     *arena = arena_new(NULL);
    Arith     *A = arith_new(arena, strings_new(arena));
    const Idx *n = idx_atom(A, atom_var(A, "N", 1, 64)), *t = idx_atom(A, atom_var(A, "T", 0, 9));
    const Idx *at[] = {n, t}, *half = idx_divc(A, n, 2), *sum = idx_add(A, n, t);
    const Idx *cases[] = {idx_mul(A, n, half),
                          idx_mul(A, half, idx_mul(A, half, t)),
                          idx_divc(A, idx_mul(A, n, t), 2),
                          idx_mul(A, idx_divc(A, idx_mul(A, n, t), 3), idx_divc(A, t, 4)),
                          idx_mul(A, n, idx_div(A, idx_mulc(A, t, 5), n)),
                          idx_div(A, idx_mul(A, half, t), idx_addc(A, n, 1)),
                          idx_mul(A, idx_min(A, n, t), idx_max(A, half, t)),
                          idx_mul(A, sum, idx_modc(A, sum, 4)),
                          idx_mulc(A, idx_mul(A, half, idx_modc(A, n, 7)), -3)};

    for (uint32_t i = 0; i < COUNT(cases); i++) {
        StrBuf      s = strbuf(arena);
        IdxParser   how = {.name = dim_by_name, .user = at};
        const char *end;

        idx_print(cases[i], NULL, &s);
        end = s.at;
        bool same = idx_parse(A, &end, &how) == cases[i] && !*end;
        CHECK(same);
        if (!same)
            printf("%s\n", s.at);
    }
    arena_free(arena);
}

/* The text is of the index alone: in another arithmetic, whose variables came in another order,
 * what is read prints the same. */
static void test_text_is_canonical(void)
{
    Rig one = {.arena = arena_new(NULL), .seed = 7}, two = one;
    int differ = 0;

    one.A = arith_new(one.arena, strings_new(one.arena));
    for (int k = 0; k < 3000; k++) {
        vars(&one, NULL, k % 3 == 0);
        one.n = 0;
        const char *t = text(&one, form(&one, build(&one, 4)));
        two.A = arith_new(two.arena, strings_new(two.arena));
        for (int i = NVARS - 1; i >= 0; i--)
            two.var[i] = atom_like(two.A, one.var[i]->name, one.var[i]);
        const Idx *x = parse(&two, t);
        CHECK(x);
        const char *again = x ? text(&two, x) : "";
        if (strcmp(t, again) != 0 && differ++ < 5)
            printf("%s\n%s\n", t, again);
    }
    CHECK_INT(differ, 0);
    arena_free(one.arena);
}

/* Sizes of reshaped tensors: what is left of a product. */
static void test_exact(void)
{
    Arena     *arena = arena_new(NULL);
    Arith     *A = arith_new(arena, strings_new(arena));
    const Idx *n = idx_atom(A, atom_var(A, "N", 1, 64)), *t = idx_atom(A, atom_var(A, "T", 0, 9));
    const Idx *sum = idx_addc(A, idx_add(A, n, t), 3), *half = idx_divc(A, n, 2);
    const Idx *zero = idx_const(A, 0), *x = idx_mul(A, idx_mul(A, sum, sum), idx_mulc(A, half, 12));

    CHECK(idx_div_exact(A, idx_mulc(A, idx_mul(A, n, t), 768), idx_mulc(A, t, 12)) ==
          idx_mulc(A, n, 64));
    CHECK(idx_div_exact(A, x, idx_mulc(A, sum, 4)) == idx_mul(A, sum, idx_mulc(A, half, 3)));
    CHECK(idx_div_exact(A, x, sum) == idx_mul(A, sum, idx_mulc(A, half, 12)));
    CHECK(idx_div_exact(A, zero, n) == zero && !idx_div_exact(A, n, zero));
    CHECK(!idx_div_exact(A, n, idx_const(A, 2)) && !idx_div_exact(A, n, t));
    CHECK(!idx_div_exact(A, idx_addc(A, n, 1), n) && !idx_div_exact(A, x, idx_addc(A, sum, 1)));
    arena_free(arena);
}

/* Without an upper bound: ranges hold for every size, the usual one is taken to choose by. */
static void test_open(void)
{
    Arena      *arena = arena_new(NULL);
    Arith      *A = arith_new(arena, strings_new(arena));
    const Atom *far = atom_var(A, "F", 4096, DIM_OPEN);
    const Idx  *t = idx_atom(A, atom_var(A, "T", 2, DIM_OPEN)),
              *n = idx_atom(A, atom_var(A, "N", 1, 8));
    const Idx *next = idx_addc(A, t, 1),
              *cells = idx_mul(A, idx_mul(A, t, next), idx_mulc(A, n, 768));
    const Atom *i = atom_upto(A, "i", next), *k = atom_upto(A, "k", n);

    CHECK(idx_is_open(t) && idx_is_open(cells) && idx_is_open(idx_divc(A, next, 2)));
    CHECK(!idx_is_open(n) && !idx_is_open(idx_const(A, DIM_OPEN)) && idx_is_open(idx_atom(A, i)));
    CHECK_INT(idx_usual(t), DIM_USUAL);
    CHECK_INT(idx_usual(idx_atom(A, far)), 4096);
    CHECK_INT(idx_usual(cells), (int64_t)DIM_USUAL * (DIM_USUAL + 1) * 8 * 768);
    CHECK_INT(idx_usual(idx_modc(A, t, 7)), DIM_USUAL % 7);
    CHECK_INT(idx_usual(idx_mulc(A, n, 3)), 24); /* the largest: it has a bound */
    CHECK_INT(idx_usual(idx_sub(A, idx_const(A, 5), t)), 5 - DIM_USUAL);
    CHECK_INT(atom_usual(i), DIM_USUAL + 1);
    CHECK_INT(atom_usual(k), 8);
    CHECK_INT(cells->hi, 768 * ((INT64_C(1) << 48) + 8 * (int64_t)DIM_OPEN)); /* no run has more */
    CHECK(!arith_overflow(A));
    arena_free(arena);
}

/* What values decide, within a form over dimensions: k is at most 2t, and j below k. */
static void test_within(void)
{
    Arena      *arena = arena_new(NULL);
    Arith      *A = arith_new(arena, strings_new(arena));
    AtomSet    *decided = atomset_new(arena);
    const Idx  *t = idx_atom(A, atom_var(A, "T", 1, DIM_OPEN)), *t2 = idx_mulc(A, t, 2);
    const Atom *kk = atom_within(A, "K", 0, t2), *few = atom_within(A, "F", 0, idx_const(A, 9));
    const Idx  *k = idx_atom(A, kk), *j = idx_atom(A, atom_upto(A, "j", k));

    CHECK(idx_is_open(k) && !atom_is_open(kk) && !idx_is_open(idx_atom(A, few)));
    CHECK_INT(kk->hi, DIM_OPEN);
    CHECK_INT(idx_usual(k), 2 * DIM_USUAL);
    CHECK(atom_most(A, kk) == t2 && atom_most(A, few) == idx_const(A, 9));
    CHECK_INT(idx_sub(A, t2, k)->lo, 0);
    CHECK_INT(idx_sub(A, t2, j)->lo, 1); /* by both */
    CHECK(idx_min(A, k, t2) == k && idx_max(A, k, t2) == t2);
    /* Of 12*t rounds each twelfth begins another: f//12 is below t. */
    const Idx *f = idx_atom(A, atom_upto(A, "f", idx_mulc(A, t, 12)));
    CHECK_INT(idx_sub(A, t, idx_divc(A, f, 12))->lo, 1);
    CHECK_INT(idx_addc(A, idx_sub(A, t, idx_divc(A, idx_addc(A, f, 12), 12)), -1)->lo, -1);
    CHECK(idx_sub(A, t, idx_divc(A, f, 11))->lo < 1);
    CHECK(idx_sub(A, t, idx_divc(A, idx_mulc(A, f, 2), 12))->lo < 1);
    CHECK(is_dim_bound(t2) && !is_dim_bound(k) && !is_dim_bound(idx_divc(A, k, 3)));
    atomset_add(decided, kk);
    CHECK(idx_most(A, idx_mul(A, idx_addc(A, k, 1), t), decided) ==
          idx_mul(A, idx_addc(A, t2, 1), t));
    CHECK(idx_most(A, idx_mul(A, k, k), decided) == idx_mul(A, t2, t2));
    CHECK(idx_most(A, idx_sub(A, t2, k), decided) == t2);
    CHECK(!arith_overflow(A));
    arena_free(arena);
}

/* Terms with a common factor: as one product. */
static void test_common_factor(void)
{
    Arena     *arena = arena_new(NULL);
    Arith     *A = arith_new(arena, strings_new(arena));
    const Idx *n = idx_atom(A, atom_var(A, "N", 1, 4)), *m = idx_atom(A, atom_var(A, "M", 6, 20)),
              *nm = idx_mul(A, n, m), *e = idx_sub(A, nm, idx_mulc(A, n, 3));

    CHECK_INT(e->lo, 3);
    CHECK_INT(e->hi, 68);
    e = idx_sub(A, idx_mul(A, n, idx_divc(A, m, 2)), idx_mulc(A, n, 5));
    CHECK_INT(e->lo, -8);
    CHECK_INT(e->hi, 20);
    e = idx_addc(A, idx_sub(A, idx_mulc(A, idx_mul(A, nm, m), 2), nm), 7); /* n*m is the factor */
    CHECK_INT(e->lo, 6 * 11 + 7);
    CHECK_INT(e->hi, 80 * 39 + 7);
    CHECK(!arith_overflow(A));
    arena_free(arena);
}

int main(void)
{
    Arena *arena = arena_new(NULL);
    rig = (Rig){.arena = arena, .A = arith_new(arena, strings_new(arena)), .seed = 1};
    RUN(test_random);
    RUN(test_examples);
    RUN(test_predicates);
    RUN(test_symbolic);
    RUN(test_empty_divisor);
    RUN(test_many_factors);
    RUN(test_sizes);
    RUN(test_exact);
    RUN(test_open);
    RUN(test_within);
    RUN(test_common_factor);
    RUN(test_text_of_products);
    RUN(test_text_is_canonical);
    RUN(test_nested_ends);
    arena_free(arena);
    return check_result();
}
