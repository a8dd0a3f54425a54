/* Any bytes as a program of torch.export. */
#include "frontends/pytorch/pytorch.h"
#include "tests/fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void draw(Ctx *c, Bytes file, FuzzOptions *o)
{
    PtArchive archive = {0};
    PtProgram p;

    if (!pt_read_archive(c, NO_LOC, file, &archive) ||
        !pt_read_program(c, NO_LOC, archive.program, &p))
        return;
    for (uint32_t i = 0; i < p.ranges.n; i++)
        fuzz_dim(o, p.ranges.at[i].name);
    for (uint32_t i = 0; i < p.inputs.n; i++)
        if (p.inputs.at[i].arg.text)
            fuzz_input(c, o, p.inputs.at[i].arg.text, fuzz_draw(o, 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_model("pytorch", "/nonexistent/model.pt2", (Bytes){data, size}, draw);
}
