/* What must not outlive the process: see temporary.c.  For writer.c. */
#ifndef TVMCC_BASE_TEMPORARY_H
#define TVMCC_BASE_TEMPORARY_H

#include <signal.h>

/* Between the two, no signal ends the process: what is made is also in the table.  Short, and not
 * nested; the signals that were blocked before are given back. */
sigset_t temporary_begin(void);
void     temporary_end(sigset_t before);

void     temporary_remember(const char *path);
void     temporary_forget(const char *path);
unsigned temporary_number(void); /* another one each time */

#endif
