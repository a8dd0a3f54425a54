/* Two memories: of a program for a device, some kernels are the host's (plan_devices), and a value
 * lies where the kernel that makes it runs.  What the other side reads is copied when it is first
 * asked for, once in a scope: the twin of its slot.
 *
 *     %0 = a kernel of the device        %0 in the device's arena
 *     %1 = a kernel of the host (%0)     copy %0 -> its twin, in the host's arena
 *     %2 = a kernel of the device (%1)   copy %1 -> its twin
 *
 * Tensors of the caller and dimensions are the host's; constants are there on both sides. */
#include "passes/lower/lower.h"

bool lies_here(const Program *p, const Slot *s)
{
    uint64_t    at;
    const Slot *root = slot_root(s, &at);

    if (!p->device)
        return false;
    switch (root->place) {
    case PLACE_INPUT:
    case PLACE_OUTPUT:
    case PLACE_DIMS: return true;
    case PLACE_ARENA:
    case PLACE_CONST: return root->here;
    }
    BUG("place %d", (int)root->place);
}

/* A slot that is its own twin has none. */
static Slot *find_twin(const ValueScope *s, const Slot *slot)
{
    for (; s; s = s->up) {
        Slot *t = s->twins ? map_get(s->twins, PTR_KEY(slot)) : NULL;

        if (t)
            return t == slot ? NULL : t;
    }
    return NULL;
}

static void set_twin(Program *p, ValueScope *s, const Slot *slot, Slot *twin)
{
    if (!s->twins)
        s->twins = map_new(p->c->arena);
    map_put(s->twins, PTR_KEY(slot), twin);
}

void forget_twin(Program *p, ValueScope *s, const Slot *slot)
{
    Slot *t = find_twin(s, slot);

    if (!t)
        return;
    set_twin(p, s, slot, (Slot *)(uintptr_t)slot);
    set_twin(p, s, t, t);
}

Value copied_to(Program *p, ValueScope *s, Value from, bool here, const char *name, Loc loc)
{
    Value to = {slot_new(p, PLACE_ARENA, 0, from.type, name), from.type};

    to.slot->here = here && p->device;
    item_copy(p, s, from, to, loc);
    to.slot->first = p->at;
    to.slot->copy_of = from.slot;
    return to;
}

Value on_side(Program *p, ValueScope *s, Value v, bool here, Loc loc)
{
    Slot *twin;

    if (!p->device || lies_here(p, v.slot) == here)
        return v;
    twin = find_twin(s, v.slot);
    if (twin && slot_fits(p, twin, v.type))
        return (Value){twin, v.type};
    if (v.slot->place == PLACE_CONST && !v.slot->in) {
        twin = slot_new(p, PLACE_CONST, v.slot->index, v.slot->type, v.slot->name);
        twin->here = here;
    } else {
        twin = copied_to(p, s, v, here, v.slot->name, loc).slot;
    }
    set_twin(p, s, v.slot, twin);
    set_twin(p, s, twin, v.slot);
    return (Value){twin, v.type};
}
