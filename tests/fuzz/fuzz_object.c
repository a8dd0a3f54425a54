/* Any bytes as an object file: read, asked for its models, audited, merged with another, put into a
 * library. */
#include "packaging/packaging.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_tensors(StrBuf *text, const tvmcc_model_info *info, const tvmcc_tensor_info *t,
                        uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        str_add_json(text, t[i].name);
        for (uint32_t k = 0; k < t[i].ndim; k++)
            str_printf(text, "%lld", (long long)t[i].dims[k]);
        if (t[i].state_input)
            str_add_json(text, info->inputs[t[i].state_input - 1].name);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const files[] = {"object.o", "weights.o"};
    static const uint8_t     weights[] = "weights";
    Arena                   *a = arena_new(NULL);
    Diags                   *d = diags_new(a);
    AuditRules               rules = {.entry = "net"};
    AuditReport              report;
    ObjectTarget             t;
    ModelInfos               infos = {0};
    StrBuf                   text = strbuf(a);
    Bytes                    out, two[2] = {{data, size}};
    BytesList                merged;
    Member                   m = {.path = "object.o", .data = {data, size}};

    audit_object(d, a, "object.o", m.data, &rules, &report);
    if (elf_target(d, "x86_64-linux-gnu", &t)) {
        two[1] = elf_blob(a, &t, "net_weights", (Bytes){weights, sizeof weights});
        elf_merge(d, a, 2, two, NULL, files, &merged);
        elf_unit_fits(a, two[0], two[1]);
        elf_unit_fits(a, two[1], two[0]);
    }
    model_infos(d, a, "object.o", m.data, &infos);
    for (uint32_t i = 0; i < infos.n; i++) { /* what is read is there */
        const tvmcc_model_info *info = infos.at[i];

        use_tensors(&text, info, info->inputs, info->ninputs);
        use_tensors(&text, info, info->outputs, info->noutputs);
    }
    ar_library(d, a, &m, 1, &out);
    arena_free(a);
    return 0;
}
