/* The table of operators. */
#include "frontends/pytorch/pytorch.h"

#include <string.h>

#define none NULL
#define ATEN(name, overloads, args, alias, relay, convert) \
    {name, overloads, args, alias, relay, convert},
const PtRow pt_rows[] = {
#include "frontends/pytorch/ops.def"
};
#undef ATEN
#undef none

const uint32_t pt_nrows = COUNT(pt_rows);

/* Is the word, of n bytes, in the list? */
static bool lists(const char *list, const char *word, size_t n)
{
    for (; *list; list += strspn(list, " ")) {
        size_t len = strcspn(list, " ");

        if (len == n && !memcmp(list, word, n))
            return true;
        list += len;
    }
    return false;
}

static const PtRow *find(const char *name, size_t n, const char *overload)
{
    for (uint32_t i = 0; i < pt_nrows; i++)
        if (strlen(pt_rows[i].name) == n && !memcmp(pt_rows[i].name, name, n) &&
            lists(pt_rows[i].overloads, overload, strlen(overload)))
            return &pt_rows[i];
    return NULL;
}

/* "aten.relu_" -> "aten.relu", "aten.__iand__" -> "aten.__and__"; false: it changes nothing in
 * place. */
static bool out_of_place(const char *name, size_t n, char out[static 64])
{
    const char *dot = memchr(name, '.', n), *rest = dot ? dot + 1 : name;
    size_t      head = (size_t)(rest - name), tail = n - head;

    if (n < 2 || n > 60 || name[n - 1] != '_')
        return false;
    memcpy(out, name, n);
    out[n - 1] = 0;
    if (name[n - 2] != '_')
        return true;
    if (tail < 7 || memcmp(rest, "__i", 3) != 0)
        return false;
    memmove(out + head + 2, rest + 3, tail - 3);
    out[n - 1] = 0;
    return true;
}

const char *pt_instead_of(const char *target)
{
    static const struct {
        const char *begins, *instead;
    } refused[] = {
#define REFUSED(begins, instead) {begins, instead},
#include "frontends/pytorch/refused.def"
#undef REFUSED
    };

    for (uint32_t i = 0; i < COUNT(refused); i++)
        if (str_starts(target, refused[i].begins))
            return refused[i].instead;
    return NULL;
}

const PtRow *pt_row(const char *target, bool *in_place)
{
    char         plain[64];
    const char  *dot = strrchr(target, '.'), *first = strchr(target, '.');
    bool         overloaded = dot && dot != first;
    size_t       n = overloaded ? (size_t)(dot - target) : strlen(target);
    const char  *overload = overloaded ? dot + 1 : "default";
    const PtRow *row = find(target, n, overload);

    *in_place = false;
    if (row || !out_of_place(target, n, plain))
        return row;
    row = find(plain, strlen(plain), overload);
    *in_place = row != NULL;
    return row;
}

bool pt_next_slot(const char **at, PtSlot *out)
{
    const char *p = *at + strspn(*at, " ");
    size_t      len = strcspn(p, " ");
    const char *colon = memchr(p, ':', len);

    *out = (PtSlot){
        .ignored = *p == '~', .end = len == 1 && *p == '|', .named = len == 1 && *p == '*'};
    out->name = p + out->ignored;
    out->n = (size_t)((colon ? colon : p + len) - out->name);
    out->kind = colon ? colon[1] : 0;
    *at = p + len;
    return len > 0;
}

bool pt_row_has(const PtRow *row, const char *arg, bool *ignored)
{
    size_t n = strlen(arg);
    PtSlot slot;

    for (const char *at = row->args; pt_next_slot(&at, &slot);)
        if (slot.n == n && !memcmp(slot.name, arg, n)) {
            *ignored = slot.ignored;
            return true;
        }
    return false;
}

/* ---- arguments by their places ------------------------------------------------------------------------- */

static bool fits(char kind, const PtArg *a)
{
    switch (kind) {
    case 'T': return a->kind == PT_TENSOR;
    case 'i': return a->kind == PT_INT || a->kind == PT_SYMBOL || a->kind == PT_NONE;
    case 'b': return a->kind == PT_BOOL;
    case 's': return a->kind == PT_STRING;
    case 'l': return a->kind == PT_LIST || a->kind == PT_NONE;
    case 'd': return a->kind == PT_DEVICE || a->kind == PT_NONE;
    }
    return true;
}

/* One of the alternatives, up to its '|': the names of all arguments by it. */
static bool names_by(const char *alternative, PtOp *op, const char **names, Strings *strings)
{
    uint32_t place = 0, count = 0, before;
    bool     by_name = false;
    PtSlot   slot;

    memset(names, 0, op->nin * sizeof *names);
    for (const char *at = alternative; pt_next_slot(&at, &slot) && !slot.end;) {
        if (slot.named) {
            by_name = true;
            continue;
        }
        before = count;
        for (uint32_t i = 0; i < op->nin; i++) {
            bool here = op->names[i] ? strlen(op->names[i]) == slot.n &&
                                           !memcmp(op->names[i], slot.name, slot.n)
                                     : i == place && !by_name;

            if (!here)
                continue;
            if (names[i] || !fits(slot.kind, &op->in[i]))
                return false;
            names[i] = intern_n(strings, slot.name, slot.n);
            count++;
        }
        if (slot.kind == 'T' && count == before)
            return false;
        place++;
    }
    return count == op->nin;
}

const PtRow *pt_match(Ctx *c, PtOp *op, bool *known)
{
    const char **names = NEW_ARRAY(c->arena, const char *, op->nin + 1);
    const char  *name = op->target;
    char         plain[64];

    *known = false;
    for (uint32_t cut = 0; cut < 2; cut++) {
        op->in_place = cut;
        if (cut && !out_of_place(op->target, strlen(op->target), plain))
            break;
        name = cut ? plain : op->target;
        for (uint32_t i = 0; i < pt_nrows; i++) {
            const PtRow *row = &pt_rows[i];

            if (strcmp(row->name, name) != 0)
                continue;
            *known = true;
            for (const char *at = row->args; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
                if (names_by(at, op, names, c->strings)) {
                    op->names = names;
                    return row;
                }
        }
    }
    return NULL;
}

/* -print-ops=pytorch, in the order of the table: operator, overloads, namespace. */
void pytorch_list_ops(StrBuf *out)
{
    for (uint32_t i = 0; i < pt_nrows; i++) {
        const PtRow *r = &pt_rows[i];
        const char  *dot = strchr(r->name, '.');
        uint32_t     from = out->n;

        str_printf(out, "%-32s ", dot + 1);
        for (const char *p = r->overloads; *p; p++)
            str_addc(out, *p == ' ' ? ',' : *p);
        str_printf(out, "%*s %-14.*s %s\n", out->n - from < 56 ? (int)(56 - (out->n - from)) : 0,
                   "", (int)(dot - r->name), r->name, r->relay ? r->relay : "-");
    }
}
