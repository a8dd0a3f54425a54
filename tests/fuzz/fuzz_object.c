/* Any bytes as an object file: read, asked for its models, audited, merged with another, put into a
 * library. */
#include "packaging/packaging.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    for (uint32_t i = 0; i < infos.n; i++) /* what is read is there */
        for (uint32_t k = 0; k < infos.at[i]->ninputs; k++)
            str_add_json(&text, infos.at[i]->inputs[k].name);
    ar_library(d, a, &m, 1, &out);
    arena_free(a);
    return 0;
}
