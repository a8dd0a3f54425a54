/* A launch: memory, workgroups one after another, and whose turn it is.
 *
 * Each thread goes on until it is done or waits.  A subgroup whose threads all wait at the same
 * instruction of matrices carries it out; when none does, the workgroup's threads have to be at one
 * barrier. */
#include "tests/backends/vulkan/spirv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MOST = 1024, GROUPS_MOST = 65535 };

/* ---- errors -------------------------------------------------------------------------------------- */

void run_fail(Run *r, const char *fmt, ...)
{
    StrBuf       s = strbuf(r->arena);
    const OpRow *row = r->at ? op_row(r->m.words[r->at] & 0xffff) : NULL;
    va_list      ap;

    if (r->error)
        return;
    if (r->at)
        str_printf(&s, "word %u", r->at);
    if (row && row->result != '-' && operand_count(r) >= row->least)
        str_printf(&s, ", %%%u = %s", operand(r, row->result == 't'), row->name);
    else if (row)
        str_printf(&s, ", %s", row->name);
    if (r->now)
        str_printf(&s, ", thread %u of workgroup (%u, %u, %u)", r->now->number, r->group[0],
                   r->group[1], r->group[2]);
    str_add(&s, s.n ? ": " : "");
    va_start(ap, fmt);
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    r->error = malloc(s.n + 1);
    memcpy(r->error, s.at, s.n + 1);
}

/* ---- memory -------------------------------------------------------------------------------------- */

Region *region_find(Run *r, uint64_t address)
{
    for (size_t i = 0; i < r->launch->nmemory; i++) {
        Region *x = &r->memory[i];
        if (address - (uintptr_t)x->at < x->bytes)
            return x;
    }
    return NULL;
}

static bool all_stored(const uint8_t *stored, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (!stored[i])
            return false;
    return true;
}

uint8_t *region_at(Run *r, const uint64_t pointer[2], uint64_t n, bool writes)
{
    const Region  *x = (const Region *)(uintptr_t)pointer[1];
    const char    *does = writes ? "writes" : "reads";
    const uint64_t at = x ? pointer[0] - (uintptr_t)x->at : 0;

    if (!x)
        run_fail(r, "%s at address %#llx, which is in no memory of the launch", does,
                 (unsigned long long)pointer[0]);
    else if (at > x->bytes || n > x->bytes - at)
        run_fail(r, "%s %llu bytes at %lld of %s, which has %zu", does, (unsigned long long)n,
                 (long long)at, x->what, x->bytes);
    else if (writes && x->constant)
        run_fail(r, "writes to %s", x->what);
    else if (!writes && x->stored && !all_stored(x->stored + at, n))
        run_fail(r, "reads %llu bytes at %llu of %s, where nothing has been stored",
                 (unsigned long long)n, (unsigned long long)at, x->what);
    if (r->error)
        return NULL;
    if (writes && x->stored)
        memset(x->stored + at, 1, n);
    return x->at + at;
}

static Region new_region(Run *r, const char *what, uint64_t bytes, bool watched)
{
    /* one byte more, so that none is at the other's end; aligned to 16 */
    return (Region){.at = arena_alloc(r->arena, bytes + 1),
                    .bytes = bytes,
                    .stored = watched ? arena_alloc(r->arena, bytes + 1) : NULL,
                    .what = what};
}

/* A variable's memory: of the launch, of a workgroup, or of a thread. */
static Region variable(Run *r, const Id *x)
{
    const Type *t = x->type->of;
    Region      out = {0};

    if (t->bytes == 0) {
        run_fail(r, "a variable of no size");
        return out;
    }
    switch (x->type->storage) {
    case STORAGE_PUSH:
        out = (Region){.at = (uint8_t *)(uintptr_t)r->launch->push,
                       .bytes = r->launch->push_bytes,
                       .what = "the push constants",
                       .constant = true};
        break;
    case STORAGE_WORKGROUP:
        out = new_region(r, "a variable of the workgroup", t->bytes, true);
        break;
    case STORAGE_FUNCTION:
        out = new_region(r, "a variable of the function", t->bytes, false);
        break;
    case STORAGE_INPUT:
        if (x->built_in != BUILTIN_LOCAL_ID && x->built_in != BUILTIN_WORKGROUP_ID)
            run_fail(r, "built-in variable %u, which the interpreter does not know", x->built_in);
        out = new_region(r, "an input", t->bytes, false);
        if (out.bytes != sizeof r->group)
            run_fail(r, "an input of %zu bytes", out.bytes);
        out.constant = true;
        break;
    default: run_fail(r, "a variable of storage class %u", x->type->storage);
    }
    return out;
}

static void make_variables(Run *r)
{
    r->shared = NEW_ARRAY(r->arena, Region, r->m.variables.n + 1);
    for (uint32_t i = 0; i < r->m.variables.n && !r->error; i++) {
        const Id *x = &r->m.ids[r->m.variables.at[i]];

        r->at = x->at;
        if (x->type->op != OpTypePointer || operand(r, 2) != x->type->storage)
            run_fail(r, "a variable whose type is not a pointer of its storage class");
        else if (x->type->storage != STORAGE_FUNCTION && x->type->storage != STORAGE_INPUT)
            r->shared[i] = variable(r, x);
    }
}

static void make_thread(Run *r, Thread *t)
{
    const uint32_t *size = r->m.size;

    t->local[0] = t->number % size[0];
    t->local[1] = t->number / size[0] % size[1];
    t->local[2] = t->number / size[0] / size[1];
    t->values = DUP_ARRAY(r->arena, r->m.constants, r->m.slots + 1);
    t->variables = NEW_ARRAY(r->arena, Region, r->m.variables.n + 1);
    for (uint32_t i = 0; i < r->m.variables.n && !r->error; i++) {
        const Id *x = &r->m.ids[r->m.variables.at[i]];
        Region   *at = &r->shared[i];

        r->at = x->at;
        if (!at->what) {
            at = &t->variables[i];
            *at = variable(r, x);
        }
        if (!r->error) {
            t->values[x->slot] = (uintptr_t)at->at;
            t->values[x->slot + 1] = (uintptr_t)at;
        }
    }
}

static void make_threads(Run *r)
{
    uint64_t n = 1;

    for (int i = 0; i < 3; i++) {
        n *= r->m.size[i];
        if (n < 1 || n > THREADS_MOST) {
            run_fail(r, "workgroups of %u x %u x %u threads", r->m.size[0], r->m.size[1],
                     r->m.size[2]);
            return;
        }
    }
    r->nthreads = (uint32_t)n;
    r->threads = NEW_ARRAY(r->arena, Thread, r->nthreads);
    for (uint32_t i = 0; i < r->nthreads && !r->error; i++) {
        r->threads[i].number = i;
        make_thread(r, &r->threads[i]);
    }
}

/* Threads at the entry, and memory as a workgroup finds it. */
static void begin_group(Run *r)
{
    for (uint32_t i = 0; i < r->nthreads; i++) {
        Thread *t = &r->threads[i];

        t->state = THREAD_RUNS;
        t->frame = (Frame){.pc = r->m.entry};
        t->depth = 0;
        for (uint32_t k = 0; k < r->m.variables.n; k++) {
            const Id *x = &r->m.ids[r->m.variables.at[k]];
            Region   *v = x->type->storage == STORAGE_WORKGROUP ? &r->shared[k] : &t->variables[k];

            if (x->type->storage == STORAGE_INPUT)
                memcpy(v->at, x->built_in == BUILTIN_LOCAL_ID ? t->local : r->group, v->bytes);
            else if (v->stored)
                memset(v->stored, 0, v->bytes);
        }
    }
}

/* ---- turns --------------------------------------------------------------------------------------- */

/* True: the threads of a subgroup have gone on together. */
static bool step_subgroup(Run *r, uint32_t first)
{
    Thread *t = r->threads + first, *other = NULL;
    bool    any = false;

    for (uint32_t i = 0; i < SPIRV_SUBGROUP && first + i < r->nthreads; i++) {
        if (t[i].state == THREAD_AT_MATRIX && !any)
            r->now = &t[i], r->at = t[i].frame.pc, any = true;
        else if (t[i].state != THREAD_AT_MATRIX)
            other = &t[i];
    }
    for (uint32_t i = 0; any && i < SPIRV_SUBGROUP && first + i < r->nthreads; i++)
        if (t[i].state == THREAD_AT_MATRIX && t[i].frame.pc != r->at)
            other = &t[i];
    if (!any)
        return false;
    if (first + SPIRV_SUBGROUP > r->nthreads)
        run_fail(r, "a subgroup of %u threads", r->nthreads - first);
    else if (other && other->state == THREAD_DONE)
        run_fail(r, "thread %u of its subgroup has left and does not come", other->number);
    else if (other)
        run_fail(r, "thread %u of its subgroup does not come: it is at word %u", other->number,
                 other->frame.pc);
    else
        matrix_step(r, t);
    for (uint32_t i = 0; i < SPIRV_SUBGROUP && !r->error; i++) {
        t[i].state = THREAD_RUNS;
        t[i].frame.pc += r->m.words[r->at] >> 16;
    }
    return true;
}

/* All threads are done or at a barrier. */
static void pass_barrier(Run *r)
{
    const Thread *waits = NULL, *other = NULL;

    for (uint32_t i = 0; i < r->nthreads; i++)
        if (!waits && r->threads[i].state == THREAD_AT_BARRIER)
            waits = &r->threads[i];
    if (!waits)
        return;
    r->now = r->threads + waits->number;
    r->at = waits->frame.pc;
    for (uint32_t i = 0; i < r->nthreads; i++)
        if (r->threads[i].state != waits->state || r->threads[i].frame.pc != waits->frame.pc)
            other = &r->threads[i];
    if (other && other->state == THREAD_DONE)
        run_fail(r, "a barrier that thread %u does not come to: it has left", other->number);
    else if (other)
        run_fail(r, "a barrier that thread %u does not come to: it is at word %u", other->number,
                 other->frame.pc);
    for (uint32_t i = 0; i < r->nthreads && !r->error; i++) {
        r->threads[i].state = THREAD_RUNS;
        r->threads[i].frame.pc += r->m.words[r->at] >> 16;
    }
}

static bool any_left(const Run *r)
{
    for (uint32_t i = 0; i < r->nthreads; i++)
        if (r->threads[i].state != THREAD_DONE)
            return !r->error;
    return false;
}

static void run_group(Run *r)
{
    begin_group(r);
    while (any_left(r)) {
        bool together = false;

        for (uint32_t i = 0; i < r->nthreads && !r->error; i++) {
            r->now = &r->threads[i];
            if (r->now->state == THREAD_RUNS)
                thread_run(r, r->now);
        }
        for (uint32_t i = 0; i < r->nthreads && !r->error; i += SPIRV_SUBGROUP)
            together = step_subgroup(r, i) || together;
        if (!together && !r->error)
            pass_barrier(r);
    }
    r->now = NULL;
    r->at = 0;
}

static void run_groups(Run *r)
{
    const uint32_t *n = r->launch->groups;

    for (int i = 0; i < 3; i++)
        if (!n[i] || n[i] > GROUPS_MOST)
            run_fail(r, "%u workgroups along an axis", n[i]);
    for (r->group[2] = 0; r->group[2] < n[2] && !r->error; r->group[2]++)
        for (r->group[1] = 0; r->group[1] < n[1] && !r->error; r->group[1]++)
            for (r->group[0] = 0; r->group[0] < n[0] && !r->error; r->group[0]++)
                run_group(r);
}

bool spirv_run(const uint32_t *words, size_t n, const SpirvLaunch *launch, char **error)
{
    Arena *arena = arena_new(NULL);
    Run    r = {.arena = arena, .launch = launch};

    r.memory = NEW_ARRAY(arena, Region, launch->nmemory + 1);
    for (size_t i = 0; i < launch->nmemory; i++)
        r.memory[i] = (Region){.at = launch->memory[i].at,
                               .bytes = launch->memory[i].bytes,
                               .what = arena_printf(arena, "memory %zu of the launch", i)};
    module_read(&r, words, n);
    if (!r.error)
        make_variables(&r);
    if (!r.error)
        make_threads(&r);
    r.at = 0;
    if (!r.error) {
        r.scratch = NEW_ARRAY(arena, uint64_t, r.m.slots + 4);
        run_groups(&r);
    }
    arena_free(arena);
    *error = r.error;
    return !r.error;
}
