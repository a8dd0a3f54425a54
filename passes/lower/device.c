/* Device operations of main: launches.
 *
 * On a target with a host, arena and weights are device memory.  main has no region: the calling
 * thread uploads the inputs into the arena, launches each kernel's parts in order and downloads the
 * outputs; an `if` downloads its condition.  Calls of one device take effect in order, so nothing
 * else waits.
 *
 *   func @net kind(host) (%x, %out, %arena, %weights) {
 *     copy %x -> %arena+0, 256 bytes to device
 *     launch @conv2d.51ce02aa.0 grid(8) block(64) (%arena+0, %weights+64, %arena+256)
 *     copy %arena+256 -> %out, 40 bytes to host } */
#include "passes/lower/lower.h"

const Stmt *launch_stmt(Ctx *c, const Func *f, const Arg *args, Loc loc)
{
    LaunchData l = {.kernel = f->name, .nargs = f->nparams, .args = args};
    IdxSubst  *here = subst_new(c->arith, c->arena); /* the kernel's dimensions as its arguments */
    const Idx *axis[AXIS_COUNT], *one = idx_const(c->arith, 1);

    for (uint32_t i = 0; i < func_dims(f); i++)
        subst_bind(here, f->params[i].scalar, args[i].scalar);
    func_axes(c, f, axis);
    for (int i = 0; i < 3; i++) {
        const Idx *grid = axis[AXIS_BLOCK_X + i], *block = axis[AXIS_THREAD_X + i];

        l.grid[i] = grid ? idx_subst(here, grid) : one;
        l.block[i] = block ? idx_subst(here, block) : one;
    }
    return stmt_launch(c, l, loc);
}
