/* A plugin of qemu-user that counts the instructions of the guest between two marks.  A mark is the
 * system call sched_get_priority_max(MARK + k), which fails and does nothing else; of two with one
 * k the second prints "instructions <k> <count>" to standard error.  See instructions.py.
 *
 * Declared here is the little of QEMU's plugin interface (version 1) that is used, as
 * https://www.qemu.org/docs/master/devel/tcg-plugins.html gives it. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

enum { MARK = 0x40000000, SCHED_GET_PRIORITY_MAX = 125 /* of aarch64 */, ADD_U64 = 0 };

typedef uint64_t Id;
struct qemu_plugin_tb;
typedef void Translated(Id, struct qemu_plugin_tb *);
typedef void Called(Id, unsigned, int64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                    uint64_t, uint64_t, uint64_t);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
void   qemu_plugin_register_vcpu_tb_trans_cb(Id id, Translated *call);
void   qemu_plugin_register_vcpu_syscall_cb(Id id, Called *call);
void   qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int op, void *at,
                                                uint64_t n);
int    qemu_plugin_install(Id id, const void *info, int argc, char **argv);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static uint64_t count, begun, of;

static void translated(Id id, struct qemu_plugin_tb *tb)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD_U64, &count, qemu_plugin_tb_n_insns(tb));
}

static void called(Id id, unsigned cpu, int64_t number, uint64_t mark, uint64_t a2, uint64_t a3,
                   uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    (void)id, (void)cpu, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (number != SCHED_GET_PRIORITY_MAX || mark < MARK)
        return;
    if (of == mark)
        fprintf(stderr, "instructions %" PRIu64 " %" PRIu64 "\n", mark - MARK, count - begun);
    of = of == mark ? 0 : mark;
    begun = count;
}

__attribute__((visibility("default"))) int qemu_plugin_install(Id id, const void *info, int argc,
                                                               char **argv)
{
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, called);
    return 0;
}
