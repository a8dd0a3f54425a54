/* The text of a plan: a line for each thing, then the functions as TIR.
 *
 *     tvmcc plan 1
 *     entry "net" of "net.onnx"
 *     target "llvm -mtriple=x86_64-pc-linux-gnu"
 *     code level 3 pic embed
 *     cpu 3                                        level of x86-64, if it is asked for at run time
 *     bucket "N" 4                                 of each dimension that has buckets
 *     dim N in 1..64                               of inputs, decided by a run
 *     input "data": f32[1,3,224,224]
 *     output "prob": f32[1,1000]                   layout "NCHW" state 1 if there are any
 *     label "tabby cat"                            of a class, for people
 *     arena 7225344, 387072 a thread, lower bound 7225344
 *     weights 102228160, 4089184256 multiply-adds
 *     alone 98230144                               what this plan uses of common weights
 *     kernel @conv2d_relu.51ce02aa 2 calls, 462422016 multiply-adds by "conv2d"
 *     const 0 +37632 "conv1.weight" as "[o,i,y,x] -> .."      packed so
 *     slot 0 +3211264 live 1..2 "relu.0"
 *                                                  where `dim T in 1..2147483647`, which has no
 *                                                  upper bound: "T*3072+64" for such numbers
 *     functions
 *     func @conv2d_relu.51ce02aa ..
 *
 * Alternatives of one product (CPU variants, shape buckets) follow one another in one text.
 * Numbers of version 1 are read by this version only: a plan lives between two steps of one build.
 */
#include "ir/plan/plan.h"
#include "ir/text/parse_tir.h"

#include <string.h>

enum { PLAN_VERSION = 1, MAX_ROWS = 1 << 20, MAX_PLANS = 64 };

typedef unsigned long long ull;

const char plan_tuned[] = "tuning log";

uint32_t plan_kernels_tuned(const Plan *p)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->nkernels; i++)
        n += p->kernels[i].rule && strcmp(p->kernels[i].rule, plan_tuned) == 0;
    return n;
}

/* ---- writing ------------------------------------------------------------------------------------ */

static void print_io(Ctx *c, const char *what, uint32_t n, const PlanIO *io, StrBuf *out)
{
    for (uint32_t i = 0; i < n; i++) {
        str_printf(out, "%s ", what);
        print_quoted(out, io[i].name);
        str_printf(out, ": %s[", dtype_text(c, io[i].type->dtype));
        for (uint32_t k = 0; k < io[i].type->n; k++) {
            str_add(out, k ? "," : "");
            dim_print(io[i].type->dims[k], out);
        }
        str_add(out, "]");
        if (io[i].layout) {
            str_add(out, " layout ");
            print_quoted(out, io[i].layout);
        }
        if (io[i].state)
            str_printf(out, " state %u", io[i].state);
        str_add(out, "\n");
    }
}

const char *const weights_mode_names[WEIGHTS_MODES] = {"embed", "file", "section", "extern"};

bool weights_section_ok(const char *name)
{
    size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._$-");

    return n && n < 128 && !name[n];
}

static bool is_hash(const char *text)
{
    return strspn(text, "0123456789abcdef") == 64 && !text[64];
}

static void print_bytes(uint64_t bytes, const Idx *form, StrBuf *out)
{
    str_add(out, form ? "\"" : "");
    if (form)
        dim_print(form, out);
    else
        str_printf(out, "%llu", (ull)bytes);
    str_add(out, form ? "\"" : "");
}

static void print_one(Ctx *c, const Plan *p, StrBuf *out)
{
    str_printf(out, "tvmcc plan %d\nentry ", PLAN_VERSION);
    print_quoted(out, p->name);
    str_add(out, " of ");
    print_quoted(out, p->model);
    str_add(out, "\ntarget ");
    print_quoted(out, p->target->text);
    str_printf(out, "\ncode level %u%s", p->code.opt_level, p->code.pic ? " pic" : "");
    if (p->code.weights != WEIGHTS_FILE)
        str_printf(out, " %s", weights_mode_names[p->code.weights]);
    if (p->code.weights == WEIGHTS_SECTION) {
        str_add(out, " ");
        print_quoted(out, p->code.section);
    }
    if (p->code.machine) {
        str_add(out, " machine ");
        print_quoted(out, p->code.machine);
    }
    str_add(out, "\n");
    if (p->level)
        str_printf(out, "cpu %u\n", p->level);
    for (uint32_t i = 0; i < p->ndims; i++) {
        str_add(out, "bucket ");
        print_quoted(out, p->dims[i].name);
        str_printf(out, " %lld\n", (long long)p->dims[i].size);
    }
    for (uint32_t i = 0; i < p->symbols.n; i++) {
        const Atom *a = p->symbols.at[i];
        str_printf(out, "dim %s in %lld..%lld\n", a->name, (long long)a->lo, (long long)a->hi);
    }
    for (uint32_t i = 0; i < p->nbound; i++) {
        const Atom *a = p->bound[i].dim;
        str_printf(out, "bound %s in %lld..%s cell %u\n", a->name, (long long)a->lo,
                   dim_text(c, atom_most(c->arith, a)), p->bound[i].cell);
    }
    print_io(c, "input", p->nin, p->in, out);
    print_io(c, "output", p->nout, p->out, out);
    for (uint32_t i = 0; i < p->nlabels; i++) {
        str_add(out, "label ");
        print_quoted(out, p->labels[i]);
        str_add(out, "\n");
    }
    str_add(out, "arena ");
    print_bytes(p->arena_bytes, p->arena, out);
    str_add(out, ", ");
    print_bytes(p->private_bytes, p->scratch, out);
    str_printf(out, " a thread, lower bound %llu\n", (ull)p->arena_floor);
    if (p->mixed)
        str_printf(out, "here %llu\n", (ull)p->here_bytes);
    str_printf(out, "weights %llu, %lld multiply-adds\n", (ull)p->weights_bytes,
               (long long)p->macs);
    if (p->weights_alone)
        str_printf(out, "alone %llu\n", (ull)p->weights_alone);
    for (uint32_t i = 0; i < p->nkernels; i++) {
        str_printf(out, "kernel @%s %llu calls, %lld multiply-adds", p->kernels[i].func->name,
                   (ull)p->kernels[i].calls, (long long)p->kernels[i].macs);
        if (p->kernels[i].rule) {
            str_add(out, " by ");
            print_quoted(out, p->kernels[i].rule);
        }
        str_add(out, "\n");
    }
    for (uint32_t i = 0; i < p->nconsts; i++) {
        const PlanConst *k = &p->consts[i];

        str_printf(out, "const %llu +%llu ", (ull)k->offset, (ull)k->bytes);
        print_quoted(out, k->name);
        if (k->map && *k->map) {
            str_add(out, " as ");
            print_quoted(out, k->map);
        }
        str_add(out, "\n");
    }
    for (uint32_t i = 0; i < p->nslots; i++) {
        str_add(out, "slot ");
        print_bytes(p->slots[i].offset, p->slots[i].at, out);
        str_add(out, " +");
        print_bytes(p->slots[i].bytes, p->slots[i].room, out);
        str_printf(out, " live %u..%u ", p->slots[i].first, p->slots[i].last);
        print_quoted(out, p->slots[i].name);
        str_add(out, "\n");
    }
    str_add(out, "functions\n");
    tir_print_bare(c, p->tir, out);
}

void plan_print(Ctx *c, const Plan *p, StrBuf *out)
{
    for (; p; p = p->next)
        print_one(c, p, out);
}

/* ---- reading ------------------------------------------------------------------------------------ */

static uint64_t parse_size(Parser *p)
{
    int64_t n = parse_int(p);

    if (!p->failed && n < 0)
        parse_fail(p, "a negative size");
    return (uint64_t)n;
}

/* A number of bytes, or a form in quotes, whose names were declared. */
static uint64_t parse_room(Parser *p, const Idx **form)
{
    *form = NULL;
    if (!parse_accept(p, "\""))
        return parse_size(p);
    *form = parse_idx(p);
    if (!p->failed && *form && (*form)->lo < 0)
        parse_fail(p, "a negative size");
    return parse_expect(p, "\"") && *form ? (uint64_t)idx_usual(*form) : 0;
}

/* `"data": f32[N,3,224,224]` */
static PlanIO parse_io(Parser *p)
{
    const char   *name = parse_string(p);
    const Buffer *b = parse_expect(p, ":") ? parse_buffer(p, name) : NULL;
    int64_t       n;

    if (!b)
        return (PlanIO){0};
    const Type *t = type_tensor(p->c, b->dtype, b->ndim, b->extent);

    if (!type_elems_most(t, &n))
        parse_fail(p, "the shape of '%s' is not known", name);
    PlanIO io = {.name = name, .type = t};
    if (parse_accept(p, "layout"))
        io.layout = parse_string(p);
    if (parse_accept(p, "state"))
        io.state = (uint32_t)parse_size(p);
    return io;
}

typedef struct {
    VEC(const Atom *) symbols;
    VEC(BoundDim) bound;
    VEC(PlanIO) in, out;
    VEC(PlanKernel) kernels;
    VEC(const char *) names; /* of the kernels */
    VEC(PlanConst) consts;
    VEC(PlanSlot) slots;
    VEC(const char *) labels;
} Rows;

static PlanConst parse_const(Parser *p)
{
    PlanConst k = {.offset = parse_size(p)};

    parse_expect(p, "+");
    k.bytes = parse_size(p);
    k.name = parse_string(p);
    if (parse_accept(p, "as"))
        k.map = parse_string(p);
    return k;
}

static PlanSlot parse_slot(Parser *p)
{
    PlanSlot s = {0};

    s.offset = parse_room(p, &s.at);
    parse_expect(p, "+");
    s.bytes = parse_room(p, &s.room);
    parse_expect(p, "live");
    s.first = (uint32_t)parse_size(p);
    parse_expect(p, "..");
    s.last = (uint32_t)parse_size(p);
    s.name = parse_string(p);
    return s;
}

static void parse_kernel(Parser *p, Rows *r)
{
    PlanKernel  k = {0};
    const char *name;

    parse_expect(p, "@");
    name = parse_word(p);
    k.calls = parse_size(p);
    parse_expect(p, "calls");
    parse_expect(p, ",");
    k.macs = parse_int(p);
    parse_expect(p, "multiply-adds");
    if (parse_accept(p, "by"))
        k.rule = parse_string(p);
    vec_push(p->c->arena, &r->names, name);
    vec_push(p->c->arena, &r->kernels, k);
}

static void parse_head(Parser *p, Plan *plan, PlanTarget *parse_target)
{
    const char *target;

    if (!parse_accept(p, "tvmcc") || !parse_accept(p, "plan")) {
        parse_fail(p, "this is no plan");
        return;
    }
    if (parse_int(p) != PLAN_VERSION) {
        parse_fail(p, "a plan of another version of tvmcc; make it anew");
        return;
    }
    parse_expect(p, "entry");
    plan->name = parse_string(p);
    parse_expect(p, "of");
    plan->model = parse_string(p);
    parse_expect(p, "target");
    target = parse_string(p);
    if (!p->failed && !(plan->target = p->c->target = parse_target(p->c, target)))
        p->failed = true;
    parse_expect(p, "code");
    parse_expect(p, "level");
    plan->code.opt_level = (uint32_t)parse_size(p);
    if (plan->code.opt_level > 3)
        parse_fail(p, "the level is 0 to 3");
    plan->code.pic = parse_accept(p, "pic");
    plan->code.weights = parse_accept(p, "embed")     ? WEIGHTS_EMBED
                         : parse_accept(p, "section") ? WEIGHTS_SECTION
                         : parse_accept(p, "extern")  ? WEIGHTS_EXTERN
                                                      : WEIGHTS_FILE;
    if (plan->code.weights == WEIGHTS_SECTION)
        plan->code.section = parse_string(p);
    if (plan->code.section && !weights_section_ok(plan->code.section))
        parse_fail(p, "that is no name of a section");
    if (parse_accept(p, "machine"))
        plan->code.machine = parse_string(p);
    if (plan->code.machine && !is_hash(plan->code.machine))
        parse_fail(p, "the hash of a machine's figures is 64 hex digits");
    if (parse_accept(p, "cpu"))
        plan->level = (uint32_t)parse_size(p);
    if (plan->level > 4)
        parse_fail(p, "the levels of CPUs are 1 to 4");
}

static const PlanDim *parse_dims(Parser *p, uint32_t *n)
{
    VEC(PlanDim) dims = {0};

    while (parse_accept(p, "bucket") && dims.n < MAX_ROWS) {
        PlanDim d = {.name = parse_string(p)};

        d.size = (int64_t)parse_size(p);
        vec_push(p->c->arena, &dims, d);
    }
    *n = dims.n;
    return dims.at;
}

static void parse_sizes(Parser *p, Plan *plan)
{
    parse_expect(p, "arena");
    plan->arena_bytes = parse_room(p, &plan->arena);
    parse_expect(p, ",");
    plan->private_bytes = parse_room(p, &plan->scratch);
    parse_expect(p, "a");
    parse_expect(p, "thread");
    parse_expect(p, ",");
    parse_expect(p, "lower");
    parse_expect(p, "bound");
    plan->arena_floor = parse_size(p);
    if ((plan->mixed = parse_accept(p, "here")))
        plan->here_bytes = parse_size(p);
    parse_expect(p, "weights");
    plan->weights_bytes = parse_size(p);
    parse_expect(p, ",");
    plan->macs = parse_int(p);
    parse_expect(p, "multiply-adds");
    if (parse_accept(p, "alone"))
        plan->weights_alone = parse_size(p);
}

static void parse_rows(Parser *p, Rows *r)
{
    Arena *a = p->c->arena;

    while (parse_accept(p, "kernel") && r->kernels.n < MAX_ROWS)
        parse_kernel(p, r);
    while (parse_accept(p, "const") && r->consts.n < MAX_ROWS)
        vec_push(a, &r->consts, parse_const(p));
    while (parse_accept(p, "slot") && r->slots.n < MAX_ROWS)
        vec_push(a, &r->slots, parse_slot(p));
    parse_expect(p, "functions");
}

/* Main's last parameter: where values that decide dimensions are written. */
static void check_cells(Parser *p, Plan *plan, const Buffer *b)
{
    int64_t n = 0;

    if (!b || b->ndim != 1 || !dtype_eq(b->dtype, DT_I64) || !idx_is_const(b->extent[0], &n) ||
        n < 1 || n > MAX_ROWS)
        parse_fail(p, "the cells of dimensions are none");
    plan->ncells = (uint32_t)n;
    for (uint32_t i = 0; i < plan->nbound; i++)
        if (plan->bound[i].cell >= plan->ncells)
            parse_fail(p, "dimension '%s' has no cell", plan->bound[i].dim->name);
}

/* The functions must fit the lines before them; main's parameters are what code relies on. */
static void check(Parser *p, Plan *plan, const Rows *r)
{
    const TirModule *m = plan->tir;
    const Func      *main = m->nfuncs ? m->funcs[m->nfuncs - 1] : NULL;

    uint32_t n = plan->symbols.n + plan->nin + plan->nout + 2 + 2 * plan->mixed;

    if (!main || main->kind != FUNC_HOST || func_dims(main) != plan->symbols.n ||
        (main->nparams != n && main->nparams != n + 1)) {
        parse_fail(p, "the plan does not end in its host function");
        return;
    }
    if (main->nparams == n + 1)
        check_cells(p, plan, main->params[n].buffer);
    else if (plan->nbound)
        parse_fail(p, "the host function has no cells for its dimensions");
    bool open = false;
    for (uint32_t i = 0; i < plan->symbols.n; i++)
        open = open || atom_is_open(plan->symbols.at[i]);
    if (open != (plan->arena != NULL) || open != (plan->scratch != NULL))
        parse_fail(p, "the arena is a form if a dimension has no upper bound, else a number");
    for (uint32_t i = plan->symbols.n; i < main->nparams; i++)
        if (!main->params[i].buffer)
            parse_fail(p, "the host function takes only tensors");
    for (uint32_t i = 0; i + 1 < m->nfuncs; i++)
        if (m->funcs[i]->kind != FUNC_KERNEL && m->funcs[i]->kind != FUNC_DEVICE)
            parse_fail(p, "'@%s' is no kernel", m->funcs[i]->name);
    for (uint32_t i = 0; i < r->kernels.n && !p->failed; i++)
        if (!(r->kernels.at[i].func = tirmod_find(m, r->names.at[i])))
            parse_fail(p, "there is no function '@%s'", r->names.at[i]);
}

static const Atom *parse_run_dim(Parser *p)
{
    const Atom *dim = parse_dim(p);

    if (!dim)
        parse_fail(p, "a dimension that no run decides");
    return dim;
}

static BoundDim parse_bound(Parser *p)
{
    const Atom *dim = parse_run_dim(p);
    uint64_t    cell = parse_expect(p, "cell") ? parse_size(p) : 0;

    if (cell >= MAX_ROWS)
        parse_fail(p, "cell %llu of dimensions", (ull)cell);
    return (BoundDim){dim, (uint32_t)cell};
}

static Plan *read_one(Parser *p, PlanTarget *parse_target)
{
    Ctx  *c = p->c;
    Plan *plan = NEW(c->arena, Plan);
    Rows  r = {0};

    parse_head(p, plan, parse_target);
    plan->dims = parse_dims(p, &plan->ndims);
    while (parse_accept(p, "dim") && r.symbols.n < MAX_ROWS)
        vec_push(c->arena, &r.symbols, parse_run_dim(p));
    while (parse_accept(p, "bound") && r.bound.n < MAX_ROWS)
        vec_push(c->arena, &r.bound, parse_bound(p));
    while (parse_accept(p, "input") && r.in.n < MAX_ROWS)
        vec_push(c->arena, &r.in, parse_io(p));
    while (parse_accept(p, "output") && r.out.n < MAX_ROWS)
        vec_push(c->arena, &r.out, parse_io(p));
    while (parse_accept(p, "label") && r.labels.n < MAX_ROWS)
        vec_push(c->arena, &r.labels, parse_string(p));
    parse_sizes(p, plan);
    parse_rows(p, &r);
    plan->tir = p->failed ? NULL : parse_functions(p);
    if (p->failed)
        return NULL;
    plan->symbols = (AtomList){r.symbols.n, r.symbols.at};
    plan->nbound = r.bound.n;
    plan->bound = r.bound.at;
    plan->nin = r.in.n;
    plan->in = r.in.at;
    plan->nout = r.out.n;
    plan->out = r.out.at;
    plan->nkernels = r.kernels.n;
    plan->kernels = r.kernels.at;
    plan->nconsts = r.consts.n;
    plan->consts = r.consts.at;
    plan->nlabels = r.labels.n;
    plan->labels = r.labels.at;
    plan->nslots = r.slots.n;
    plan->slots = r.slots.at;
    check(p, plan, &r);
    return p->failed || !tir_verify(c, plan->tir, TIR_LOWERED) ? NULL : plan;
}

/* Do q and the first plan p belong to one product?  `last` is the one before q. */
static bool alternatives(const Plan *p, const Plan *last, const Plan *q)
{
    bool same = !strcmp(p->name, q->name) && p->nin == q->nin && p->nout == q->nout &&
                p->ndims == q->ndims && p->weights_bytes == q->weights_bytes &&
                !p->level == !q->level && last->level <= q->level &&
                p->code.opt_level == q->code.opt_level && p->code.pic == q->code.pic &&
                p->code.weights == q->code.weights && !p->code.section == !q->code.section &&
                (!p->code.section || !strcmp(p->code.section, q->code.section)) &&
                !p->code.machine == !q->code.machine &&
                (!p->code.machine || !strcmp(p->code.machine, q->code.machine)) &&
                (p->target->host || !q->target->host);

    for (uint32_t i = 0; same && i < p->ndims; i++)
        same = !strcmp(p->dims[i].name, q->dims[i].name);
    return same;
}

const Plan *plan_read(Ctx *c, const char *file, Bytes text, PlanTarget *parse_target)
{
    const char *copy = arena_printf(c->arena, "%.*s", (int)(text.n > INT32_MAX ? 0 : text.n),
                                    text.n ? (const char *)text.at : "");
    Parser      p = {.c = c, .file = file, .text = copy, .at = copy};
    Plan       *first, *last, *q;
    uint32_t    n = 1;

    diag_source(c->diags, file, text);
    if (!(first = last = read_one(&p, parse_target)))
        return NULL;
    for (; *p.at; last = q, n++) {
        if (!(q = read_one(&p, parse_target)))
            return NULL;
        if (n == MAX_PLANS || !alternatives(first, last, q)) {
            parse_fail(&p, "the plans are of different products");
            return NULL;
        }
        last->next = q;
    }
    if (n != plan_variants(first) * plan_buckets(first)) {
        parse_fail(&p, "a bucket of some CPU is missing");
        return NULL;
    }
    c->target = first->target;
    return first;
}

uint32_t plan_state_cells(uint32_t kernels)
{
    return STATE_POINTERS + 2 * kernels + 1;
}

uint64_t plan_state_bytes(const Plan *p)
{
    uint64_t most = 0;

    for (; p; p = p->next) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < p->tir->nfuncs; i++)
            n += p->tir->funcs[i]->kind == FUNC_DEVICE;
        uint64_t bytes = (uint64_t)plan_state_cells(n) * p->target->pointer_bits / 8;
        if (p->target->host && bytes > most)
            most = bytes;
    }
    return most;
}
