/* Values of a model's tensors in files.
 *
 * An .npz has them by name.  A folder has files as ONNX's own test cases do: input_0.pb is the
 * value of the input that it names, or, without a name, of the model's first; output_0.pb the same
 * of the outputs.  What a sequence or an optional value is made of has names of its own, which are
 * those of the compiled model's tensors (frontends/onnx/values.c).  Strings are bytes in a model,
 * with room for so many each; files have them as they are (formats/text.c). */
#include "driver/session.h"

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

    if (!file_map(s->driver->diags, path, &file))
        return false;
    if (npz_read(s->driver->diags, s->driver->arena, (Loc){.file = path}, file, n, out))
        return true;
    diag_hint(s->driver->diags,
              "tensors are an .npz (numpy.savez), or a folder of input_0.pb .. and output_0.pb ..");
    return false;
}

/* An input or output of a model, as files have it. */
typedef struct {
    const char   *name; /* NULL: nothing that can be read */
    SignatureKind kind;
} Slot;

static bool is_optional(SignatureKind k)
{
    return k == SIGNATURE_OPTIONAL || k == SIGNATURE_OPTIONAL_SEQUENCE;
}

static bool is_sequence(SignatureKind k)
{
    return k == SIGNATURE_SEQUENCE || k == SIGNATURE_OPTIONAL_SEQUENCE;
}

typedef VEC(Array) Arrays;

/* The tensors of a value that was read. */
static void add_value(Session *s, const Slot *slot, FileValue *v, Arrays *out)
{
    Arena      *a = s->driver->arena;
    const char *name = *v->name ? v->name : slot->name;

    if (v->optional) {
        uint8_t *given = NEW(a, uint8_t);

        *given = v->given;
        vec_push(a, out,
                 ((Array){.name = arena_printf(a, "%s.given", name),
                          .code = TVMCC_BOOL,
                          .bits = 8,
                          .dims = NEW(a, int64_t),
                          .data = {given, 1}}));
    }
    for (uint32_t i = 0; i < v->n; i++) {
        v->at[i].name = v->sequence ? arena_printf(a, "%s.%u", name, i) : name;
        vec_push(a, out, v->at[i]);
    }
    if (v->sequence)
        vec_push(a, &s->lengths, ((ImportDim){name, v->n, v->n}));
}

/* The values in a folder; an optional one without a file is not there. */
static bool read_folder(Session *s, const char *folder, const char *what, uint32_t nslots,
                        const Slot *slots, uint32_t *n, Array **out)
{
    Diags      *d = s->driver->diags;
    Arena      *a = s->driver->arena;
    Arrays      all = {0};
    const char *path;
    Bytes       file;
    uint32_t    i;
    bool        found = false;

    for (i = 0; i < nslots; i++) {
        FileValue v = {is_optional(slots[i].kind), is_sequence(slots[i].kind), .name = ""};

        path = arena_printf(a, "%s/%s_%u.pb", folder, what, i);
        found |= access(path, F_OK) == 0;
        if (!slots[i].name)
            continue;
        if (access(path, F_OK)) {
            if (v.optional)
                add_value(s, &slots[i], &v, &all);
            continue;
        }
        if (!file_map(d, path, &file) || !value_pb_read(d, a, (Loc){.file = path}, file, &v))
            return false;
        add_value(s, &slots[i], &v, &all);
    }
    *n = all.n;
    *out = all.at;
    if (nslots && !found && !all.n) {
        diag_error(d, E_RUN, (Loc){.file = folder}, "no %s_0.pb is in the folder '%s'", what,
                   folder);
        diag_hint(d, "a folder holds tensors as ONNX stores them, %s_0.pb ..; others are an .npz",
                  what);
        return false;
    }
    unpack(s, *n, *out);
    path = arena_printf(a, "%s/%s_%u.pb", folder, what, i);
    return access(path, F_OK) || diag_error(d, E_RUN, (Loc){.file = path}, "the model has %u %s%s",
                                            nslots, what, nslots == 1 ? "" : "s");
}

/* Of a compiled model: its tensors. */
static const Slot *slots_of_info(Arena *a, uint32_t n, const tvmcc_tensor_info *t)
{
    Slot *slots = NEW_ARRAY(a, Slot, n + 1);

    for (uint32_t i = 0; i < n; i++)
        slots[i] = (Slot){t[i].name, SIGNATURE_TENSOR};
    return slots;
}

/* Of a model as its file has it. */
static Slot *slots_of_file(Arena *a, uint32_t n, const SignatureTensor *t)
{
    Slot *slots = NEW_ARRAY(a, Slot, n + 1);

    for (uint32_t i = 0; i < n; i++)
        slots[i] = (Slot){t[i].name, t[i].kind};
    return slots;
}

/* "string", "sequence(string)" */
static bool holds_text(const char *type)
{
    return strstr(type, "string") != NULL;
}

/* What is no tensor of numbers or strings is for the import to refuse. */
static const Slot *slots_of_inputs(Arena *a, uint32_t n, const SignatureTensor *t)
{
    Slot *slots = slots_of_file(a, n, t);
    DType type;

    for (uint32_t i = 0; i < n; i++)
        if (t[i].kind == SIGNATURE_OTHER ||
            (t[i].kind == SIGNATURE_TENSOR && !holds_text(t[i].type) &&
             !dtype_parse(t[i].type, &type)))
            slots[i].name = NULL;
    return slots;
}

/* What the model's file says of its inputs and outputs; false with an error. */
static bool read_signature(Session *s)
{
    ModelSignature *sig = NEW(s->driver->arena, ModelSignature);

    if (s->compiled && !s->signature && compile_describe(s->c, &s->job.options, sig))
        s->signature = sig;
    return !diag_errors(s->driver->diags);
}

/* How many elements of each sequence an .npz has. */
static void count_elements(Session *s)
{
    Arena *a = s->driver->arena;

    for (uint32_t i = 0; s->signature && i < s->signature->ninputs; i++) {
        const SignatureTensor *t = &s->signature->inputs[i];
        uint32_t               n = 0;

        while (array_find(s->given, s->ngiven, arena_printf(a, "%s.%u", t->name, n)))
            n++;
        if (is_sequence(t->kind))
            vec_push(a, &s->lengths, ((ImportDim){t->name, n, n}));
    }
}

bool session_read_inputs(Session *s)
{
    const char *path = s->driver->opt.in_path;
    Arena      *a = s->driver->arena;

    if (!path)
        return true;
    if (!read_signature(s))
        return false;
    if (!is_folder(path)) {
        if (!read_npz(s, path, &s->ngiven, &s->given))
            return false;
        count_elements(s);
        return true;
    }
    if (s->signature)
        return read_folder(s, path, "input", s->signature->ninputs,
                           slots_of_inputs(a, s->signature->ninputs, s->signature->inputs),
                           &s->ngiven, &s->given);
    if (s->info)
        return read_folder(s, path, "input", s->info->ninputs,
                           slots_of_info(a, s->info->ninputs, s->info->inputs), &s->ngiven,
                           &s->given);
    return true; /* a format that tells no names: once it is imported */
}

/* The same strings with room for `room` bytes each. */
static void widen(Arena *a, Array *v, int64_t room)
{
    size_t   n = array_strings(v), had = (size_t)v->dims[v->ndim - 1];
    int64_t *dims = DUP_ARRAY(a, v->dims, v->ndim);
    uint8_t *to = arena_array(a, n * (size_t)room + 1, 1);

    for (size_t i = 0; i < n; i++)
        memcpy(to + i * (size_t)room, v->data.at + i * had, had);
    dims[v->ndim - 1] = room;
    v->dims = dims;
    v->data = (Bytes){to, n * (size_t)room};
}

void session_fit_text(Session *s)
{
    for (uint32_t i = 0; i < s->info->ninputs; i++) {
        const tvmcc_tensor_info *t = &s->info->inputs[i];
        Array                   *v = (Array *)(uintptr_t)array_find(s->given, s->ngiven, t->name);

        if (v && v->text && v->ndim == t->ndim && v->dims[t->ndim - 1] < t->dims[t->ndim - 1])
            widen(s->driver->arena, v, t->dims[t->ndim - 1]);
    }
}

/* Are the outputs those of the model's file? */
static bool has_all_outputs(const Session *s)
{
    return s->signature && !s->job.options.tensors.n;
}

bool session_read_expected(Session *s, const char *path, uint32_t *n, Array **out)
{
    const tvmcc_model_info *info = s->info;
    Arena                  *a = s->driver->arena;

    if (!is_folder(path))
        return read_npz(s, path, n, out);
    if (!read_signature(s))
        return false;
    if (has_all_outputs(s))
        return read_folder(s, path, "output", s->signature->noutputs,
                           slots_of_file(a, s->signature->noutputs, s->signature->outputs), n, out);
    return read_folder(s, path, "output", info->noutputs,
                       slots_of_info(a, info->noutputs, info->outputs), n, out);
}

/* ---- outputs ---- */

/* Element k of a list, cut out of the room of the largest; `sizes` NULL: all have that. */
static Array element_of(Arena *a, const Array *list, const Array *sizes, uint32_t k)
{
    uint32_t step = list->bits < 8 ? 1 : list->bits / 8, rank = list->ndim - 1;
    int64_t  n = 1, room = 1, *dims = NEW_ARRAY(a, int64_t, rank + 1);
    uint8_t *to;
    Array    e = *list;

    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = list->dims[i + 1];
        if (sizes)
            memcpy(&dims[i], sizes->data.at + ((size_t)k * rank + i) * sizeof *dims, sizeof *dims);
        n *= dims[i];
        room *= list->dims[i + 1];
    }
    to = arena_array(a, (size_t)n + 1, step);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0, rest = i, stride = 1;

        for (uint32_t d = rank; d-- > 0; stride *= list->dims[d + 1]) {
            at += rest % dims[d] * stride;
            rest /= dims[d];
        }
        memcpy(to + i * step, list->data.at + (k * room + at) * step, step);
    }
    e.name = arena_printf(a, "%s.%u", list->name, k);
    e.ndim = rank;
    e.dims = dims;
    e.data = (Bytes){to, (size_t)n * step};
    return e;
}

/* Is it what the model's file calls a sequence? */
static bool is_list(const Session *s, const char *name)
{
    for (uint32_t i = 0; s->signature && i < s->signature->noutputs; i++)
        if (!strcmp(s->signature->outputs[i].name, name))
            return is_sequence(s->signature->outputs[i].kind);
    return false;
}

bool session_is_text(Session *s, const char *output)
{
    if (!read_signature(s))
        return false;
    for (uint32_t i = 0; s->signature && i < s->signature->noutputs; i++) {
        const SignatureTensor *t = &s->signature->outputs[i];
        size_t                 n = strlen(t->name);

        if (!strncmp(t->name, output, n) && holds_text(t->type) &&
            (!output[n] || /* or an element of a sequence */
             (is_sequence(t->kind) && output[n] == '.' &&
              !output[n + 1 + strspn(output + n + 1, "0123456789")])))
            return true;
    }
    return false;
}

bool session_results(Session *s, uint32_t *n, Array **out)
{
    const tvmcc_model_info *m = s->info;
    Arena                  *a = s->driver->arena;
    Arrays                  all = {0}, now = {0};

    if (!read_signature(s))
        return false;
    for (uint32_t i = 0; i < m->noutputs; i++) {
        const tvmcc_tensor_info *t = &m->outputs[i];

        vec_push(a, &all,
                 ((Array){t->name,
                          t->code,
                          t->bits,
                          t->ndim,
                          DUP_ARRAY(a, t->dims, t->ndim),
                          {s->out[i], t->bytes},
                          NULL,
                          t->ndim && t->code == TVMCC_UINT && session_is_text(s, t->name)}));
    }
    for (uint32_t i = 0; i < all.n; i++) {
        const Array *v = &all.at[i], *sizes = v + 1;
        const char  *name = arena_printf(a, "%s.sizes", v->name);

        if (!is_list(s, v->name) || !v->ndim) {
            vec_push(a, &now, *v);
            continue;
        }
        if (i + 1 == all.n || strcmp(sizes->name, name) != 0)
            sizes = NULL;
        for (uint32_t k = 0; k < v->dims[0]; k++)
            vec_push(a, &now, element_of(a, v, sizes, k));
        i += sizes != NULL;
    }
    *n = now.n;
    *out = now.at;
    return true;
}

/* Takes the tensors of a value off the list, in the order of the model's outputs. */
static FileValue next_value(Arena *a, const Slot *slot, uint32_t *n, Array **at)
{
    FileValue v = {is_optional(slot->kind), is_sequence(slot->kind), true, slot->name, 0, NULL};

    if (v.optional && *n) {
        v.given = *(const uint8_t *)(*at)->data.at != 0;
        ++*at, --*n;
    }
    v.at = *at;
    while (*n && !strcmp((*at)->name,
                         v.sequence ? arena_printf(a, "%s.%u", slot->name, v.n) : slot->name)) {
        v.n++;
        ++*at, --*n;
        if (!v.sequence)
            break;
    }
    for (uint32_t i = 0; v.sequence && i < v.n; i++)
        v.at[i].name = "";
    return v;
}

static bool write_folder(Session *s, const char *path, uint32_t n, Array *all)
{
    Arena      *a = s->driver->arena;
    Diags      *d = s->driver->diags;
    uint32_t    files = has_all_outputs(s) ? s->signature->noutputs : n;
    const Slot *slots = has_all_outputs(s) ? slots_of_file(a, files, s->signature->outputs)
                                           : slots_of_info(a, n, s->info->outputs);

    if (!file_make_folder(d, path))
        return false;
    for (uint32_t i = 0; i < files || n; i++) {
        Slot      one = i < files ? slots[i] : (Slot){all->name, SIGNATURE_TENSOR};
        FileValue v = next_value(a, &one, &n, &all);

        if (!v.n && one.kind != SIGNATURE_SEQUENCE && !v.optional)
            continue;
        if (!file_write(
                d, arena_printf(a, "%s%soutput_%u.pb", path, str_ends(path, "/") ? "" : "/", i),
                value_pb_write(a, &v)))
            return false;
    }
    return true;
}

bool session_write_outputs(Session *s, const char *path)
{
    const Options *o = &s->driver->opt;
    Arena         *a = s->driver->arena;
    Diags         *d = s->driver->diags;
    uint32_t       n;
    Array         *all;

    if (!session_results(s, &n, &all))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (all[i].bits < 8)
            all[i].data = array_packed(a, all[i].data, all[i].bits);
    if (!is_folder(path) && !str_ends(path, "/") &&
        (str_ends(path, ".npz") || !o->in_path || !is_folder(o->in_path)))
        return file_write(d, path, npz_write(a, n, all));
    return write_folder(s, path, n, all);
}
