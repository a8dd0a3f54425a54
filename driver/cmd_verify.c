/* tvmcc verify: does a product compute what it should?
 *
 * The product is run on given inputs, in this process or, where it is for another machine or cannot
 * be loaded, as a program under an emulator (remote.c), and every expected output must agree
 * (compare.c).  With --per-layer every kernel is looked at by itself (layers.c).  A model file is
 * compiled first.  Status 7 where an output differs, 9 where a
 * compiler or an emulator is missing. */
#include "driver/session.h"

int cmd_verify(Driver *driver)
{
    Session        s = {.driver = driver};
    const Options *o = &driver->opt;

    if (!o->in_path || !o->expect_path) {
        diag_error(driver->diags, E_USAGE, NO_LOC,
                   "--inputs and --expect are needed: what goes in, and what should come out");
        return 0;
    }
    if (session_open(&s) && session_run(&s)) {
        if (o->json)
            session_begin_json(&s);
        if (!s.remote)
            session_check(&s);
        session_cut(&s);
        session_compare(&s, o->expect_path);
        if (o->per_layer)
            session_layers(&s);
        if (o->json)
            say(driver, "%s}\n", s.json.at);
        write_stamp(driver);
    }
    session_close(&s);
    return 0;
}
