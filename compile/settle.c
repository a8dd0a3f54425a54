/* What options come to together. */
#include "compile/options.h"

#include "backends/backend.h"

#include <string.h>
#include <unistd.h>

/* The first one of the list. */
static const char *device_example(void)
{
    const Backend *b;
    uint32_t       i = 0;

    while ((b = backend_at(i, NULL)) && !b->device)
        i++;
    return b ? b->name : "none";
}

static const Backend *backend_of(Arena *a, const char *target)
{
    return backend_find(arena_printf(a, "%.*s", (int)strcspn(target, " ,"), target));
}

static bool is_device(Arena *a, const char *target)
{
    const Backend *b = backend_of(a, target);

    return b && b->device;
}

/* Where threads are none unless somebody asks for them. */
static bool is_source(Arena *a, const char *target)
{
    const Backend *b = backend_of(a, target);

    return b && b->is_source;
}

/* -Os goes without, whose weights take more room, unless it is asked for. */
static bool wants_winograd(const CompileOptions *o)
{
    return o->winograd && !(o->size && !o->winograd_given);
}

/* Of one --target: that of a device and of its host are joined as `opencl, llvm`, and the cc-like
 * pieces are about the host. */
static const char *target_text(Diags *d, Arena *a, const CompileOptions *o, const char *fallback)
{
    StrBuf s = strbuf(a);
    bool   given = o->targets.n || o->mtriple || o->mcpu || o->mattr || o->mabi || o->mfloat_abi;

    str_add(&s, o->targets.n ? o->targets.at[0] : given ? "llvm" : fallback);
    for (uint32_t i = 1; i < o->targets.n; i++)
        str_printf(&s, ", %s", o->targets.at[i]);
    if (is_device(a, s.at)) {
        bool host = strchr(s.at, ',');
        if (host && o->host)
            diag_error(d, E_USAGE, NO_LOC, "two hosts, '%s' and '%s'", s.at, o->host);
        given = o->host || o->mtriple || o->mcpu || o->mattr || o->mabi || o->mfloat_abi;
        if (!host && (given || o->fast_math || !wants_winograd(o) || o->size || !o->libm ||
                      o->no_threads || !o->cpu_check))
            str_printf(&s, ", %s", o->host ? o->host : "llvm");
    } else if (o->host) {
        diag_error(d, E_USAGE, NO_LOC, "--host is for targets that are devices, such as %s",
                   device_example());
    }
    if (o->mtriple)
        str_printf(&s, " -mtriple=%s", o->mtriple);
    if (o->mcpu)
        str_printf(&s, " -mcpu=%s", o->mcpu);
    if (o->mattr)
        str_printf(&s, " -mattr=%s", o->mattr);
    if (o->mabi)
        str_printf(&s, " -mabi=%s", o->mabi);
    if (o->mfloat_abi)
        str_printf(&s, " -mfloat-abi=%s", o->mfloat_abi);
    if (o->fast_math)
        str_add(&s, " -fast-math=1");
    if (!wants_winograd(o))
        str_add(&s, " -winograd=0");
    if (o->size)
        str_add(&s, " -small=1");
    if (!o->libm)
        str_add(&s, " -libm=0");
    if (o->no_threads)
        str_add(&s, " -threads=0");
    else if (o->threads_given && is_source(a, s.at))
        str_add(&s, " -threads=1");
    if (!o->cpu_check)
        str_add(&s, " -cpu-check=0");
    return s.at;
}

/* Target i of several: the CPU behind the devices drives those that name no host, too. */
static const char *one_of_several(Diags *d, Arena *a, const CompileOptions *all, uint32_t i)
{
    CompileOptions o = *all;
    const char    *last = all->targets.at[all->targets.n - 1], *own = all->targets.at[i];

    memset(&o.targets, 0, sizeof o.targets);
    vec_push(a, &o.targets, own);
    if (is_device(a, own) && !strchr(own, ',') && !is_device(a, last))
        vec_push(a, &o.targets, last);
    if (i + 1 == all->targets.n)
        o.host = is_device(a, last) ? o.host : NULL;
    else if (!is_device(a, own))
        diag_error(d, E_USAGE, NO_LOC, "'%s' is not a device: targets behind it are never taken",
                   own);
    return target_text(d, a, &o, NULL);
}

const char *compile_target_text(Diags *d, Arena *a, const CompileOptions *o, const char *fallback)
{
    return o->targets.n > 1 ? one_of_several(d, a, o, 0) : target_text(d, a, o, fallback);
}

/* All of them, if there are several. */
static bool settle_targets(Diags *d, Arena *a, CompileOptions *o)
{
    if (o->targets.n > 1 && (o->variants.n || o->buckets.n))
        return diag_error(d, E_USAGE, NO_LOC,
                          "CPU variants and shape buckets are for products of one target");
    if (o->targets.n > MAX_TARGETS)
        return diag_error(d, E_USAGE, NO_LOC, "more than %d targets", MAX_TARGETS);
    for (uint32_t i = 1; i < o->targets.n; i++) {
        if (i == 1)
            vec_push(a, &o->fallbacks, o->target);
        vec_push(a, &o->fallbacks, one_of_several(d, a, o, i));
        for (uint32_t k = 0; k < i; k++)
            if (!strcmp(o->fallbacks.at[k], o->fallbacks.at[i]))
                return diag_error(d, E_USAGE, NO_LOC, "the target '%s' is there twice",
                                  o->targets.at[i]);
    }
    return true;
}

Cache *compile_cache(Diags *d, Arena *a, const CompileOptions *o)
{
    const char *wrong = o->no_cache || o->cache_size ? NULL : cache_wrong_size();

    if (wrong) {
        diag_error(d, E_USAGE, NO_LOC,
                   "TVMCC_CACHE_SIZE is '%s', not a size such as 65536, 500MiB or 2GiB", wrong);
        return NULL;
    }
    return o->no_cache ? NULL : cache_open(a, o->cache_dir, o->cache_size);
}

void compile_settle(Diags *d, Arena *a, CompileOptions *o)
{
    o->passes.with = o->with.at;
    o->passes.nwith = o->with.n;
    o->passes.without = o->without.at;
    o->passes.nwithout = o->without.n;
    if (!o->passes.jobs)
        o->passes.jobs = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    o->cache = compile_cache(d, a, o);
}

static const char *float_word(DType t)
{
    return t.bits != 16 ? "float32" : t.code == DT_BFLOAT ? "bfloat16" : "float16";
}

/* Products of 16 bits: what was said about them, together. */
static bool settle_mixed(Diags *d, Arena *a, CompileOptions *o)
{
    MixedPrecision *x = NEW(a, MixedPrecision);

    if (!o->mixed && !o->mixed_type.bits && !o->mixed_sum.bits)
        return true;
    if (!o->mixed && o->mixed_type.bits == 32 && !o->mixed_sum.bits) {
        x->type = DT_F32; /* also where the model has 16 bits */
        o->passes.mixed = x;
        return true;
    }
    if (!o->mixed) {
        diag_error(d, E_USAGE, NO_LOC,
                   "the types of mixed precision are given, but not that it is used");
        diag_hint(d,
                  "--mixed-precision, in a manifest `precision: {mixed: [nn.conv2d, nn.dense]}`");
        return false;
    }
    *x = (MixedPrecision){.type = o->mixed_type.bits ? o->mixed_type : DT_F16,
                          .nops = o->mixed_ops.n,
                          .ops = o->mixed_ops.at};
    x->narrow_sums = o->mixed_sum.bits == 16;
    if (!dtype_is_half(x->type) || (x->narrow_sums && !dtype_eq(x->type, o->mixed_sum))) {
        diag_error(d, E_USAGE, NO_LOC, "mixed precision computes with %s and sums in %s",
                   float_word(x->type), float_word(o->mixed_sum));
        diag_hint(d, "sums are float32 or of the type that is computed with, float16 or bfloat16");
        return false;
    }
    o->passes.mixed = x;
    return true;
}

bool compile_settle_model(Diags *d, Arena *a, CompileOptions *o, const char *fallback)
{
    uint32_t before = diag_errors(d);

    if (o->weights_section && o->weights_mode != WEIGHTS_SECTION)
        return diag_error(d, E_USAGE, NO_LOC, "'--weights-section' is for '-fweights=section'");
    if (o->weights_section && !weights_section_ok(o->weights_section))
        return diag_error(d, E_USAGE, NO_LOC, "'%s' is no name of a section", o->weights_section);
    if (o->variants.n && (o->mcpu || o->mattr))
        return diag_error(d, E_USAGE, NO_LOC,
                          "'--cpu-variants' names the processors; '%s' does too",
                          o->mcpu ? "-mcpu" : "-mattr");
    if (o->variants.n && o->machine)
        return diag_error(d, E_USAGE, NO_LOC,
                          "'--machine' is one machine, '--cpu-variants' is for several");
    if (!settle_mixed(d, a, o))
        return false;
    compile_settle(d, a, o);
    o->target = compile_target_text(d, a, o, fallback);
    return settle_targets(d, a, o) && diag_errors(d) == before;
}
