/* Layouts: tensors from one to another, and operators of data and weights in blocks. */
#include "frontends/tvm/tvm.h"

#include <string.h>

/* "NCHW8c": a letter for each dimension; small ones are blocks of so many cells of the large one.
 */
typedef struct {
    uint32_t n;
    char     letter[MAX_RANK];
    int64_t  block[MAX_RANK]; /* of small letters */
} Layout;

static bool is_small(char c)
{
    return c >= 'a' && c <= 'z';
}

static int64_t find_letter(const Layout *l, char letter)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->letter[i] == letter)
            return i;
    return -1;
}

static bool read_layout(const TvNode *n, const char *text, Layout *out)
{
    *out = (Layout){0};
    for (const char *p = text; *p; p++) {
        int64_t count = 0;

        for (; *p >= '0' && *p <= '9' && count < 1 << 16; p++)
            count = count * 10 + (*p - '0');
        if (out->n == MAX_RANK || find_letter(out, *p) >= 0 ||
            !(is_small(*p) ? count > 0 : *p >= 'A' && *p <= 'Z' && !count))
            return tv_error(n, E_IMPORT, "layout %s", text);
        out->letter[out->n] = *p;
        out->block[out->n++] = count;
    }
    for (uint32_t i = 0; i < out->n; i++)
        if (is_small(out->letter[i]) && find_letter(out, (char)(out->letter[i] - 'a' + 'A')) < 0)
            return tv_error(n, E_IMPORT, "layout %s", text);
    return true;
}

static uint32_t large_letters(const Layout *l)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < l->n; i++)
        count += !is_small(l->letter[i]);
    return count;
}

/* The large letters in the order of `like`, each followed by its small one in l, as axes of l. */
static uint32_t grouped(const Layout *l, const Layout *like, int64_t *axes)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < like->n; i++) {
        int64_t at = find_letter(l, like->letter[i]),
                small = find_letter(l, (char)(like->letter[i] - 'A' + 'a'));

        if (is_small(like->letter[i]) || at < 0)
            continue;
        axes[count++] = at;
        if (small >= 0)
            axes[count++] = small;
    }
    return count;
}

/* Blocks are put together, taken apart as the other layout has them, and the axes moved. */
static const Expr *relaid(const TvNode *n, const Expr *x, const char *src, const char *dst)
{
    const Build *b = &n->b;
    Layout       from, to;
    int64_t      axes[MAX_RANK], back[MAX_RANK], dims[MAX_RANK], parts[MAX_RANK];
    uint32_t     count = 0, whole = 0;

    if (!read_layout(n, src, &from) || !read_layout(n, dst, &to))
        return NULL;
    if (expr_rank(x) != from.n || grouped(&from, &from, axes) != from.n ||
        grouped(&to, &from, back) != to.n || large_letters(&from) != large_letters(&to))
        return tv_error(n, E_IMPORT, "%s from layout %s to %s", type_text(b->c, x->type), src, dst);
    for (uint32_t i = 0; i < from.n; i++) { /* axes[i]: large, or small behind its large one */
        int64_t cells = build_dim(b, x, (uint32_t)axes[i]);

        if (is_small(from.letter[axes[i]]))
            dims[whole - 1] *= cells;
        else
            dims[whole++] = cells;
    }
    whole = 0;
    for (uint32_t i = 0; i < to.n; i++) {
        int64_t block = to.block[back[i]];

        if (!is_small(to.letter[back[i]])) {
            parts[count++] = dims[whole++];
        } else if (parts[count - 1] % block) {
            return tv_error(n, E_UNSUPPORTED, "%lld cells in blocks of %lld",
                            (long long)parts[count - 1], (long long)block);
        } else {
            parts[count - 1] /= block;
            parts[count++] = block;
        }
    }
    x = build_transpose(b, x, from.n, axes);
    if (from.n != whole || to.n != whole)
        x = build_reshape(b, x, to.n, parts);
    for (uint32_t i = 0; i < to.n; i++)
        axes[back[i]] = i;
    return build_transpose(b, x, to.n, axes);
}

const Expr *tv_layout_transform(TvNode *n)
{
    return relaid(n, n->in[0], tv_text(n, "src_layout", ""), tv_text(n, "dst_layout", ""));
}

/* ---- data and weights in blocks ----------------------------------------------------------------------- */

static const char *plain_layout(const char *layout, Ctx *c)
{
    char     text[MAX_RANK + 1];
    uint32_t n = 0;

    for (; *layout && n < MAX_RANK; layout++)
        if (*layout >= 'A' && *layout <= 'Z')
            text[n++] = *layout;
    return intern_n(c->strings, text, n);
}

bool tv_is_blocked(const TvNode *n, const char *attr)
{
    return strpbrk(tv_text(n, attr, ""), "0123456789") != NULL;
}

/* The operator of plain data and weights, its result back in blocks. */
const Expr *tv_unblocked(TvNode *n, const char *data, const char *weight, TvConvert *convert)
{
    Ctx         *c = n->b.c;
    const char  *from = tv_text(n, data, ""), *to = tv_text(n, "out_layout", "");
    const char  *names[] = {data, weight, "out_layout"};
    TvNode       plain = *n;
    const Expr **in = NEW_ARRAY(c->arena, const Expr *, n->nin), *y;

    memcpy(in, n->in, n->nin * sizeof *in);
    plain.in = in;
    plain.attrs = NEW_ARRAY(c->arena, TvAttr, n->nattrs + 1);
    for (uint32_t i = 0; i < n->nattrs; i++) {
        plain.attrs[i] = n->attrs[i];
        for (uint32_t k = 0; k < COUNT(names); k++) {
            TvAttr *a = &plain.attrs[i];

            if (!names[k] || strcmp(a->name, names[k]) != 0 || a->value.kind != TV_STRING)
                continue;
            a->value.text = k == 2 ? "" : plain_layout(a->value.text, c);
        }
    }
    if (*from && !(in[0] = relaid(n, in[0], from, plain_layout(from, c))))
        return NULL;
    if (weight && tv_is_blocked(n, weight) &&
        !(in[1] =
              relaid(n, in[1], tv_text(n, weight, ""), plain_layout(tv_text(n, weight, ""), c))))
        return NULL;
    if (!(y = convert(&plain)) || !*from)
        return y;
    return relaid(n, y, plain_layout(from, c), *to ? to : from);
}

static const char *const dense_layout = "weight_layout";

/* Weights [units, columns] in blocks. */
const Expr *tv_dense_pack(TvNode *n)
{
    TvNode      plain = *n;
    const char *from = tv_text(n, dense_layout, "NC");
    const Expr *in[6];

    memcpy(in, n->in, n->nin * sizeof *in);
    plain.in = in;
    plain.row = tv_row(str_starts(n->row->name, "qnn.") ? "qnn.dense" : "nn.dense");
    plain.attrs = NEW_ARRAY(n->b.c->arena, TvAttr, n->nattrs + 1);
    plain.nattrs = 0;
    for (uint32_t i = 0; i < n->nattrs; i++)
        if (strcmp(n->attrs[i].name, dense_layout) != 0)
            plain.attrs[plain.nattrs++] = n->attrs[i];
    in[1] = relaid(n, in[1], from, plain_layout(from, n->b.c));
    return in[1] ? tv_convert(&plain) : NULL;
}
