/* desc.c: what packaging says about a product, taken from the plan of a compile.
 *
 * Hashes, weights mode and toolchain are the driver's to add: a plan knows neither files nor
 * options.
 */
#include "packaging/packaging.h"

#include "ir/plan/plan.h"

enum { ARENA_ALIGN = 64 };

/* Generated code asks for the alignment of an element, or more where the host function says so. */
static uint32_t tensor_align(const PlanIO *io, const Param *param)
{
    uint32_t align = dtype_bytes(io->type->dtype);

    return param->buffer->align > align ? param->buffer->align : align;
}

/* `[N, 16], N in 1..64`: the bounds of what is named. */
static const char *shape_text(Ctx *c, const Plan *p, const Type *t)
{
    StrBuf s = strbuf(c->arena);

    str_add(&s, "[");
    for (uint32_t i = 0; i < t->n; i++) {
        str_add(&s, i ? ", " : "");
        dim_print(t->dims[i], &s);
    }
    str_add(&s, "]");
    for (uint32_t i = 0; i < p->symbols.n + p->nbound; i++) {
        const Atom *a = i < p->symbols.n ? p->symbols.at[i] : p->bound[i - p->symbols.n].dim;

        for (uint32_t k = 0; k < t->n; k++)
            if (idx_uses(t->dims[k], a)) {
                str_printf(&s, ", %s in %lld..", a->name, (long long)a->lo);
                if (!atom_is_open(a))
                    str_add(&s, dim_text(c, atom_most(c->arith, a)));
                break;
            }
    }
    return s.at;
}

static bool desc_tensor(Ctx *c, const Plan *p, const PlanIO *io, const Param *param,
                        TensorDesc *out)
{
    const Type *t = io->type;
    int64_t    *dims = NEW_ARRAY(c->arena, int64_t, t->n ? t->n : 1);
    int64_t    *most = NEW_ARRAY(c->arena, int64_t, t->n ? t->n : 1);
    uint64_t    bytes = dtype_bytes(t->dtype);
    bool        dynamic = false, open = false;

    for (uint32_t i = 0; i < t->n; i++) {
        int64_t size = idx_usual(t->dims[i]);

        if (size < 0 || !checked_mul(bytes, (uint64_t)size, &bytes))
            return error_at(c, E_DIM, NO_LOC, "dimension %u of '%s' is too large", i, io->name);
        most[i] = idx_is_open(t->dims[i]) ? -1 : size;
        open = open || most[i] < 0;
        if (!type_dim(t, i, &dims[i])) {
            dims[i] = -1;
            dynamic = true;
        }
    }
    *out = (TensorDesc){
        .name = io->name,
        .code = t->dtype.code,
        .bits = t->dtype.bits,
        .lanes = t->dtype.lanes,
        .ndim = t->n,
        .dims = dims,
        .most = most,
        .shape = dynamic ? shape_text(c, p, t) : NULL,
        .bytes = open ? 0 : bytes,
        .align = tensor_align(io, param),
        .layout = io->layout,
        .state = io->state,
    };
    return true;
}

static bool desc_tensors(Ctx *c, const Plan *p, TensorDesc **in, TensorDesc **out)
{
    const Param *params = p->tir->funcs[p->tir->nfuncs - 1]->params + p->symbols.n; /* of main */

    *in = NEW_ARRAY(c->arena, TensorDesc, p->nin + 1);
    *out = NEW_ARRAY(c->arena, TensorDesc, p->nout + 1);
    for (uint32_t i = 0; i < p->nin; i++)
        if (!desc_tensor(c, p, &p->in[i], &params[i], &(*in)[i]))
            return false;
    for (uint32_t i = 0; i < p->nout; i++)
        if (!desc_tensor(c, p, &p->out[i], &params[p->nin + i], &(*out)[i]))
            return false;
    return true;
}

/* Of a device, what its host's kernels need. */
static uint64_t arena_shared(const Plan *p)
{
    return p->target->host ? p->here_bytes : p->arena_bytes;
}

/* CPU variants and shape buckets: sizes of each, and what holds for all. */
static bool desc_alternatives(Ctx *c, const Plan *p, ModelDesc *m)
{
    uint32_t     nb = plan_buckets(p);
    const char **names = NEW_ARRAY(c->arena, const char *, p->ndims + 1);
    StrBuf       targets = strbuf(c->arena);

    m->nvariants = plan_variants(p);
    m->cpu_tested = p->level != 0;
    m->alts = NEW_ARRAY(c->arena, AltDesc, m->nvariants * nb);
    m->nbucket_dims = p->ndims;
    m->bucket_dims = names;
    for (uint32_t k = 0; k < p->ndims; k++)
        names[k] = p->dims[k].name;
    for (; p; p = p->next) {
        AltDesc *d = &m->alts[m->nalts];
        int64_t *sizes = NEW_ARRAY(c->arena, int64_t, p->ndims + 1);

        for (uint32_t k = 0; k < p->ndims; k++)
            sizes[k] = p->dims[k].size;
        *d = (AltDesc){.target = p->target->text,
                       .sizes = sizes,
                       .arena_shared = p->arena ? 0 : arena_shared(p),
                       .arena_private = p->arena || p->target->host ? 0 : p->private_bytes,
                       .weights_bytes = p->weights_alone};
        if (!desc_tensors(c, p, &d->in, &d->out))
            return false;
        if (m->nalts++ % nb == 0)
            str_printf(&targets, "%s%s", targets.n ? "; " : "", p->target->text);
        if (d->arena_shared > m->arena_shared)
            m->arena_shared = d->arena_shared;
        if (d->arena_private > m->arena_private)
            m->arena_private = d->arena_private;
    }
    m->targets = targets.at;
    return true;
}

/* Kernels of all plans, in their order. */
static void name_kernels(Ctx *c, const Plan *first, ModelDesc *m)
{
    VEC(const char *) names = {0};

    for (const Plan *p = first; p; p = p->next)
        for (uint32_t i = 0; i < p->nkernels; i++)
            vec_push(c->arena, &names, p->kernels[i].func->name);
    m->nkernel_names = names.n;
    m->kernel_names = names.at;
}

static const char *form_text(Ctx *c, const Idx *x)
{
    StrBuf s = strbuf(c->arena);

    dim_print(x, &s);
    return s.at;
}

/* What the caller is told instead of the size of its arena. */
static void desc_open(Ctx *c, const Plan *p, ModelDesc *m)
{
    const char **names = NEW_ARRAY(c->arena, const char *, p->symbols.n + 1);

    for (uint32_t i = 0; i < p->symbols.n; i++)
        names[i] = p->symbols.at[i]->name;
    m->nopen_dims = p->symbols.n;
    m->open_dims = names;
    m->shared_form = form_text(c, p->arena);
    m->private_form = form_text(c, p->scratch);
    m->arena_shared = m->arena_private = 0;
}

ModelDesc *desc_of_plan(Ctx *c, const Plan *p)
{
    ModelDesc  *m = NEW(c->arena, ModelDesc);
    const Plan *first = p;

    p = plan_at(first, plan_buckets(first) - 1); /* the largest bucket */
    *m = (ModelDesc){
        .entry = p->name,
        .model = p->name,
        .nin = p->nin,
        .nout = p->nout,
        .arena_shared = arena_shared(p),
        .arena_private = p->target->host ? 0 : p->private_bytes,
        .state_bytes = plan_state_bytes(first),
        .arena_align = ARENA_ALIGN,
        .arena_floor = p->arena_floor,
        .weights_bytes = p->weights_bytes,
        .triple = p->target->host ? p->target->host->triple : p->target->triple,
        .targets = p->target->text,
        .toolchain = "tvmcc " TVMCC_VERSION,
        .macs = p->macs,
        .kernels = p->nkernels,
        .kernels_tuned = plan_kernels_tuned(p),
        .nlabels = p->nlabels,
        .labels = p->labels,
        .pointer_bits = p->target->pointer_bits,
    };
    name_kernels(c, first, m);
    if (!desc_tensors(c, p, &m->in, &m->out))
        return NULL;
    if ((first->next || first->level || first->ndims) && !desc_alternatives(c, first, m))
        return NULL;
    if (p->arena)
        desc_open(c, p, m);
    if (!m->nalts)
        m->steps = desc_steps(c, p, &m->nsteps);
    return desc_finish(c->diags, c->arena, m) ? m : NULL;
}
