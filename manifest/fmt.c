/* tvmcc fmt: a manifest in canonical form.
 *
 * Keys of records come in the order of schema.def; names that people chose stay in theirs.  Two
 * blanks a level; what is written in brackets stays so if it fits a line and has no comments; a
 * quoted text has double quotes; at most one empty line in a row.  Nothing is lost: comments are
 * found between the tokens and belong
 *
 *     # lead: lines before an entry
 *     key: value  # trail: behind it on the line
 *     # foot: lines behind the last entry of a block, as deep as its entries
 *
 * and move with their entry or block.  The work is two walks of one shape: `attach_node` in the
 * order of the text hands out comments, `print_node` in canonical order prints them.  If a comment
 * were left over, the file is refused.  What is printed is formatted once more by the tests: it is
 * the same.
 */
#include "manifest/tree.h"

#include <string.h>

enum { WIDTH = 100, INDENT = 2 };

typedef struct {
    size_t   at, end;
    uint32_t line, col; /* from 0 */
    bool     own_line, blank_before, printed;
} Comment;

typedef VEC(Comment *) Comments;

/* What goes with an entry: a pair (by its key node) or an item of a list. */
typedef struct {
    Comments lead;
    Comment *trail;
    bool     blank_before;
} Notes;

typedef struct {
    Diags *d;
    Arena *a;
    Bytes  text;
    Lines  lines;
    VEC(Comment) comments;
    uint32_t next;   /* first comment without an owner */
    Map     *notes;  /* Node -> Notes */
    Map     *feet;   /* Node, a list or mapping -> Comments */
    Comments header; /* at the top, an empty line behind */
    bool     reorder;
    StrBuf  *out;
} Fmt;

/* ---- finding comments -------------------------------------------------------------------------- */

static bool blank_line(const Fmt *f, uint32_t line)
{
    size_t at = f->lines.at[line];

    while (at < f->text.n && strchr(" \t\r", f->text.at[at]))
        at++;
    return at >= f->text.n || f->text.at[at] == '\n';
}

static bool blank_before(const Fmt *f, uint32_t line)
{
    return line > 0 && blank_line(f, line - 1);
}

static void scan_gap(Fmt *f, size_t from, size_t to)
{
    for (size_t at = from; at < to; at++) {
        size_t  end = at, start;
        Comment c;

        if (f->text.at[at] != '#' || (at > 0 && !strchr(" \t\r\n", f->text.at[at - 1])))
            continue;
        while (end < f->text.n && f->text.at[end] != '\n')
            end++;
        c = (Comment){.at = at, .line = lines_find(&f->lines, at)};
        start = f->lines.at[c.line];
        c.col = (uint32_t)(at - start);
        c.own_line = strspn((const char *)f->text.at + start, " \t") >= c.col;
        c.blank_before = c.own_line && blank_before(f, c.line);
        at = end;
        while (end > c.at && strchr(" \t\r", f->text.at[end - 1]))
            end--;
        c.end = end;
        vec_push(f->a, &f->comments, c);
    }
}

/* The gaps are what no scalar covers.  `*from` is the end of the last one. */
static void scan_node(Fmt *f, const Node *n, size_t *from)
{
    if (n->kind == NODE_SCALAR || n->kind == NODE_ALIAS) {
        scan_gap(f, *from, n->start);
        *from = n->end > *from ? n->end : *from;
        return;
    }
    for (uint32_t i = 0; i < n->nkids; i++)
        scan_node(f, n->kids[i], from);
}

static bool comment_inside(const Fmt *f, const Node *n)
{
    uint32_t low = 0, high = f->comments.n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (f->comments.at[mid].at < n->outer)
            low = mid + 1;
        else
            high = mid;
    }
    return low < f->comments.n && f->comments.at[low].at < n->end;
}

/* ---- text in one line ------------------------------------------------------------------------------ */

static void add_quoted(StrBuf *out, const char *text)
{
    str_addc(out, '"');
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            str_printf(out, "\\%c", *p);
        else if (*p == '\n')
            str_add(out, "\\n");
        else if (*p == '\t')
            str_add(out, "\\t");
        else if (*p < 0x20 || *p == 0x7f)
            str_printf(out, "\\x%02x", *p);
        else if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) /* C1; NEL would end the line */
            str_printf(out, "\\x%02x", *++p);
        else if (p[0] == 0xe2 && p[1] == 0x80 && (p[2] & 0xfe) == 0xa8)
            str_printf(out, "\\u202%c", p[2] == 0xa8 ? '8' : '9'), p += 2;
        else if (p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf)
            str_add(out, "\\ufeff"), p += 2;
        else
            str_addc(out, (char)*p);
    }
    str_addc(out, '"');
}

static void add_scalar(StrBuf *out, const Node *n)
{
    if (n->plain && !strchr(n->text, '\n'))
        str_add(out, n->text);
    else
        add_quoted(out, n->text);
}

/* Positions of entries in canonical order.  Rank: `<<`, keys of the schema, others. */
static uint32_t rank(const Record *rec, const Node *key)
{
    key = node_of(key);
    if (key->kind == NODE_SCALAR && strcmp(key->text, "<<") == 0)
        return 0;
    for (uint32_t i = 0; key->kind == NODE_SCALAR && i < rec->n; i++) {
        if (strcmp(rec->fields[i].key, key->text) == 0)
            return i + 1;
    }
    return rec->n + 1;
}

static uint32_t *order_of(const Fmt *f, const Node *map, const Record *rec)
{
    uint32_t  n = map->nkids / 2, used = 0;
    uint32_t *order = NEW_ARRAY(f->a, uint32_t, n + 1);

    if (!rec || !f->reorder) {
        for (uint32_t i = 0; i < n; i++)
            order[i] = i * 2;
        return order;
    }
    for (uint32_t k = 0; k <= rec->n + 1; k++) {
        for (uint32_t i = 0; i < n; i++) {
            if (rank(rec, map->kids[i * 2]) == k)
                order[used++] = i * 2;
        }
    }
    return order;
}

/* What a value of the schema is: its record, and whether names or a list come before. */
typedef struct {
    const Record *rec; /* NULL: nothing to order */
    FieldKind     kind;
} Shape;

static Shape shape_of(Shape parent, const Node *key)
{
    const Field *field;

    if (!parent.rec)
        return (Shape){NULL, KIND_TEXT};
    if (parent.kind != KIND_ONE)
        return (Shape){parent.rec, KIND_ONE}; /* an entry of a map or list of records */
    key = key ? node_of(key) : NULL;          /* NULL: a list stands where a record is expected */
    field = key && key->kind == NODE_SCALAR ? record_field(parent.rec, key->text) : NULL;
    return (Shape){field && field->type ? field->type() : NULL, field ? field->kind : KIND_TEXT};
}

static const Record *ordered(Shape s)
{
    return s.kind == KIND_ONE ? s.rec : NULL;
}

static void add_inline(const Fmt *f, const Node *n, Shape s, StrBuf *out)
{
    const uint32_t *order;

    if (n->kind == NODE_ALIAS) {
        str_printf(out, "*%s", n->anchor);
        return;
    }
    if (n->anchor)
        str_printf(out, n->kind == NODE_SCALAR && n->plain && !*n->text ? "&%s" : "&%s ",
                   n->anchor);
    if (n->kind == NODE_SCALAR) {
        add_scalar(out, n);
        return;
    }
    str_addc(out, n->kind == NODE_MAP ? '{' : '[');
    if (n->kind == NODE_LIST) {
        for (uint32_t i = 0; i < n->nkids; i++) {
            str_add(out, i ? ", " : "");
            add_inline(f, n->kids[i], shape_of(s, NULL), out);
        }
    } else {
        order = order_of(f, n, ordered(s));
        for (uint32_t i = 0; i < n->nkids / 2; i++) {
            const Node *key = n->kids[order[i]], *value = n->kids[order[i] + 1];

            str_add(out, i ? ", " : "");
            add_inline(f, key, (Shape){NULL, KIND_TEXT}, out);
            str_add(out, key->kind == NODE_ALIAS ? " :" : ":");
            str_addc(out, ' '); /* also before nothing: `x:}` would be a text */
            add_inline(f, value, shape_of(s, key), out);
        }
    }
    str_addc(out, n->kind == NODE_MAP ? '}' : ']');
}

/* Whether the value is printed on the line of its key, which ends at `column`. */
static bool is_inline(const Fmt *f, const Node *n, Shape s, size_t column)
{
    StrBuf text;

    if (n->kind == NODE_SCALAR || n->kind == NODE_ALIAS || n->nkids == 0)
        return true;
    if (!n->flow || comment_inside(f, n))
        return false;
    text = strbuf(f->a);
    add_inline(f, n, s, &text);
    return column + 1 + text.n <= WIDTH;
}

static size_t key_width(const Fmt *f, const Node *key)
{
    StrBuf text = strbuf(f->a);

    add_inline(f, key, (Shape){NULL, KIND_TEXT}, &text);
    return text.n + (key->kind == NODE_ALIAS ? 2 : 1);
}

/* ---- handing out comments, in the order of the text --------------------------------------------- */

static Notes *notes_of(Fmt *f, const Node *entry)
{
    Notes *n = map_get(f->notes, PTR_KEY(entry));

    if (!n)
        map_put(f->notes, PTR_KEY(entry), n = NEW(f->a, Notes));
    return n;
}

static void take_before(Fmt *f, size_t at, Comments *to)
{
    while (f->next < f->comments.n && f->comments.at[f->next].at < at)
        vec_push(f->a, to, &f->comments.at[f->next++]);
}

/* The first comment behind `at`, if it is on that line. */
static Comment *take_trail(Fmt *f, size_t at)
{
    Comment *c = f->next < f->comments.n ? &f->comments.at[f->next] : NULL;

    if (!c || c->at < at || c->line != lines_find(&f->lines, at ? at - 1 : 0) || c->own_line)
        return NULL;
    f->next++;
    return c;
}

static void attach_node(Fmt *f, const Node *n, Shape s, size_t indent, size_t limit);

static void attach_value(Fmt *f, Notes *notes, const Node *n, Shape s, size_t indent, size_t column,
                         size_t limit)
{
    if (is_inline(f, n, s, column)) {
        notes->trail = take_trail(f, n->end);
        return;
    }
    if (n->flow) {
        notes->trail = take_trail(f, n->start + 1);
    } else if (f->next < f->comments.n && f->comments.at[f->next].at < n->kids[0]->outer &&
               !f->comments.at[f->next].own_line) {
        notes->trail = &f->comments.at[f->next++]; /* `key:  # trail` */
    }
    attach_node(f, n, s, indent, limit);
}

/* `limit` is where the next entry behind this node begins, or the end of the text. */
static void attach_node(Fmt *f, const Node *n, Shape s, size_t indent, size_t limit)
{
    uint32_t  step = n->kind == NODE_MAP ? 2 : 1;
    Notes    *notes = NULL;
    Comments *foot;

    for (uint32_t i = 0; i + step <= n->nkids; i += step) {
        const Node *entry = n->kids[i], *value = n->kids[i + step - 1];
        size_t      next = i + step < n->nkids ? n->kids[i + step]->outer : limit;
        size_t      column;
        Shape       child = shape_of(s, step == 2 ? entry : NULL);

        notes = notes_of(f, entry);
        take_before(f, entry->outer, &notes->lead);
        notes->blank_before = blank_before(f, lines_find(&f->lines, entry->outer));
        column = indent + (step == 2 ? key_width(f, entry) : 1);
        if (step == 2 && (n->flow || is_inline(f, value, child, column)))
            take_before(f, value->outer, &notes->lead); /* between key and value */
        attach_value(f, notes, value, child, indent + INDENT, column, next);
    }
    if (!notes || indent == 0) /* behind the last entry of the file: they stay there */
        return;
    foot = NEW(f->a, Comments);
    map_put(f->feet, PTR_KEY(n), foot);
    if (n->flow) {
        take_before(f, n->end, foot);
        return;
    }
    while (f->next < f->comments.n && f->comments.at[f->next].at < limit &&
           f->comments.at[f->next].own_line &&
           f->comments.at[f->next].col + 1 >= n->kids[0]->loc.col - (n->kind == NODE_LIST ? 2 : 0))
        vec_push(f->a, foot, &f->comments.at[f->next++]);
}

/* ---- printing, in canonical order ------------------------------------------------------------------ */

static void new_line(Fmt *f, size_t indent)
{
    if (f->out->n && f->out->at[f->out->n - 1] != '\n')
        str_addc(f->out, '\n');
    while (indent--)
        str_addc(f->out, ' ');
}

static void empty_line(Fmt *f)
{
    if (!f->out->n)
        return;
    new_line(f, 0);
    if (f->out->n > 1 && f->out->at[f->out->n - 2] != '\n')
        str_addc(f->out, '\n');
}

static void add_comment(Fmt *f, Comment *c)
{
    str_addn(f->out, (const char *)f->text.at + c->at, c->end - c->at);
    c->printed = true;
}

static void add_comments(Fmt *f, const Comments *list, size_t indent, bool first)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->at[i]->blank_before && !(first && i == 0))
            empty_line(f);
        new_line(f, indent);
        add_comment(f, list->at[i]);
    }
}

static void print_node(Fmt *f, const Node *n, Shape s, size_t indent, bool behind_dash);

static void print_value(Fmt *f, const Notes *notes, const Node *n, Shape s, size_t indent,
                        size_t column, bool item)
{
    bool inlined = is_inline(f, n, s, column);

    if (inlined && !(n->kind == NODE_SCALAR && n->plain && !*n->text && !n->anchor)) {
        str_addc(f->out, ' ');
        add_inline(f, n, s, f->out);
    } else if (!inlined && n->anchor) {
        str_printf(f->out, " &%s", n->anchor);
    }
    if (notes->trail) {
        str_add(f->out, "  ");
        add_comment(f, notes->trail);
    }
    if (!inlined)
        print_node(f, n, s, indent, item && !n->anchor && !notes->trail);
}

/* Entries at `indent`.  Behind the dash of a list the first one stays on the line. */
static void print_node(Fmt *f, const Node *n, Shape s, size_t indent, bool behind_dash)
{
    bool            map = n->kind == NODE_MAP;
    const uint32_t *order = map ? order_of(f, n, ordered(s)) : NULL;
    uint32_t        count = map ? n->nkids / 2 : n->nkids;
    const Comments *foot = map_get(f->feet, PTR_KEY(n));

    for (uint32_t i = 0; i < count; i++) {
        const Node  *entry = n->kids[map ? order[i] : i];
        const Node  *value = map ? n->kids[order[i] + 1] : entry;
        const Notes *notes = notes_of(f, entry);
        bool         same_line = behind_dash && i == 0 && notes->lead.n == 0;
        bool         first = i == 0 && (indent > 0 || !f->out->n);

        add_comments(f, &notes->lead, indent, first);
        if (notes->blank_before && !same_line && !(first && notes->lead.n == 0))
            empty_line(f);
        if (same_line)
            str_addc(f->out, ' ');
        else
            new_line(f, indent);
        if (map) {
            add_inline(f, entry, (Shape){NULL, KIND_TEXT}, f->out);
            str_add(f->out, entry->kind == NODE_ALIAS ? " :" : ":");
        } else {
            str_addc(f->out, '-');
        }
        print_value(f, notes, value, shape_of(s, map ? entry : NULL), indent + INDENT,
                    indent + (map ? key_width(f, entry) : 1), !map);
    }
    if (foot)
        add_comments(f, foot, indent, false);
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

/* What the printer has no form for. */
static bool printable(Fmt *f, const Node *n)
{
    if (n->kind == NODE_SCALAR && n->block) {
        for (size_t i = n->start; i < n->end && f->text.at[i] != '\n'; i++) {
            if (f->text.at[i] == '#')
                return diag_error(f->d, E_MANIFEST_STYLE, n->loc,
                                  "the comment behind this '%c' cannot be kept",
                                  f->text.at[n->start]);
        }
    }
    if (n->kind != NODE_LIST && n->kind != NODE_MAP)
        return true;
    for (uint32_t i = 0; i < n->nkids; i++) {
        const Node *kid = n->kids[i];

        if (n->kind == NODE_MAP && i % 2 == 0 &&
            (node_of(kid)->kind != NODE_SCALAR || kid->block || !*node_of(kid)->text ||
             strlen(node_of(kid)->text) > WIDTH))
            return diag_error(f->d, E_MANIFEST_STYLE, kid->loc, "a key is a name");
        if (!printable(f, kid))
            return false;
    }
    return true;
}

/* An anchor name that is defined twice means another thing in another order. */
static bool anchors_twice(Fmt *f, const Node *n, Map *seen)
{
    if (n->kind == NODE_ALIAS)
        return false;
    if (n->anchor && map_get(seen, PTR_KEY(n->anchor)))
        return true;
    if (n->anchor)
        map_put(seen, PTR_KEY(n->anchor), (void *)n);
    for (uint32_t i = 0; i < n->nkids; i++) {
        if (anchors_twice(f, n->kids[i], seen))
            return true;
    }
    return false;
}

/* The comments before the first entry stay at the top if an empty line parts them from it. */
static void split_header(Fmt *f, const Node *root)
{
    Notes   *notes = root->nkids ? notes_of(f, root->kids[0]) : NULL;
    uint32_t keep = 0, n;

    if (!notes)
        return;
    n = notes->lead.n;
    for (uint32_t i = 0; i < n; i++) {
        bool gap = i + 1 < n ? notes->lead.at[i + 1]->blank_before : notes->blank_before;

        if (gap)
            keep = i + 1;
    }
    for (uint32_t i = 0; i < keep; i++)
        vec_push(f->a, &f->header, notes->lead.at[i]);
    if (keep) {
        notes->lead.at += keep;
        notes->lead.cap = notes->lead.n -= keep;
    }
}

static bool format(Fmt *f, const Node *root, StrBuf *out)
{
    Shape    top = {schema_root(), KIND_ONE};
    size_t   from = 0;
    Comments rest = {0};

    f->out = out;
    f->notes = map_new(f->a);
    f->feet = map_new(f->a);
    lines_index(f->a, f->text, &f->lines);
    if (!printable(f, root))
        return false;
    scan_node(f, root, &from);
    scan_gap(f, from, f->text.n);
    attach_node(f, root, top, 0, f->text.n);
    take_before(f, f->text.n + 1, &rest);
    split_header(f, root);
    add_comments(f, &f->header, 0, true);
    if (f->header.n)
        empty_line(f);
    print_node(f, root, top, 0, false);
    add_comments(f, &rest, 0, false);
    new_line(f, 0);
    for (uint32_t i = 0; i < f->comments.n; i++) {
        const Comment *c = &f->comments.at[i];

        if (!c->printed)
            return diag_error(f->d, E_MANIFEST_STYLE,
                              (Loc){root->loc.file, c->line + 1, c->col + 1, NULL},
                              "this comment has no place in canonical form");
    }
    return true;
}

bool manifest_format(Diags *d, Arena *a, const char *path, Bytes text, StrBuf *out)
{
    Strings    *names = strings_new(a);
    const Node *root = tree_parse(d, a, names, path, text);
    StrBuf      sorted = strbuf(a);
    uint32_t    before;
    Fmt         f;

    if (!root)
        return false;
    if (root->kind != NODE_MAP)
        return diag_error(d, E_MANIFEST_VALUE, root->loc, "a manifest is a mapping");
    if (text.n >= 3 && memcmp(text.at, "\xef\xbb\xbf", 3) == 0)
        text = (Bytes){text.at + 3, text.n - 3};
    f = (Fmt){.d = d, .a = a, .text = text, .reorder = true};
    f.reorder = !anchors_twice(&f, root, map_new(a));
    if (!format(&f, root, &sorted))
        return false;
    /* In the new order an alias may stand before its anchor; then the old one stays. */
    before = diag_errors(d);
    if (!tree_parse(d, a, names, path, (Bytes){(const uint8_t *)sorted.at, sorted.n})) {
        diag_drop(d, before);
        diag_source(d, path, text);
        f = (Fmt){.d = d, .a = a, .text = text};
        return format(&f, root, out);
    }
    diag_source(d, path, text);
    str_add(out, sorted.at);
    return true;
}
