/* manifest.lock: what all products of a manifest were made from, as JSON with sorted keys, so that
 * a diff of two locks says what changed.
 *
 *     {
 *       "schema": "tvm-lock/1",
 *       "coverage": {"digits.board": "7 of 9"},
 *       "inputs": {"models/digits.onnx": "9c0f..."},
 *       "targets": {"board": "llvm -mtriple=..."},
 *       "versions": {"tvmcc": "0.1.0"}
 *     }
 *
 * The rows are made by the driver, which knows targets and hashes; here they are read, written and
 * compared. */
#include "base/json.h"
#include "manifest/manifest.h"

#include <stdlib.h>
#include <string.h>

enum { LOCK_BYTES = 16 << 20, MAX_ERRORS = 100 };

static const char schema[] = "tvm-lock/1";

static const char *const groups[] = {"coverage", "inputs", "targets", "versions"};

void lock_add(Arena *a, Lock *l, const char *group, const char *key, const char *value)
{
    char *clean = utf8_ok(key) ? NULL : arena_printf(a, "%s", key);

    for (char *p = clean; p && *p; p++) /* JSON has no other bytes */
        *p = (unsigned char)*p < 0x80 ? *p : '?';
    vec_push(a, &l->rows, ((LockRow){group, clean ? clean : key, value}));
}

static int by_key(const void *a, const void *b)
{
    const LockRow *x = a, *y = b;
    int            group = strcmp(x->group, y->group);

    return group ? group : strcmp(x->key, y->key);
}

void lock_sort(Lock *l)
{
    uint32_t n = 0;

    if (l->rows.n)
        qsort(l->rows.at, l->rows.n, sizeof *l->rows.at, by_key);
    for (uint32_t i = 0; i < l->rows.n; i++) {
        if (n && by_key(&l->rows.at[n - 1], &l->rows.at[i]) == 0)
            n--;
        l->rows.at[n++] = l->rows.at[i];
    }
    l->rows.n = n;
}

void lock_print(Lock *l, StrBuf *out)
{
    uint32_t i = 0;

    lock_sort(l);
    str_printf(out, "{\n  \"schema\": \"%s\"", schema);
    for (size_t g = 0; g < COUNT(groups); g++) {
        bool first = true;

        str_printf(out, ",\n  \"%s\": {", groups[g]);
        for (; i < l->rows.n && strcmp(l->rows.at[i].group, groups[g]) == 0; i++) {
            str_add(out, first ? "\n    " : ",\n    ");
            str_add_json(out, l->rows.at[i].key);
            str_add(out, ": ");
            str_add_json(out, l->rows.at[i].value);
            first = false;
        }
        str_add(out, first ? "}" : "\n  }");
    }
    str_add(out, "\n}\n");
}

/* ---- reading ------------------------------------------------------------------------------------- */

static const char *group_name(const char *key)
{
    for (size_t g = 0; key && g < COUNT(groups); g++) {
        if (strcmp(groups[g], key) == 0)
            return groups[g];
    }
    return NULL;
}

static bool read_group(Diags *d, Arena *a, Loc loc, json_t *group, const char *name, Lock *out)
{
    json_t     *row;
    const char *key;

    if (!json_is_object(group))
        return diag_error(d, E_LOCK_SYNTAX, loc, "'%s' is not an object", name);
    json_object_foreach(group, key, row)
    {
        if (!json_is_string(row))
            return diag_error(d, E_LOCK_SYNTAX, loc, "'%s' of '%s' is not a text", key, name);
        lock_add(a, out, name, arena_printf(a, "%s", key),
                 arena_printf(a, "%s", json_string_value(row)));
    }
    return true;
}

static bool read_root(Diags *d, Arena *a, Loc loc, json_t *root, Lock *out)
{
    json_t     *version = json_object_get(root, "schema"), *item;
    const char *key;

    if (!json_is_object(root))
        return diag_error(d, E_LOCK_SYNTAX, loc, "a lock is a JSON object");
    if (!json_is_string(version) || strcmp(json_string_value(version), schema) != 0)
        return diag_error(d, E_LOCK_SYNTAX, loc, "its schema is not '%s'", schema);
    json_object_foreach(root, key, item)
    {
        const char *name = group_name(key);

        if (item == version)
            continue;
        if (!name)
            return diag_error(d, E_LOCK_SYNTAX, loc, "a lock has no '%s'", key);
        if (!read_group(d, a, loc, item, name, out))
            return false;
    }
    return true;
}

/* Line and column of a byte. */
static Loc loc_at(const char *path, Bytes text, size_t at)
{
    Loc loc = {path, 1, 1, NULL};

    for (size_t i = 0; i < at && i < text.n; i++) {
        loc.col++;
        if (text.at[i] == '\n') {
            loc.line++;
            loc.col = 1;
        }
    }
    return loc;
}

bool lock_parse(Diags *d, Arena *a, const char *path, Bytes text, Lock *out)
{
    json_error_t error;
    json_t      *root;
    bool         ok;

    *out = (Lock){0};
    if (text.n > LOCK_BYTES)
        return diag_error(d, E_LOCK_SYNTAX, (Loc){path, 0, 0, NULL}, "a lock of %zu bytes", text.n);
    diag_source(d, path, text);
    root = json_read(text, &error);
    if (!root)
        return diag_error(d, E_LOCK_SYNTAX,
                          loc_at(path, text, error.position > 0 ? (size_t)error.position : 0),
                          "this is not JSON%s%s", *error.text ? ": " : "", error.text);
    ok = read_root(d, a, (Loc){path, 0, 0, NULL}, root, out);
    json_decref(root);
    lock_sort(out);
    return ok;
}

/* ---- comparing ------------------------------------------------------------------------------------ */

/* `was` or `now` is NULL if only the other has the row. */
static void differ(Diags *d, Loc loc, const LockRow *was, const LockRow *now)
{
    const LockRow *row = was ? was : now;
    bool           input = strcmp(row->group, "inputs") == 0;
    /* "versions" -> "version" */
    int         n = (int)strlen(row->group) - (strcmp(row->group, "coverage") != 0);
    const char *is = now ? now->value : NULL, *locked = was ? was->value : NULL;

    if (!was)
        diag_error(d, E_LOCK, loc, "%.*s '%s' is not locked", n, row->group, row->key);
    else if (!now)
        diag_error(d, E_LOCK, loc, "%.*s '%s' is locked, but there is none any more", n, row->group,
                   row->key);
    else if (input)
        diag_error(d, E_LOCK, loc, "input '%s' has changed", row->key);
    else
        diag_error(d, E_LOCK, loc, "%.*s '%s' is '%s'; '%s' is locked", n, row->group, row->key, is,
                   locked);
}

bool lock_compare(Diags *d, const char *path, const Lock *was, const Lock *now)
{
    Loc      loc = {path, 0, 0, NULL};
    uint32_t i = 0, k = 0, found = 0;

    while ((i < was->rows.n || k < now->rows.n) && found < MAX_ERRORS) {
        const LockRow *w = i < was->rows.n ? &was->rows.at[i] : NULL;
        const LockRow *n = k < now->rows.n ? &now->rows.at[k] : NULL;
        int            order = !w ? 1 : !n ? -1 : by_key(w, n);

        if (order < 0 || (order == 0 && strcmp(w->value, n->value) != 0) || order > 0) {
            differ(d, loc, order <= 0 ? w : NULL, order >= 0 ? n : NULL);
            found++;
        }
        i += order <= 0;
        k += order >= 0;
    }
    if (found)
        diag_hint(d, "--update-lock accepts what is there now");
    return !found;
}
