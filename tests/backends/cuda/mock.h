/* What the mock libraries of CUDA share: text that stands for PTX, and its translation. */
#ifndef MOCK_H
#define MOCK_H

#include <stddef.h>

/* A shared library of this machine, malloc'd, from C++ text that includes cuda_on_cpu.h; NULL with
 * messages in `log`, malloc'd. */
void *mock_translate(const char *text, size_t *bytes, char **log);
void *mock_read(const char *path, size_t *bytes); /* malloc'd, with a 0 behind; NULL: cannot */

#endif
