/* The text of a manifest as a tree, from libyaml's events.
 *
 * Not libyaml's own documents: they lose quotes and places, and resolve types by YAML 1.1's rules,
 * in which `N` and `no` are truth values.  Here a scalar is its text and whether it was quoted;
 * what it means, its place in the schema decides.
 *
 * The text is hostile.  Its size, depth and, with aliases written out, number of nodes are bounded;
 * tags, directives and second documents are refused.  libyaml counts characters, messages and fmt
 * count bytes: `byte_of` converts through a table with an entry for every 64 characters.
 */
#include "manifest/tree.h"

#include <string.h>
#include <yaml.h>

enum { STRIDE = 64 };

typedef VEC(const Node *) NodeVec;

/* A list or map that has not ended yet. */
typedef struct {
    Node   *node;
    NodeVec kids;
} Open;

typedef struct {
    Diags        *d;
    Arena        *a;
    Strings      *names;
    const char   *path;
    Bytes         text;
    yaml_parser_t yaml;
    VEC(size_t) marks; /* byte of character 0, 64, 128, .. */
    Lines       lines;
    Map        *anchors;
    Open        open[TREE_DEPTH];
    uint32_t    depth, nodes;
    const Node *root;
} Tree;

/* ---- places ------------------------------------------------------------------------------------ */

void lines_index(Arena *a, Bytes text, Lines *lines)
{
    vec_push(a, lines, 0);
    for (size_t i = 0; i < text.n; i++)
        if (text.at[i] == '\n')
            vec_push(a, lines, i + 1);
}

uint32_t lines_find(const Lines *lines, size_t byte)
{
    uint32_t low = 0, high = lines->n;

    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;

        if (lines->at[mid] <= byte)
            low = mid;
        else
            high = mid;
    }
    return low;
}

static bool is_start(uint8_t byte)
{
    return (byte & 0xc0) != 0x80; /* the first byte of a UTF-8 character */
}

static void index_text(Tree *t)
{
    size_t chars = 0;

    lines_index(t->a, t->text, &t->lines);
    for (size_t i = 0; i < t->text.n; i++)
        if (is_start(t->text.at[i]) && chars++ % STRIDE == 0)
            vec_push(t->a, &t->marks, i);
}

static size_t byte_of(const Tree *t, size_t index)
{
    size_t mark = index / STRIDE, left = index % STRIDE, at;

    if (mark >= t->marks.n)
        return t->text.n;
    for (at = t->marks.at[mark]; at < t->text.n; at++) {
        if (is_start(t->text.at[at]) && left-- == 0)
            break;
    }
    return at;
}

static Loc loc_at(const Tree *t, size_t byte)
{
    uint32_t line = lines_find(&t->lines, byte);

    return (Loc){t->path, line + 1, (uint32_t)(byte - t->lines.at[line]) + 1, NULL};
}

static Loc loc_of(const Tree *t, yaml_mark_t mark)
{
    return loc_at(t, byte_of(t, mark.index));
}

/* ---- what the text may not contain --------------------------------------------------------------- */

/* YAML 1.1 ends lines at more characters than editors do; line numbers would differ. */
static bool check_lines(Tree *t)
{
    for (size_t i = 0; i < t->text.n; i++) {
        const uint8_t *p = t->text.at + i;
        size_t         left = t->text.n - i;

        if ((*p == '\r' && (left < 2 || p[1] != '\n')) ||
            (left > 1 && p[0] == 0xc2 && p[1] == 0x85) ||
            (left > 2 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] & 0xfe) == 0xa8))
            return diag_error(t->d, E_MANIFEST_SYNTAX, loc_at(t, i),
                              "a line ends neither with LF nor with CR LF");
    }
    return true;
}

static bool libyaml_error(Tree *t)
{
    const yaml_parser_t *y = &t->yaml;
    Loc                  loc = loc_of(t, y->problem_mark);
    size_t               at = byte_of(t, y->problem_mark.index);

    if (y->error == YAML_READER_ERROR) {
        at = y->problem_offset < t->text.n ? y->problem_offset : t->text.n;
        return diag_error(t->d, E_MANIFEST_SYNTAX, loc_at(t, at), "%s", y->problem);
    }
    if (y->error == YAML_MEMORY_ERROR)
        return diag_error(t->d, E_MANIFEST_LIMIT, NO_LOC, "libyaml is out of memory");
    diag_error(t->d, E_MANIFEST_SYNTAX, loc, "this is not YAML: %s", y->problem);
    if (y->context && y->context_mark.index != y->problem_mark.index)
        diag_note(t->d, loc_of(t, y->context_mark), "%s that begins here", y->context);
    if (at < t->text.n && t->text.at[at] == '\t')
        diag_hint(t->d, "indent with blanks, not with tabs");
    else if (at > 0 && at < t->text.n && t->text.at[at] == '{' && t->text.at[at - 1] == '$')
        diag_hint(t->d, "inside of brackets a text with ${..} needs quotes");
    else if (at < t->text.n && strchr("@`%", t->text.at[at]))
        diag_hint(t->d, "a value that begins with '%c' needs quotes", t->text.at[at]);
    return false;
}

/* ---- nodes --------------------------------------------------------------------------------------- */

static Node *node_new(Tree *t, NodeKind kind, const yaml_event_t *e, const yaml_char_t *anchor)
{
    Node *n = NEW(t->a, Node);

    n->kind = kind;
    n->outer = n->start = byte_of(t, e->start_mark.index);
    n->end = byte_of(t, e->end_mark.index);
    n->expanded = 1;
    if (anchor) {
        n->anchor = intern(t->names, (const char *)anchor);
        if (kind != NODE_ALIAS) { /* the event begins with `&name` */
            n->start += strlen((const char *)anchor) + 1;
            while (n->start < t->text.n && strchr(" \t\r\n", t->text.at[n->start]))
                n->start++;
        }
    }
    n->loc = loc_at(t, n->start);
    return n;
}

/* Puts a finished or opening node where it belongs; false when there are too many. */
static bool node_add(Tree *t, Node *n)
{
    if (++t->nodes > TREE_NODES)
        return diag_error(t->d, E_MANIFEST_LIMIT, n->loc, "more than %d values", TREE_NODES);
    if (t->depth == 0) {
        t->root = n;
        return true;
    }
    vec_push(t->a, &t->open[t->depth - 1].kids, n);
    return true;
}

static bool define(Tree *t, const Node *n)
{
    if (n->anchor)
        map_put(t->anchors, PTR_KEY(n->anchor), (void *)n); /* the last one counts, says YAML */
    return true;
}

static bool no_tag(Tree *t, const yaml_event_t *e, const yaml_char_t *tag)
{
    if (!tag)
        return true;
    diag_error(t->d, E_MANIFEST_SYNTAX, loc_of(t, e->start_mark),
               "tags such as '%.40s' have no place here", (const char *)tag);
    diag_hint(t->d, "the schema says what type a value has");
    return false;
}

static bool on_scalar(Tree *t, const yaml_event_t *e)
{
    Node       *n = node_new(t, NODE_SCALAR, e, e->data.scalar.anchor);
    const char *text = (const char *)e->data.scalar.value;

    if (!no_tag(t, e, e->data.scalar.tag))
        return false;
    if (strlen(text) != e->data.scalar.length)
        return diag_error(t->d, E_MANIFEST_SYNTAX, n->loc, "a text contains a NUL character");
    n->text = intern(t->names, text);
    n->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    n->block = e->data.scalar.style == YAML_LITERAL_SCALAR_STYLE ||
               e->data.scalar.style == YAML_FOLDED_SCALAR_STYLE;
    if (n->end < n->start) /* an empty scalar behind an anchor */
        n->end = n->start;
    return node_add(t, n) && define(t, n);
}

static bool on_alias(Tree *t, const yaml_event_t *e)
{
    Node *n = node_new(t, NODE_ALIAS, e, e->data.alias.anchor);

    n->target = map_get(t->anchors, PTR_KEY(n->anchor));
    for (uint32_t i = 0; i < t->depth; i++) {
        if (t->open[i].node->anchor == n->anchor)
            return diag_error(t->d, E_MANIFEST_SYNTAX, n->loc,
                              "'*%s' stands inside of what it names", n->anchor);
    }
    if (!n->target)
        return diag_error(t->d, E_MANIFEST_SYNTAX, n->loc, "nothing before has the anchor '&%s'",
                          n->anchor);
    n->expanded = n->target->expanded;
    return node_add(t, n);
}

static bool on_start(Tree *t, const yaml_event_t *e, NodeKind kind)
{
    bool  map = kind == NODE_MAP;
    Node *n =
        node_new(t, kind, e, map ? e->data.mapping_start.anchor : e->data.sequence_start.anchor);

    if (!no_tag(t, e, map ? e->data.mapping_start.tag : e->data.sequence_start.tag))
        return false;
    if (t->depth == TREE_DEPTH)
        return diag_error(t->d, E_MANIFEST_LIMIT, n->loc, "nested more than %d levels deep",
                          TREE_DEPTH);
    n->flow = map ? e->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
                  : e->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    if (!node_add(t, n))
        return false;
    t->open[t->depth++] = (Open){.node = n};
    return true;
}

static bool on_end(Tree *t, const yaml_event_t *e)
{
    Open    *o = &t->open[--t->depth];
    Node    *n = o->node;
    uint64_t sum = 1;

    n->kids = o->kids.at;
    n->nkids = o->kids.n;
    n->end = byte_of(t, n->flow ? e->end_mark.index : e->start_mark.index);
    for (uint32_t i = 0; i < n->nkids; i++)
        sum += n->kids[i]->expanded;
    if (sum > TREE_NODES)
        return diag_error(t->d, E_MANIFEST_LIMIT, n->loc,
                          "more than %d values, with aliases written out", TREE_NODES);
    n->expanded = (uint32_t)sum;
    return define(t, n);
}

static bool on_document(Tree *t, const yaml_event_t *e)
{
    if (e->data.document_start.tag_directives.start != e->data.document_start.tag_directives.end)
        return diag_error(t->d, E_MANIFEST_SYNTAX, loc_of(t, e->start_mark),
                          "%%TAG has no place here");
    if (t->root)
        return diag_error(t->d, E_MANIFEST_SYNTAX, loc_of(t, e->start_mark),
                          "a manifest is one document; a second begins here");
    return true;
}

static bool on_event(Tree *t, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT: return on_document(t, e);
    case YAML_ALIAS_EVENT: return on_alias(t, e);
    case YAML_SCALAR_EVENT: return on_scalar(t, e);
    case YAML_SEQUENCE_START_EVENT: return on_start(t, e, NODE_LIST);
    case YAML_MAPPING_START_EVENT: return on_start(t, e, NODE_MAP);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: return on_end(t, e);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT: break;
    }
    return true;
}

static bool run(Tree *t)
{
    yaml_event_t e;
    bool         ok = true, end = false;

    while (ok && !end) {
        if (!yaml_parser_parse(&t->yaml, &e))
            return libyaml_error(t);
        ok = on_event(t, &e);
        end = e.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&e);
    }
    return ok;
}

const Node *tree_parse(Diags *d, Arena *a, Strings *names, const char *path, Bytes text)
{
    Tree *t = NEW(a, Tree);
    bool  ok;

    if (text.n >= 3 && memcmp(text.at, "\xef\xbb\xbf", 3) == 0) /* a byte order mark */
        text = (Bytes){text.at + 3, text.n - 3};
    *t = (Tree){.d = d, .a = a, .names = names, .path = path, .text = text};
    if (text.n > TREE_BYTES)
        return diag_error(d, E_MANIFEST_LIMIT, (Loc){path, 0, 0, NULL},
                          "the file has %zu bytes; %d are the most", text.n, TREE_BYTES);
    diag_source(d, path, text);
    index_text(t);
    t->anchors = map_new(a);
    if (!check_lines(t))
        return NULL;
    if (!yaml_parser_initialize(&t->yaml))
        return diag_error(d, E_MANIFEST_LIMIT, NO_LOC, "libyaml is out of memory");
    yaml_parser_set_encoding(&t->yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&t->yaml, text.at, text.n);
    ok = run(t);
    yaml_parser_delete(&t->yaml);
    if (ok && !t->root)
        return diag_error(d, E_MANIFEST_SYNTAX, (Loc){path, 1, 1, NULL}, "the file is empty");
    return ok ? t->root : NULL;
}
