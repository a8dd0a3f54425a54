/* The caches of this machine, for -mcpu=native: Linux lists those of the first core in sysfs. Where
 * it does not, the typical sizes of machine/cpus.def count. */
#include "backends/llvm/llvm.h"

#include <stdio.h>
#include <stdlib.h>

static uint32_t sysfs_cache(int index, char *type)
{
    char  path[96], line[64] = "";
    FILE *f;
    long  kib = 0;

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", index);
    *type = 0;
    if (!(f = fopen(path, "r")))
        return 0;
    if (fgets(line, sizeof line, f))
        *type = line[0];
    fclose(f);
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    if (!(f = fopen(path, "r")))
        return 0;
    if (fgets(line, sizeof line, f)) {
        char *end;

        kib = strtol(line, &end, 10);
        if (*end == 'M')
            kib *= 1024;
    }
    fclose(f);
    return kib > 0 && kib < 4 << 20 ? (uint32_t)kib : 0;
}

/* l1 data, l2 and l3 of the first core, where the system says so. */
void native_caches(Target *t)
{
    uint32_t level = 0, size[3] = {0};

    for (int i = 0; i < 8 && level < 3; i++) {
        char     type;
        uint32_t kib = sysfs_cache(i, &type);

        if (kib && type != 'I')
            size[level++] = kib;
    }
    if (level < 2)
        return;
    t->l1_bytes = size[0] * 1024;
    t->l2_bytes = size[1] * 1024;
    t->l3_bytes = (level > 2 ? size[2] : size[1]) * 1024;
}
