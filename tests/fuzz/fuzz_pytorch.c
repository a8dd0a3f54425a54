/* Any bytes as a program of torch.export, or as TorchScript. */
#include "frontends/pytorch/pytorch.h"
#include "tests/fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The names of inputs are all that an archive of TorchScript says of them. */
static void draw_script(Ctx *c, Bytes file, FuzzOptions *o)
{
    const ImportOptions none = {0};
    ModelSignature      s = {0};

    if (pytorch_describe(c, "/nonexistent/model.pt", file, &none, &s))
        for (uint32_t i = 0; i < s.ninputs; i++)
            fuzz_input(c, o, s.inputs[i].name, fuzz_draw(o, 5));
}

static void draw(Ctx *c, Bytes file, FuzzOptions *o)
{
    PtArchive archive = {0};
    PtProgram p;

    if (!pt_is_archive(file)) {
        draw_script(c, file, o);
        return;
    }
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
    return fuzz_model(FUZZ_FORMAT(pytorch), "/nonexistent/model.pt2", (Bytes){data, size}, draw);
}
