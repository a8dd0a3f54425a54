/* What follows codegen in a build of steps (docs/design/build.md): reading plans again, and objects
 * to libraries.
 *
 *     tvmcc S.plan --shard=0/4 -c -o S.0.o
 *     tvmcc S.0.o .. S.host.o S.weights.o -o libnet.a    or x.o, or libnet.so */
#include "driver/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- plans -------------------------------------------------------------------------------------- */

static bool parse_piece(Driver *driver, Job *job)
{
    const char *text = driver->opt.shard;
    char        rest;

    job->piece = PIECE_ALL;
    if (!text)
        return true;
    job->piece = !strcmp(text, "host")      ? PIECE_HOST
                 : !strcmp(text, "weights") ? PIECE_WEIGHTS
                                            : PIECE_KERNELS;
    if (job->piece != PIECE_KERNELS)
        return true;
    if (sscanf(text, "%u/%u%c", &job->shard.at, &job->shard.of, &rest) != 2 || text[0] == '-' ||
        job->shard.at >= job->shard.of)
        return diag_error(driver->diags, E_USAGE, NO_LOC,
                          "'--shard' takes 'host', 'weights' or a shard such as '0/4', not '%s'",
                          text);
    return true;
}

bool job_start_plan(Driver *driver, Job *job)
{
    const Options *o = &driver->opt;

    if (!options_fit_plan(driver->diags, o, o->inputs.at[0]) || !parse_piece(driver, job))
        return false;
    for (uint32_t i = 1; i < o->inputs.n; i++) {
        const char  *path = o->inputs.at[i];
        const char **to = str_ends(path, ".id")        ? &job->id
                          : str_ends(path, ".weights") ? &job->weights
                                                       : NULL;
        if (!to || *to)
            return diag_error(driver->diags, E_USAGE, NO_LOC,
                              "beside a plan there can be one .id and one .weights file, not '%s'",
                              path);
        *to = path;
    }
    job->c = driver->c = ctx_new(driver->arena, driver->diags, op_table);
    job_options(driver, job);
    compile_start(job->c, &job->k, &job->options);
    return true;
}

bool job_read_plan(Job *job, uint32_t set)
{
    const uint32_t code =
        1u << PRODUCT_OBJECT | 1u << PRODUCT_STATIC | 1u << PRODUCT_SHARED | product_sources();
    const uint32_t plain = 1u << PRODUCT_PLAN | 1u << PRODUCT_TIR;
    Ctx           *c = job->c;
    const char    *plan = job->options.path;
    bool           all = job->piece == PIECE_ALL;
    bool           needs_id = all ? (set & ~plain) != 0 : job->piece == PIECE_HOST;
    bool           needs_weights = all ? (set & code) != 0 : job->piece == PIECE_WEIGHTS;
    const uint32_t can = code | plain | 1u << PRODUCT_HEADER | 1u << PRODUCT_META |
                         1u << PRODUCT_LL | 1u << PRODUCT_ASM | 1u << PRODUCT_ID;

    for (int p = 0; p < PRODUCT_COUNT; p++)
        if (set >> p & 1 &&
            (all ? !(can >> p & 1) && !product_is_program((Product)p) : p != PRODUCT_OBJECT))
            return diag_error(c->diags, E_USAGE, NO_LOC, "no '%s' can be made of '%s'%s%s",
                              product_table[p].text, plan, all ? "" : " with --shard=",
                              all                        ? ""
                              : job->piece == PIECE_HOST ? "host"
                                                         : "..");
    if (needs_id && !job->id)
        return diag_error(c->diags, E_USAGE, NO_LOC, "this needs the .id file of '%s' too", plan);
    if (needs_weights && !job->weights)
        return diag_error(c->diags, E_USAGE, NO_LOC, "this needs the .weights file of '%s' too",
                          plan);
    return compile_read_plan(c, &job->k, plan) &&
           (!job->id || compile_read_id(c, &job->k, job->id)) &&
           (!job->weights || compile_read_weights(c, &job->k, job->weights));
}

/* ---- -### ---------------------------------------------------------------------------------------- */

bool show_link(Driver *driver, const LinkJob *job)
{
    ToolArgs args;

    if (!link_command(driver->diags, driver->arena, job, &args))
        return false;
    fputs("linker:", stderr);
    for (uint32_t i = 0; i < args.n; i++)
        fprintf(stderr, " %s", args.at[i]);
    fputc('\n', stderr);
    return true;
}

/* ---- objects ------------------------------------------------------------------------------------ */

typedef struct {
    Ctx         *c;
    Bytes       *objects;
    const char  *output;
    ObjectTarget machine;
} Link;

static bool read_objects(Driver *driver, Link *l)
{
    const TextList *in = &driver->opt.inputs;
    Object          first;

    l->objects = NEW_ARRAY(driver->arena, Bytes, in->n);
    for (uint32_t i = 0; i < in->n; i++) {
        if (!str_ends(in->at[i], ".o"))
            return diag_error(driver->diags, E_USAGE, NO_LOC,
                              "'%s' is no object, but '%s' is: they do not go together", in->at[i],
                              in->at[0]);
        if (!file_map(driver->diags, in->at[i], &l->objects[i]))
            return false;
    }
    if (str_ends(l->output, ".so")) {
        if (!elf_read(driver->diags, driver->arena, in->at[0], l->objects[0], &first))
            return false;
        l->machine = first.target;
    }
    return true;
}

static bool make_archive(Driver *driver, Link *l, Bytes *out)
{
    const TextList *in = &driver->opt.inputs;
    Member         *m = NEW_ARRAY(driver->arena, Member, in->n);

    for (uint32_t i = 0; i < in->n; i++) {
        const char *slash = strrchr(in->at[i], '/');
        m[i] = (Member){.path = slash ? slash + 1 : in->at[i], .data = l->objects[i]};
        for (uint32_t k = 0; k < i; k++)
            if (!strcmp(m[k].path, m[i].path))
                return diag_error(driver->diags, E_PACK, (Loc){.file = in->at[i]},
                                  "a library cannot have two members '%s'", m[i].path);
    }
    return ar_library(driver->diags, driver->arena, m, in->n, out);
}

/* The triple of a shared library: the one that is given, or this machine's if the objects are. */
static bool make_shared(Driver *driver, Link *l)
{
    const Backend *b = backend_cpu();
    const Target  *here = b->parse_target(l->c, "llvm"), *t;
    ObjectTarget   machine;
    bool           given = driver->opt.compile.targets.n || driver->opt.compile.mtriple;

    if (!here || !(t = given ? b->parse_target(l->c, job_target(driver, "llvm")) : here) ||
        !elf_target(driver->diags, t->triple, &machine))
        return false;
    if (machine.machine != l->machine.machine || machine.bits != l->machine.bits) {
        diag_error(driver->diags, E_PACK, (Loc){.file = driver->opt.inputs.at[0]},
                   "this object is not for '%s'", t->triple);
        diag_hint(driver->diags, "say with -mtriple= what the library is for");
        return false;
    }
    LinkJob job = {.output = l->output,
                   .triple = t->triple,
                   .nobjects = driver->opt.inputs.n,
                   .objects = driver->opt.inputs.at,
                   .native = !strcmp(t->triple, here->triple),
                   .verbose = driver->opt.verbose};

    if (driver->opt.dry_run)
        return show_link(driver, &job);
    return link_shared(driver->diags, driver->arena, &job);
}

int link_objects(Driver *driver)
{
    const Options *o = &driver->opt;
    Link           l = {.output = o->output};
    Bytes          library;
    BytesList      out = {1, &library};
    Product        p = l.output ? product_of_path(l.output) : PRODUCT_COUNT;

    if (p != PRODUCT_OBJECT && p != PRODUCT_STATIC && p != PRODUCT_SHARED) {
        diag_error(driver->diags, E_USAGE, NO_LOC,
                   "objects can become a .o, .a or .so; say which with -o");
        return 0;
    }
    if (!options_fit_objects(driver->diags, o, o->inputs.at[0]))
        return 0;
    l.c = driver->c = ctx_new(driver->arena, driver->diags, op_table);
    if (!read_objects(driver, &l))
        return 0;
    if (o->dry_run)
        fprintf(stderr, "product: %s\n", l.output);
    if (p == PRODUCT_SHARED)
        make_shared(driver, &l);
    else if (o->dry_run)
        return 0;
    else if (p == PRODUCT_STATIC ? make_archive(driver, &l, &library)
                                 : elf_merge(driver->diags, driver->arena, o->inputs.n, l.objects,
                                             NULL, o->inputs.at, &out))
        file_write_pieces(driver->diags, l.output, out);
    return 0;
}
