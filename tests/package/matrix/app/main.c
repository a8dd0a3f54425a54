#include "expect.h"
#include "net.h"

NET_DEFINE_ARENA(arena);

int main(void)
{
    static float x[NET_IN_X_ELEMS], y[NET_OUT_Y_ELEMS];
    net_inputs   in;
    net_outputs  out;
    int          i;

    for (i = 0; i < NET_IN_X_ELEMS; i++)
        x[i] = 1;
    in.x = x;
    out.y = y;
    if (net_run(&in, &out, arena))
        return 1;
    for (i = 0; i < NET_OUT_Y_ELEMS; i++)
        if (y[i] - EXPECT > 1e-5f || EXPECT - y[i] > 1e-5f)
            return 2;
    return 0;
}
