/* How fast one core reads what another has just written, in GB/s: far slower where the two have no
 * cache in common, as when a virtual machine's processors were moved apart.  Figures of several
 * threads from such moments and from others cannot be compared.
 *
 *     cc -O2 -pthread handover.c -o handover && ./handover */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BYTES = 1 << 19, LINE = 64, TURNS = 24 };

static _Alignas(4096) unsigned char buffer[BYTES];
static _Alignas(128) atomic_int turn;

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_for(int value)
{
    while (atomic_load_explicit(&turn, memory_order_acquire) != value)
        ;
}

static void *writer(void *user)
{
    for (int k = 0; k < TURNS; k++) {
        wait_for(2 * k + 1);
        memset(buffer, k + 1, sizeof buffer);
        atomic_store_explicit(&turn, 2 * k + 2, memory_order_release);
    }
    return user;
}

int main(void)
{
    double    spent = 0;
    long      sum = 0;
    pthread_t other;

    if (pthread_create(&other, NULL, writer, NULL))
        return 1;
    for (int k = 0; k < TURNS; k++) {
        atomic_store_explicit(&turn, 2 * k + 1, memory_order_release);
        wait_for(2 * k + 2);
        double start = seconds();
        for (size_t i = 0; i < sizeof buffer; i += LINE)
            sum += buffer[i];
        if (k >= TURNS / 4) /* the first turns wake the cores */
            spent += seconds() - start;
    }
    pthread_join(other, NULL);
    printf("%.1f\n", (double)BYTES * (TURNS - TURNS / 4) / spent * 1e-9 + (sum ? 0 : 1));
    return 0;
}
