/* Values of a model's tensors in files.
 *
 * An .npz has them by name.  A folder has files as ONNX's own test cases do: input_0.pb is the
 * value of the input that it names, or, without a name, of the model's first; output_0.pb the same
 * of the outputs. */
#include "driver/session.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const Array *array_find(const Array *at, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(at[i].name, name))
            return &at[i];
    return NULL;
}

bool session_same_type(const tvmcc_tensor_info *t, const Array *v)
{
    DType type = {t->code, t->bits, 1};

    if (v->code == ARRAY_OPAQUE) /* of ml_dtypes: NumPy itself has the others */
        return (t->code == TVMCC_BFLOAT || dtype_stored(type)) && v->bits == dtype_bytes(type) * 8;
    return v->code == t->code && v->bits == t->bits;
}

/* As models have them: an element of less than 8 bits has a byte of its own. */
static void unpack(Session *s, uint32_t n, Array *v)
{
    for (uint32_t i = 0; i < n; i++)
        v[i].data = array_unpacked(s->driver->arena, &v[i]);
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool read_npz(Session *s, const char *path, uint32_t *n, Array **out)
{
    Bytes file;

    return file_map(s->driver->diags, path, &file) &&
           npz_read(s->driver->diags, s->driver->arena, (Loc){.file = path}, file, n, out);
}

/* The tensors of a folder; names[i] is that of tensor i, NULL: it is none. */
static bool read_folder(Session *s, const char *folder, const char *what, uint32_t nnames,
                        const char *const *names, uint32_t *n, Array **out)
{
    Diags      *d = s->driver->diags;
    Arena      *a = s->driver->arena;
    const char *path;
    Bytes       file;
    uint32_t    i;

    *out = NEW_ARRAY(a, Array, nnames + 1);
    *n = 0;
    for (i = 0; i < nnames; i++) {
        Array *v = &(*out)[*n];

        path = arena_printf(a, "%s/%s_%u.pb", folder, what, i);
        if (!names[i] || access(path, F_OK))
            continue;
        if (!file_map(d, path, &file) || !tensor_pb_read(d, a, (Loc){.file = path}, file, v))
            return false;
        if (!*v->name)
            v->name = names[i];
        ++*n;
    }
    unpack(s, *n, *out);
    path = arena_printf(a, "%s/%s_%u.pb", folder, what, i);
    return access(path, F_OK) || diag_error(d, E_RUN, (Loc){.file = path}, "the model has %u %s%s",
                                            nnames, what, nnames == 1 ? "" : "s");
}

static const char **names_of(Arena *a, uint32_t n, const tvmcc_tensor_info *t)
{
    const char **names = NEW_ARRAY(a, const char *, n + 1);

    for (uint32_t i = 0; i < n; i++)
        names[i] = t[i].name;
    return names;
}

/* Those of the model as its file has them, before it is compiled.  What is no tensor of numbers is
 * for the import to refuse. */
static const char **model_names(Session *s, uint32_t *n)
{
    const CompileOptions *o = &s->job.options;
    ModelSignature        sig = {0};
    const char          **names;
    DType                 type;

    *n = 0;
    if (!frontend_describe(s->c, o->path, o->format, &sig))
        return NULL;
    names = NEW_ARRAY(s->driver->arena, const char *, sig.ninputs + 1);
    for (uint32_t i = 0; i < sig.ninputs; i++)
        names[i] = dtype_parse(sig.inputs[i].type, &type) ? sig.inputs[i].name : NULL;
    *n = sig.ninputs;
    return names;
}

bool session_read_inputs(Session *s)
{
    const char  *path = s->driver->opt.in_path;
    const char **names;
    uint32_t     n = 0;

    if (!path)
        return true;
    if (!is_folder(path))
        return read_npz(s, path, &s->ngiven, &s->given);
    if (s->info)
        n = s->info->ninputs, names = names_of(s->driver->arena, n, s->info->inputs);
    else if (!(names = model_names(s, &n)) && !diag_errors(s->driver->diags))
        return true; /* a format that tells no names: once it is imported */
    return !diag_errors(s->driver->diags) &&
           read_folder(s, path, "input", n, names, &s->ngiven, &s->given);
}

bool session_read_expected(Session *s, const char *path, uint32_t *n, Array **out)
{
    const tvmcc_model_info *info = s->info;

    if (!is_folder(path))
        return read_npz(s, path, n, out);
    return read_folder(s, path, "output", info->noutputs,
                       names_of(s->driver->arena, info->noutputs, info->outputs), n, out);
}

static bool make_folder(Diags *d, const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ||
           diag_error(d, E_IO, (Loc){.file = path}, "cannot make the folder '%s': %s", path,
                      strerror(errno));
}

bool session_write_outputs(Session *s, const char *path)
{
    const Options *o = &s->driver->opt;
    Arena         *a = s->driver->arena;
    Diags         *d = s->driver->diags;
    uint32_t       n = s->info->noutputs;
    Array         *all = NEW_ARRAY(a, Array, n + 1);

    for (uint32_t i = 0; i < n; i++) {
        const tvmcc_tensor_info *t = &s->info->outputs[i];
        Bytes                    cells = {s->out[i], t->bytes};

        if (t->bits < 8)
            cells = array_packed(a, cells, t->bits);

        all[i] = (Array){t->name, t->code, t->bits, t->ndim, DUP_ARRAY(a, t->dims, t->ndim),
                         cells,   NULL};
    }
    if (!is_folder(path) && !str_ends(path, "/") &&
        (str_ends(path, ".npz") || !o->in_path || !is_folder(o->in_path)))
        return file_write(d, path, npz_write(a, n, all));
    if (!make_folder(d, path))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!file_write(
                d, arena_printf(a, "%s%soutput_%u.pb", path, str_ends(path, "/") ? "" : "/", i),
                tensor_pb_write(a, &all[i])))
            return false;
    return true;
}
