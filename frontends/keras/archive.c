/* The file: where the configuration and the weights are, and which Keras wrote it. */
#include "frontends/keras/keras.h"

#include <string.h>

static const char config_name[] = "config.json", metadata_name[] = "metadata.json",
                  weights_name[] = "model.weights.h5", shards_name[] = "model.weights.json";

static bool is_named(const ZipMember *m, const char *name)
{
    return m->name.n == strlen(name) && !memcmp(m->name.at, name, m->name.n);
}

/* An entry of an archive may lie where a file of HDF5 could begin. */
static bool is_archive(Bytes file)
{
    return file.n >= 4 && !memcmp(file.at, "PK\3\4", 4);
}

bool keras_is_file(Bytes file)
{
    static const char attribute[] = "model_config";
    ZipDir            d;
    ZipMember         m;
    Bytes             rest = file;

    if (!is_archive(file) &&
        h5_is(file)) { /* the name of the attribute stands somewhere in its header */
        while (rest.n >= sizeof attribute) {
            const uint8_t *at = memchr(rest.at, 'm', rest.n - sizeof attribute + 1);

            if (!at)
                return false;
            if (!memcmp(at, attribute, sizeof attribute))
                return true;
            rest = (Bytes){at + 1, rest.n - (size_t)(at + 1 - rest.at)};
        }
        return false;
    }
    if (!is_archive(file) || !zip_open(file, &d))
        return false;
    for (bool config = false, weights = false; zip_next(&d, &m);) {
        config |= is_named(&m, config_name);
        weights |= is_named(&m, weights_name) || is_named(&m, shards_name);
        if (config && weights)
            return true;
    }
    return false;
}

/* "2.0.5"; what has no version is of Keras 1. */
static int major_of(const char *version)
{
    return version && *version >= '0' && *version <= '9' ? *version - '0' : 1;
}

static json_t *parse(Ctx *c, Loc loc, const char *what, Bytes text)
{
    json_error_t error = {.line = 0};
    json_t      *root = json_read(text, &error);

    if (!root)
        error_at(c, E_PARSE_MODEL, loc, "%s is no JSON, from line %d on", what, error.line);
    return root;
}

/* ---- .keras ----------------------------------------------------------------------------------------- */

static bool read_zip(Ctx *c, Loc loc, Bytes file, KerasArchive *out)
{
    ZipMember m, config = {0}, metadata = {0}, weights = {0};
    Bytes     text, h5;
    ZipDir    d;
    json_t   *about;

    if (!zip_open(file, &d))
        return error_at(c, E_PARSE_MODEL, loc, "not a zip file");
    while (zip_next(&d, &m)) {
        if (is_named(&m, config_name))
            config = m;
        if (is_named(&m, metadata_name))
            metadata = m;
        if (is_named(&m, weights_name))
            weights = m;
        if (is_named(&m, shards_name))
            return error_at(c, E_UNSUPPORTED, loc, "its weights are in several files");
    }
    if (d.bad)
        return error_at(c, E_PARSE_MODEL, loc, "the directory of the zip is broken");
    if (!config.name.at || !weights.name.at)
        return error_at(c, E_IMPORT, loc, "there is no %s in the archive",
                        config.name.at ? weights_name : config_name);
    out->paths = true;
    out->major = 3;
    if (metadata.name.at) {
        if (!zip_data(c->diags, c->arena, loc, &metadata, &text) ||
            !(about = parse(c, loc, metadata_name, text)))
            return false;
        out->major = major_of(json_string_value(json_object_get(about, "keras_version")));
        json_decref(about);
    }
    if (!zip_data(c->diags, c->arena, loc, &weights, &h5) ||
        !(out->weights = h5_open(c->diags, c->arena, loc, weights_name, h5)))
        return false;
    out->root = h5_root(out->weights);
    return zip_data(c->diags, c->arena, loc, &config, &text) &&
           (out->config = parse(c, loc, config_name, text));
}

/* ---- .h5 -------------------------------------------------------------------------------------------- */

static const char *text_of(const H5Object *o, const char *name)
{
    H5Value v;

    return h5_attribute(o, name, &v) && v.kind == H5_TEXT && v.cells == 1 ? v.texts[0] : NULL;
}

static bool read_h5(Ctx *c, Loc loc, Bytes file, KerasArchive *out)
{
    static const char attribute[] = "model_config", groups[] = "model_weights";
    const char       *config, *backend;
    H5Object          root;

    if (!(out->weights = h5_open(c->diags, c->arena, loc, "", file)))
        return false;
    root = h5_root(out->weights);
    out->major = major_of(text_of(&root, "keras_version"));
    config = text_of(&root, attribute);
    if (!config && !h5_failed(out->weights)) {
        error_at(c, E_IMPORT, loc,
                 "the file has no attribute %s: it holds weights without a network", attribute);
        diag_hint(c->diags, "save the whole model: `model.save(\"<model>.keras\")`");
    }
    if (!config)
        return false;
    if (h5_find(&root, groups, &out->root) && !text_of(&root, "keras_version"))
        out->major = major_of(text_of(&out->root, "keras_version"));
    else if (!out->root.file)
        out->root = root;
    backend = text_of(&out->root, "backend");
    out->flipped = backend && !strcmp(backend, "theano");
    return !h5_failed(out->weights) &&
           (out->config =
                parse(c, loc, attribute, (Bytes){(const uint8_t *)config, strlen(config)}));
}

bool keras_read_archive(Ctx *c, Loc loc, Bytes file, KerasArchive *out)
{
    *out = (KerasArchive){0};
    return !is_archive(file) && h5_is(file) ? read_h5(c, loc, file, out)
                                            : read_zip(c, loc, file, out);
}
