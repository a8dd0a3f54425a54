/* docs/ops.md from the operator table, and the list of a model format's operators from its
 * frontend's.
 *
 *     opsdoc                             print it
 *     opsdoc docs/ops.md                 write it, if it differs
 *     opsdoc --check docs/ops.md         fail if the file is not what the table says
 *     opsdoc --format=tflite [--check] docs/tflite-ops.md, and other formats */
#include "frontends/frontends.h"
#include "ops/ops.h"

#include <stdio.h>
#include <string.h>

static const char *const fusion[] = {
    [FUSE_ELEMWISE] = "elementwise",     [FUSE_BROADCAST] = "broadcast",
    [FUSE_INJECTIVE] = "injective",      [FUSE_COMM_REDUCE] = "reduction",
    [FUSE_OUT_FUSABLE] = "takes others", [FUSE_OPAQUE] = "alone",
    [FUSE_UPDATE] = "alone, in place",
};

static void attributes(StrBuf *s, const AttrRecord *r)
{
    for (uint32_t i = 0; r && i < r->nfields; i++) {
        const AttrField *f = &r->fields[i];
        const char      *quote = f->type == ATTR_STR && f->fallback ? "\"" : "";

        str_printf(s, "%s`%s", i ? ", " : "", f->name);
        if (f->fallback)
            str_printf(s, "=%s%s%s", quote, f->fallback, quote);
        str_add(s, "`");
    }
}

static void row(StrBuf *s, const Op *op)
{
    str_printf(s, "| `%s` | %u", op->text, op->min_in);
    if (op->max_in != op->min_in)
        str_printf(s, " to %u", op->max_in);
    str_add(s, " | ");
    attributes(s, op->attrs);
    str_printf(s, " | %s | %s | %s | %s |\n", fusion[op->fusion],
               op->compute  ? "compute"
               : op->expand ? "expand"
                            : "**none**",
               op->block ? "yes" : "", op_has_adjoint(op) ? "yes" : "");
}

static void page(StrBuf *s)
{
    str_add(
        s,
        "# Operators\n\n"
        "Written by `tools/opsdoc.c` from `ops/ops.def` and `ops/attrs.def`; do not edit. The file "
        "of an\n"
        "operator opens with what it means.\n\n"
        "- *Attributes* show their defaults; those without one are required.\n"
        "- *Fusion*: what `fuse_ops` may join it with. An operator that *takes others* is joined "
        "by the\n"
        "  elementwise ones that read its result; one that stands *alone* is a kernel of its own.\n"
        "  *In place*: one that writes only the cells that change, where nobody reads its first "
        "operand "
        "later.\n"
        "- *Defined by* a tensor expression (compute), or through simpler operators (expand).\n"
        "- *Blocked*: runs on layouts NCHW<b>c as well.\n"
        "- *Adjoint*: `gradient` goes through it (docs/design/autodiff.md); through what expands, "
        "too, if "
        "it goes\n"
        "  through what comes out.\n\n"
        "| Operator | Operands | Attributes | Fusion | Defined by | Blocked | Adjoint |\n"
        "|---|---|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < op_table.n; i++)
        row(s, &op_table.at[i]);
}

/* What a page says of a format, where it is not of operators with versions. */
typedef struct {
    const char *name, *of, *tables, *what, *column;
    void (*list_refused)(StrBuf *out); /* NULL: what is not in the list is not known, either */
} FormatPage;

static const FormatPage format_pages[] = {
    {"pytorch", "Operators", "ops.def", "operators, with the overloads", "Overloads", NULL},
    {"tensorflow", "Operators", "ops.def", "operators, with the inputs", "Inputs", NULL},
    {"darknet", "Layers", "ops.def", "kinds of layers, with other spellings", "Also", NULL},
    {"mxnet", "Operators", "ops.def", "operators, with the operands and other names", "Operands",
     NULL},
    {"caffe2", "Operators", "ops.def", "operators, with how many operands they take", "Operands",
     NULL},
    {"tvm", "Operators", "ops.def", "operators, with how many operands they take", "Operands",
     tvm_list_refused},
    {"keras", "Layers", "layers.def` and `operations.def", "layers and operations", "Kind", NULL},
    {"coreml", "Layers and operators", "layers.def` and `programs.def",
     "layers and operators, with the numbers of layers", "Number", coreml_list_refused},
    {"tflite", "Operators", "ops.def", "operators, with the versions", "Versions",
     tflite_list_refused},
    {"", "Operators", "ops.def", "operators, with the versions", "Versions", NULL},
};

/* Lines of list_refused: name, why. */
static void refused_table(StrBuf *s, const FormatPage *page)
{
    StrBuf list = strbuf(s->arena);

    page->list_refused(&list);
    str_add(
        s,
        "\n## Not read\n\nThe rest of the operators that the format has. A model with one of them "
        "is an error, which says this.\n\n| Operator | Why |\n|---|---|\n");
    for (const char *at = list.at; *at; at += strcspn(at, "\n") + 1) {
        size_t name = strcspn(at, " "), gap = name + strspn(at + name, " ");

        str_printf(s, "| %.*s | %.*s |\n", (int)name, at, (int)(strcspn(at, "\n") - gap), at + gap);
    }
}

/* Lines of list_ops: name, versions, domain, Relay operator. */
static void format_page(StrBuf *s, const Frontend *f)
{
    StrBuf            list = strbuf(s->arena);
    const FormatPage *page = format_pages;
    const char       *at;
    uint32_t          n = 0;

    while (*page->name && strcmp(page->name, f->name) != 0)
        page++;
    f->list_ops(&list);
    for (at = list.at; *at; at++)
        n += *at == '\n';
    str_printf(
        s,
        "# %s of %s\n\n"
        "Written by `tools/opsdoc.c` from `frontends/%s/%s`; do not edit. %u %s\n"
        "that are known and the operator of Relay that stands in their place; -: several.\n\n"
        "| Operator | %s | | Relay |\n|---|---|---|---|\n",
        page->of, f->text, f->name, page->tables, n, page->what, page->column);
    for (at = list.at; *at; at += strcspn(at, "\n") + 1) {
        char name[128], versions[128], domain[128], relay[128];

        if (sscanf(at, "%127s %127s %127s %127s", name, versions, domain, relay) != 4)
            BUG("-print-ops=%s: %s", f->name, at);
        str_printf(s, "| %s | %s | %s | %s |\n", name, versions, domain, relay);
    }
    if (page->list_refused)
        refused_table(s, page);
}

static int finish(Arena *a, const Diags *d)
{
    StrBuf s = strbuf(a);
    int    status = diag_status(d);

    diag_print(d, DIAG_TEXT, &s);
    if (s.n)
        fputs(s.at, stderr);
    arena_free(a);
    return status;
}

int main(int argc, char **argv)
{
    Arena          *a = arena_new(NULL);
    Diags          *d = diags_new(a);
    StrBuf          s = strbuf(a);
    const Frontend *f = NULL;
    const char     *file = NULL, *format = "";
    bool            check = false, wrong = false;
    Bytes           was;

    for (int i = 1; i < argc; i++) {
        if (str_starts(argv[i], "--format="))
            wrong |= !(f = frontend_find(format = argv[i] + strlen("--format=")));
        else if (!strcmp(argv[i], "--check"))
            check = true;
        else
            file = argv[i];
    }
    if (wrong || (check && !file)) {
        diag_error(d, E_USAGE, NO_LOC, "opsdoc [--format=<format>] [[--check] <file>]");
        return finish(a, d);
    }
    if (f)
        format_page(&s, f);
    else
        page(&s);
    if (!file) {
        fputs(s.at, stdout);
    } else if (check) {
        if (file_read(d, a, file, &was) && (was.n != s.n || memcmp(was.at, s.at, s.n)))
            diag_error(d, E_VERIFY, (Loc){.file = file},
                       "this is not what the operator table says; run opsdoc %s%s %s",
                       f ? "--format=" : "", format, file);
    } else {
        file_write(d, file, (Bytes){(const uint8_t *)s.at, s.n});
    }
    return finish(a, d);
}
