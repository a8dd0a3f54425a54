/* Operators that take indices, axes or sizes as constants, with every type, rank and value around
 * the edges: an import gives a module or an error, and one outside its extent an error. */
#include "frontends/frontends.h"
#include "ops/ops.h"
#include "tests/unit/check.h"
#include "tests/unit/onnx_model.h"

enum { F32 = 1, I32 = 6, I64 = 7 };
static const int64_t x_dims[] = {2, 3, 4};

/* The constant of an operator: its cells, as i32 or i64, a scalar or a row. */
typedef struct {
    uint32_t rank, n;
    int64_t  at[6];
} Cells;

static void add_cells(Model *m, const char *name, int type, Cells v)
{
    int64_t dims[] = {v.n};
    int32_t narrow[COUNT(v.at)];

    for (uint32_t i = 0; i < v.n; i++)
        narrow[i] = (int32_t)v.at[i];
    onnx_init(m, name, type, v.rank, dims, type == I32 ? (void *)narrow : v.at,
              v.n * (type == I32 ? 4 : 8));
}

/* The exit status of importing, and the module's result where it can be computed. */
static int import(const Model *m, float *out, size_t n)
{
    Diags        *d = diags_new(m->arena);
    Ctx          *c = ctx_new(m->arena, d, op_table);
    ImportOptions o = {0};
    ImportFiles   files = {0};
    const Module *module = onnx_import(c, "m.onnx", onnx_model_bytes(m), &o, &files);
    float         cells[24];
    const Const *x, *const *results;
    uint32_t nresults;
    int      status = diag_status(d);

    for (int i = 0; i < 24; i++)
        cells[i] = (float)i;
    x = const_new(c, "x", type_tensor_i64(c, DT_F32, 3, x_dims),
                  (Bytes){(const uint8_t *)cells, sizeof cells});
    CHECK(!module == (status != 0));
    if (module)
        CHECK(relay_verify(c, module));
    if (module && out && relay_eval(c, module, 1, &x, &nresults, &results) &&
        results[0]->data.n == n * sizeof *out)
        memcpy(out, results[0]->data.at, n * sizeof *out);
    ctx_free(c);
    return status;
}

static Model model_of_x(Arena *a)
{
    Model m = onnx_model_new(a, 17);

    onnx_input(&m, "x", F32, 3, x_dims);
    onnx_output(&m, "y");
    return m;
}

/* One index along each axis: x[.., at, ..]. */
static void test_gather(void)
{
    for (int axis = -3; axis < 3; axis++)
        for (int64_t at = -6; at < 6; at++)
            for (int form = 0; form < 4; form++) {
                Arena  *a = arena_new(NULL);
                Model   m = model_of_x(a);
                StrBuf  attr = onnx_attr_int(a, "axis", axis);
                int     k = axis < 0 ? axis + 3 : axis;
                int64_t extent = x_dims[k], from = at < 0 ? at + extent : at;
                size_t  n = (size_t)(24 / extent);
                float   y[24] = {-1};

                add_cells(&m, "i", form & 1 ? I32 : I64, (Cells){(uint32_t)form >> 1, 1, {at}});
                onnx_node(&m, "Gather", "x i", "y", &attr);
                CHECK_INT(import(&m, y, n), from < 0 || from >= extent ? 1 : 0);
                if (from >= 0 && from < extent)
                    CHECK_INT(y[0], (k == 0 ? 12 : k == 1 ? 4 : 1) * from);
                arena_free(a);
            }
}

/* All cells of x with the same index: [2,3,4] of it. */
static void test_elements(void)
{
    for (int axis = -3; axis < 3; axis++)
        for (int64_t at = -6; at < 6; at++)
            for (int form = 0; form < 4; form++) {
                Arena  *a = arena_new(NULL);
                Model   m = model_of_x(a);
                StrBuf  attr = onnx_attr_int(a, "axis", axis);
                int64_t extent = x_dims[axis < 0 ? axis + 3 : axis], one[] = {1, 1, 1};
                int32_t narrow = (int32_t)at;
                float   nine = 9;

                onnx_init(&m, "i", form & 1 ? I32 : I64, 3, one, form & 1 ? (void *)&narrow : &at,
                          form & 1 ? 4 : 8);
                onnx_init(&m, "u", F32, 3, one, &nine, 4);
                onnx_node(&m, form & 2 ? "ScatterElements" : "GatherElements",
                          form & 2 ? "x i u" : "x i", "y", &attr);
                CHECK_INT(import(&m, NULL, 0), at < -extent || at >= extent ? 1 : 0);
                arena_free(a);
            }
}

/* Coordinates of all lengths, the last one around the edges. */
static void test_nd(void)
{
    for (uint32_t n = 1; n <= 3; n++)
        for (int64_t at = -6; at < 6; at++)
            for (int form = 0; form < 4; form++) {
                Arena  *a = arena_new(NULL);
                Model   m = model_of_x(a);
                Cells   v = {1, n, {-1, -1, -1}};
                int64_t extent = x_dims[n - 1], rest[] = {3, 4};
                float   nines[12] = {9};

                v.at[n - 1] = at;
                add_cells(&m, "i", form & 1 ? I32 : I64, v);
                onnx_init(&m, "u", F32, 3 - n, &rest[n - 1], nines, n == 1 ? 48 : n == 2 ? 16 : 4);
                onnx_node(&m, form & 2 ? "ScatterND" : "GatherND", form & 2 ? "x i u" : "x i", "y",
                          NULL);
                CHECK_INT(import(&m, NULL, 0), at < -extent || at >= extent ? 1 : 0);
                arena_free(a);
            }
}

/* What else takes constants: whatever they are, there is a module or an error. */
static void test_others(void)
{
    static const struct {
        const char *op, *ins, *outs;
    } rows[] = {
        {"Slice", "x i j", "y"},
        {"Slice", "x i j k", "y"},
        {"Slice", "x j i k j", "y"},
        {"Split", "x i", "y z"},
        {"Split", "x i", "y"},
        {"Squeeze", "x i", "y"},
        {"Unsqueeze", "x i", "y"},
        {"Tile", "x i", "y"},
        {"Expand", "x i", "y"},
        {"Reshape", "x i", "y"},
        {"OneHot", "i j k", "y"},
        {"OneHot", "x i j", "y"},
        {"TopK", "x i", "y z"},
        {"Range", "i j k", "y"},
        {"Pad", "x i", "y"},
        {"Trilu", "x i", "y"},
        {"CumSum", "x i", "y"},
        {"Compress", "x i", "y"},
        {"ConstantOfShape", "i", "y"},
        {"EyeLike", "i", "y"},
        {"NonZero", "i", "y"},
        {"Resize", "x _ _ i", "y"},
        {"CenterCropPad", "x i", "y"},
        {"Gather", "i j", "y"},
        {"GatherND", "i j", "y"},
        {"GatherElements", "i j", "y"},
        {"ScatterND", "i j k", "y"},
        {"ReduceSum", "x i", "y"},
        {"ReverseSequence", "x i", "y"},
        {"BlackmanWindow", "i", "y"},
        {"ScatterElements", "i j k", "y"},
    };
    static const Cells cells[] = {
        {0, 1, {0}},
        {0, 1, {1}},
        {0, 1, {-1}},
        {0, 1, {5}},
        {1, 0, {0}},
        {1, 1, {0}},
        {1, 1, {-1}},
        {1, 1, {3}},
        {1, 2, {1, 1}},
        {1, 2, {0, -1}},
        {1, 3, {2, 3, 4}},
        {1, 3, {-1, 0, 1}},
        {1, 1, {INT32_MAX}},
        {1, 1, {INT32_MIN}},
        {1, 6, {1, 1, 1, 1, 1, 1}},
        {1, 6, {-1, 0, -9, 9, 0, 1}},
    };
    uint32_t taken = 0;

    for (uint32_t i = 0; i < COUNT(rows) * COUNT(cells) * COUNT(cells) * 2; i++) {
        Arena   *a = arena_new(NULL);
        Model    m = model_of_x(a);
        uint32_t k = i / 2, type = i & 1 ? I32 : I64;
        uint32_t row = k / (uint32_t)(COUNT(cells) * COUNT(cells));
        int      status;

        m.opset = 18;
        add_cells(&m, "i", (int)type, cells[k % COUNT(cells)]);
        add_cells(&m, "j", (int)type, cells[k / COUNT(cells) % COUNT(cells)]);
        add_cells(&m, "k", (int)type, cells[(k / COUNT(cells) + k) % COUNT(cells)]);
        onnx_node(&m, rows[row].op, rows[row].ins, rows[row].outs, NULL);
        status = import(&m, NULL, 0);
        CHECK(status == 0 || status == 1 || status == 3);
        taken += status == 0;
        arena_free(a);
    }
    CHECK(taken > 1000);
}

int main(void)
{
    RUN(test_gather);
    RUN(test_elements);
    RUN(test_nd);
    RUN(test_others);
    return check_result();
}
