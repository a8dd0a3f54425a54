/* Arguments in, exit status out.  Products go to files or standard output, messages and progress
 * to standard error; the exit statuses are those of the errors in base/diag.def. */
#include "driver/build.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { STATUS_INTERNAL = 70 };

static int run(Driver *driver, int argc, char **argv)
{
    Diags   *d = driver->diags;
    Options *o = &driver->opt;
    StrBuf   text = strbuf(driver->arena);

    if (!options_parse(d, driver->arena, argc - 1, (const char *const *)argv + 1, o))
        return 0;
    if (o->show) {
        if (help_print(d, o, &text))
            file_write(d, "-", (Bytes){(const uint8_t *)text.at, text.n});
        return 0;
    }
    if (!o->command) {
        diag_error(d, E_USAGE, NO_LOC, "there is no command for '%s'", o->inputs.at[0]);
        return 0;
    }
    return o->command->run(driver);
}

/* What was printed on the way has arrived. */
static void check_output(Diags *d)
{
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && !diag_errors(d))
        diag_error(d, E_IO, NO_LOC, "cannot write 'standard output': %s",
                   errno ? strerror(errno) : "some of it is lost");
}

int main(int argc, char **argv)
{
    jmp_buf oom;
    Driver  driver = {.arena = NULL};
    StrBuf  messages;
    int     status;

    file_handle_signals();
    if (setjmp(oom)) {
        fputs("tvmcc: error: out of memory\n", stderr);
        file_remove_temporaries();
        report_status(STATUS_INTERNAL);
        return STATUS_INTERNAL;
    }
    driver.arena = arena_new(&oom);
    driver.diags = diags_new(driver.arena);
    driver.progress = progress_new(driver.arena);
    status = run(&driver, argc, argv);
    check_output(driver.diags);
    progress_end(driver.progress);
    messages = strbuf(driver.arena);
    diag_color(driver.diags, color_wanted(driver.opt.color));
    diag_print(driver.diags, driver.opt.diag_format, &messages);
    fputs(messages.at, stderr);
    if (diag_errors(driver.diags))
        status = diag_status(driver.diags);
    if (status)
        report_status(status);
    file_unmap_all(driver.diags);
    if (driver.c)
        ctx_free(driver.c);
    arena_free(driver.arena);
    return status;
}
