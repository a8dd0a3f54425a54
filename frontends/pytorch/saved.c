/* Tensors in pickles, with their cells beside them: what torch.save writes, and modules of
 * TorchScript.
 *
 *     NAME/data.pkl      {"conv.weight": torch._utils._rebuild_tensor_v2(storage, offset, sizes,
 *                        strides, ..)}
 *     NAME/data/0 ..     cells; a storage is ("storage", torch.FloatStorage, "0", "cpu", cells) */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

typedef struct {
    const char *class;
    DType   dtype;
    PtCells cells;
} Storage;

static const Storage *storage_of(const char *class)
{
    static const Storage types[] = {{"torch.ByteStorage", DT_U8, PT_REAL},
                                    {"torch.CharStorage", DT_I8, PT_REAL},
                                    {"torch.ShortStorage", DT_I16, PT_REAL},
                                    {"torch.IntStorage", DT_I32, PT_REAL},
                                    {"torch.LongStorage", DT_I64, PT_REAL},
                                    {"torch.HalfStorage", DT_F16, PT_REAL},
                                    {"torch.FloatStorage", DT_F32, PT_REAL},
                                    {"torch.DoubleStorage", DT_F64, PT_REAL},
                                    {"torch.BoolStorage", DT_BOOL, PT_REAL},
                                    {"torch.BFloat16Storage", DT_BF16, PT_REAL},
                                    {"torch.ComplexFloatStorage", DT_F32, PT_COMPLEX},
                                    {"torch.QInt8Storage", DT_I8, PT_QUANTIZED},
                                    {"torch.QUInt8Storage", DT_U8, PT_QUANTIZED},
                                    {"torch.QInt32Storage", DT_I32, PT_QUANTIZED}};

    for (uint32_t i = 0; i < COUNT(types); i++)
        if (!strcmp(class, types[i].class))
            return &types[i];
    return NULL;
}

static bool ints(Ctx *c, const Pickle *p, Ints *out)
{
    int64_t *v;

    if ((p->kind != PICKLE_TUPLE && p->kind != PICKLE_LIST) || p->items.n > MAX_RANK)
        return false;
    v = NEW_ARRAY(c->arena, int64_t, p->items.n + 1);
    for (uint32_t i = 0; i < p->items.n; i++) {
        if (p->items.at[i]->kind != PICKLE_INT || p->items.at[i]->i < 0)
            return false;
        v[i] = p->items.at[i]->i;
    }
    *out = (Ints){p->items.n, v};
    return true;
}

bool pt_pickled_tensor(Ctx *c, Loc loc, const Pickle *p, PtPayload *out)
{
    const Pickle  *args = p->args, *id = args->items.n ? args->items.at[0] : NULL;
    const Storage *storage;

    id = id && id->kind == PICKLE_PERSISTENT ? id->args : NULL;
    if (!id || args->items.n < 4 || args->items.at[1]->kind != PICKLE_INT ||
        id->kind != PICKLE_TUPLE || id->items.n < 5 || id->items.at[1]->kind != PICKLE_GLOBAL ||
        id->items.at[2]->kind != PICKLE_TEXT || !ints(c, args->items.at[2], &out->sizes) ||
        !ints(c, args->items.at[3], &out->strides) || out->sizes.n != out->strides.n)
        return error_at(c, E_IMPORT, loc, "'%s' is no proper tensor", out->name);
    if (!(storage = storage_of(id->items.at[1]->text)))
        return error_at(c, E_UNSUPPORTED, loc, "'%s' has cells of %s, which are not supported",
                        out->name, id->items.at[1]->text);
    out->known = true;
    out->dtype = storage->dtype;
    out->complex = storage->cells == PT_COMPLEX;
    out->scaled = storage->cells == PT_QUANTIZED;
    out->offset = args->items.at[1]->i;
    out->path = intern(c->strings, id->items.at[2]->text);
    return true;
}

/* ---- dictionaries ------------------------------------------------------------------------------- */

/* Is it a tensor, or a parameter that is made of one?  That tensor. */
static const Pickle *tensor_in(const Pickle *p)
{
    if (p->kind == PICKLE_CALL && str_starts(p->text, "torch._utils._rebuild_parameter"))
        p = p->args->items.n ? p->args->items.at[0] : p;
    return p->kind == PICKLE_CALL && str_starts(p->text, "torch._utils._rebuild_tensor") ? p : NULL;
}

static bool add_tensor(Ctx *c, Loc loc, Map *entries, const char *folder, const char *name,
                       const Pickle *value, PtArchive *out)
{
    const Pickle *p = tensor_in(value);
    PtPayload    *is = NEW(c->arena, PtPayload);
    ZipMember    *m;

    is->name = intern(c->strings, name);
    vec_push(c->arena, &out->payloads, is);
    if (!p) {
        is->pickled = true;
        return true;
    }
    if (!pt_pickled_tensor(c, loc, p, is))
        return false;
    is->path = intern_printf(c->strings, "%s%s", folder, is->path);
    if (!(m = map_get(entries, PTR_KEY(is->path))))
        return error_at(c, E_IMPORT, loc, "'%s' should be in the archive as '%s'", is->name,
                        is->path);
    return zip_data(c->diags, c->arena, loc, m, &is->data);
}

bool pt_read_saved(Ctx *c, Loc loc, Bytes zip, PtArchive *out)
{
    static const char pickle[] = "data.pkl";
    Map              *entries;
    ZipDir            d;
    ZipMember         m;
    Bytes             bytes;
    const Pickle     *all;
    const char       *folder, *name = NULL;

    if (!(entries = pt_entries(c, loc, zip)) || !zip_open(zip, &d))
        return false;
    while (!name && zip_next(&d, &m)) {
        name = intern_n(c->strings, (const char *)m.name.at, m.name.n);
        if (strcmp(name, pickle) != 0 && !str_ends(name, "/data.pkl"))
            name = NULL;
    }
    if (!name)
        return error_at(c, E_PARSE_MODEL, loc, "an archive of weights has no '%s'", pickle);
    folder = intern_printf(c->strings, "%.*sdata/", (int)(strlen(name) - strlen(pickle)), name);
    if (!zip_data(c->diags, c->arena, loc, &m, &bytes) ||
        !(all = pickle_read(c->diags, c->arena, loc, name, bytes)))
        return false;
    if (all->kind != PICKLE_DICT &&
        (all->kind != PICKLE_CALL || strcmp(all->text, "collections.OrderedDict") != 0))
        return error_at(c, E_IMPORT, loc, "the weights are no dictionary");
    for (uint32_t i = 0; i + 1 < all->items.n; i += 2)
        if (all->items.at[i]->kind != PICKLE_TEXT)
            return error_at(c, E_IMPORT, loc, "the weights are no dictionary of names");
        else if (!add_tensor(c, loc, entries, folder, all->items.at[i]->text, all->items.at[i + 1],
                             out))
            return false;
    return true;
}
