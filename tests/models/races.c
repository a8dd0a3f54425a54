/* `tvmcc run`, but that the model's kernels for a device are run by the interpreter: thread by
 * thread, with errors for races, for barriers that not all threads of a block come to and for
 * accesses outside of a tensor (ir/tir/eval_launch.c).
 *
 *     races run MODEL --target=opencl --inputs IN.npz --expect OUT.npz
 *
 * It is the driver with another session_run.  The device is opened all the same, as the session
 * does, and has nothing to do.  races.sh runs all models with it. */
#define session_run session_run_on_device
#include "driver/session.c"
#undef session_run

/* Full of NaN. */
static uint8_t *room(Session *s, uint64_t bytes)
{
    uint8_t *at = NEW_ARRAY(s->driver->arena, uint8_t, (size_t)bytes + 64);

    at += 64 - (uintptr_t)at % 64;
    memset(at, 0xff, (size_t)bytes);
    return at;
}

static bool note_launch(void *user, const Stmt *s)
{
    *(uint32_t *)user += s->kind == STMT_LAUNCH;
    return true;
}

bool session_run(Session *s)
{
    const Plan *p = s->job.k.plan;
    uint32_t    n = 0, launches = 0;
    void      **args;

    if (!s->compiled || !p->target->host || p->next || p->symbols.n)
        return diag_error(s->driver->diags, E_UNSUPPORTED, NO_LOC,
                          "races looks at models for one device whose sizes are known");
    const Func *host = p->tir->funcs[p->tir->nfuncs - 1];

    args = NEW_ARRAY(s->driver->arena, void *, host->nparams + 1);
    for (uint32_t i = 0; i < p->nin; i++)
        args[n++] = s->in[i];
    for (uint32_t i = 0; i < p->nout; i++)
        args[n++] = s->out[i];
    for (int part = 0; part < (p->mixed ? 2 : 1); part++) {
        args[n++] = room(s, part ? p->here_bytes : p->arena_bytes + p->private_bytes);
        args[n++] = (void *)(uintptr_t)s->params.weights;
    }
    if (!tir_eval(s->c, p->tir, host, n, args, 0, NULL))
        return false;
    stmt_visit(host->body, &(TirVisit){.user = &launches, .enter = note_launch});
    say(s->driver, "%u launches, thread by thread: no race, no access out of bounds\n", launches);
    return launches || diag_error(s->driver->diags, E_RUN, NO_LOC, "nothing was launched");
}
