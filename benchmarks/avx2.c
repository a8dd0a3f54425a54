/* libavx2.so, preloaded: `cpuid` tells this process of no AVX-512, AMX and AVX-VNNI, so that
 * engines that choose code by it take AVX2.  sweep.py uses it to compare code for haswell with
 * engines on one footing.
 *
 * Linux can make `cpuid` fault where the processor knows how (flag cpuid_fault in /proc/cpuinfo);
 * the handler of SIGSEGV then answers in its place.  Libraries that the loader has bound before
 * (libc) keep what they chose.  Elsewhere copies of the engines' libraries have `0f 04`, which is
 * no instruction, in the place of each `cpuid` (avx2.py), and the handler of SIGILL answers.  Other
 * faults end the process as ever. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    /* Leaf 7, subleaf 0. */
    NO_EBX = (int)(1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 |
                   1u << 31),
    NO_ECX = 1 << 1 | 1 << 6 | 1 << 11 | 1 << 12 | 1 << 14,
    NO_EDX = 1 << 2 | 1 << 3 | 1 << 8 | 1 << 22 | 1 << 23 | 1 << 24 | 1 << 25,
    /* Subleaf 1: AVX-VNNI, AVX512-BF16, AMX-FP16; AVX-VNNI-INT8, -INT16, AVX10. */
    NO_EAX_1 = 1 << 4 | 1 << 5 | 1 << 21,
    NO_EDX_1 = 1 << 4 | 1 << 10 | 1 << 19,
};

static int can_fault;

static void faults(unsigned long on)
{
    if (can_fault)
        syscall(SYS_arch_prctl, ARCH_SET_CPUID, !on);
}

static void answer(int number, siginfo_t *info, void *context)
{
    ucontext_t          *u = context;
    greg_t              *r = u->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)r[REG_RIP];
    unsigned             leaf = (unsigned)r[REG_RAX], sub = (unsigned)r[REG_RCX], a, b, c, d;

    /* A fault of `cpuid` has no address, so its place can be read; others may have jumped anywhere.
     * What is no instruction has been read. */
    if (number == SIGSEGV ? info->si_code != SI_KERNEL || at[0] != 0x0f || at[1] != 0xa2
                          : at[0] != 0x0f || at[1] != 0x04) {
        signal(number, SIG_DFL);
        return;
    }
    faults(0);
    __cpuid_count(leaf, sub, a, b, c, d);
    faults(1);
    if (leaf == 7 && sub == 0) {
        b &= ~(unsigned)NO_EBX;
        c &= ~(unsigned)NO_ECX;
        d &= ~(unsigned)NO_EDX;
    }
    if (leaf == 7 && sub == 1) {
        a &= ~(unsigned)NO_EAX_1;
        d &= ~(unsigned)NO_EDX_1;
    }
    r[REG_RAX] = a;
    r[REG_RBX] = b;
    r[REG_RCX] = c;
    r[REG_RDX] = d;
    r[REG_RIP] += 2;
}

__attribute__((constructor)) static void start(void)
{
    struct sigaction s;

    memset(&s, 0, sizeof s);
    s.sa_sigaction = answer;
    s.sa_flags = SA_SIGINFO | SA_NODEFER;
    can_fault = !syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
    if (sigaction(SIGILL, &s, NULL) || (can_fault && sigaction(SIGSEGV, &s, NULL)))
        _exit(1);
}
