/* Any bytes as an object file: read, audited, embedded into, put into a library. */
#include "packaging/packaging.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena      *a = arena_new(NULL);
    Diags      *d = diags_new(a);
    AuditRules  rules = {.entry = "net"};
    AuditReport report;
    Bytes       out, weights = {(const uint8_t *)"weights", 7};
    Member      m = {.path = "object.o", .data = {data, size}};

    audit_object(d, a, "object.o", m.data, &rules, &report);
    elf_embed(d, a, "object.o", m.data, "net_weights", weights, &out);
    ar_library(d, a, &m, 1, &out);
    arena_free(a);
    return 0;
}
