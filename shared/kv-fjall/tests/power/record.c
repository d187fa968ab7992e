/* Records what a process does to the files of one directory, preloaded into it.
 *
 * A seccomp filter traps the system calls that change files, whoever makes them: the C library, or code that makes
 * system calls of its own and that no wrapper of a library function would see. The handler performs the call and
 * appends a record to the trace, both under one lock, so that the order of the trace is the order of effects. Of a
 * sync the beginning and the end are recorded: what was written before the beginning is durable at the end.
 *
 * POWER_ROOT    absolute path of the directory, without symbolic links
 * POWER_TRACE   file that records are appended to; without it nothing is recorded, and the rest applies
 * POWER_FAIL    the number of the fdatasync that fails with EIO, from 1; the calls before and after it do not fail
 * POWER_SYNC_US microseconds that each sync takes longer
 * POWER_JOURNAL bytes after which the database finds a journal full, instead of 64 MB: who writes one and asks for its
 *               position gets so much more
 *
 * What is written to standard output is recorded too: that is how the process says what it acknowledged.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/* The only system calls that the filter lets pass are those made here. */
long power_call(long number, long a, long b, long c, long d, long e);
extern const char power_called[];

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
__asm__(".text\n.globl power_call\n.hidden power_call\n.globl power_called\n.hidden power_called\n"
        "power_call:\n mov %rdi, %rax\n mov %rsi, %rdi\n mov %rdx, %rsi\n mov %rcx, %rdx\n"
        " mov %r8, %r10\n mov %r9, %r8\n xor %r9d, %r9d\n syscall\npower_called:\n ret\n");
#define ARGUMENT(context, n) ((context)->uc_mcontext.gregs[(const int[]){                                              \
    REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8}[n]])
#define RESULT(context) ((context)->uc_mcontext.gregs[REG_RAX])
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
__asm__(".text\n.globl power_call\n.hidden power_call\n.globl power_called\n.hidden power_called\n"
        "power_call:\n mov x8, x0\n mov x0, x1\n mov x1, x2\n mov x2, x3\n mov x3, x4\n mov x4, x5\n"
        " svc 0\npower_called:\n ret\n");
#define ARGUMENT(context, n) ((context)->uc_mcontext.regs[n])
#define RESULT(context) ((context)->uc_mcontext.regs[0])
#else
#error "no system calls are trapped on this processor"
#endif

#define PATH 4096

/* One record, followed by `name`, `other` and `bytes` bytes. */
struct record {
    uint8_t kind, failed;
    uint16_t none;
    uint32_t name, other, bytes;
    uint64_t inode, at;
};

static int trace = -1;
static char root[PATH];
static size_t root_length;
static long fail_at, sync_us, journal_bytes;

/* The position from which on the database seals a journal. */
#define JOURNAL_FULL 64000000L
static atomic_long syncs;
static atomic_flag busy = ATOMIC_FLAG_INIT;

static void lock(void) {
    while (atomic_flag_test_and_set(&busy)) power_call(SYS_sched_yield, 0, 0, 0, 0, 0);
}

static void unlock(void) { atomic_flag_clear(&busy); }

/* Ends the process with a code that the test reports; such a run must not count. */
static void give_up(const char *why, long number) {
    char text[256];
    int length = snprintf(text, sizeof text, "cannot record: %s: %ld\n", why, number);
    power_call(SYS_write, 2, (long)text, length, 0, 0);
    power_call(SYS_exit_group, 70, 0, 0, 0, 0);
}

static void append(char kind, int failed, const char *name, const char *other, uint64_t inode, uint64_t at,
                   const void *bytes, size_t count) {
    if (trace < 0) return;
    struct record record = {kind, failed != 0, 0, name ? strlen(name) : 0, other ? strlen(other) : 0, count, inode, at};
    struct iovec parts[4] = {
        {&record, sizeof record}, {(void *)name, record.name}, {(void *)other, record.other}, {(void *)bytes, count}};
    long size = (long)(sizeof record + record.name + record.other + count);
    if (power_call(SYS_writev, trace, (long)parts, 4, 0, 0) != size) give_up("the trace cannot be written", size);
}

static int is_inside(const char *path) {
    return strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || path[root_length] == 0);
}

/* The path of a descriptor; whether it is inside of the root. */
static int path_of(long fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%ld", fd);
    long length = power_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)path, PATH - 1, 0);
    if (length < 0) return 0;
    path[length] = 0;
    return is_inside(path);
}

/* The absolute path of a name below a descriptor; whether it is inside of the root. */
static int resolve(long directory, const char *name, char *path) {
    if (name[0] == '/') {
        snprintf(path, PATH, "%s", name);
        return is_inside(path);
    }
    char above[PATH];
    if ((int)directory == AT_FDCWD || !path_of(directory, above)) return 0;
    snprintf(path, PATH, "%.2000s/%.2000s", above, name);
    return 1;
}

/* What is below the root is recorded without it. */
static const char *below(const char *path) { return path[root_length] ? path + root_length + 1 : ""; }

static uint64_t inode_of(long fd, uint64_t *size) {
    struct stat stat;
    if (power_call(SYS_fstat, fd, (long)&stat, 0, 0, 0) != 0) give_up("fstat", fd);
    if (size) *size = stat.st_size;
    return stat.st_ino;
}

#define DESCRIPTORS 4096
/* Descriptors that were opened to make a file or to append to it: not those of recovery, which reads too. */
static uint8_t is_writer[DESCRIPTORS];

static long do_open(long directory, const char *name, long flags, long mode) {
    char path[PATH];
    long is_new = 0;
    int inside = resolve(directory, name, path);
    if (inside && (flags & O_CREAT)) is_new = power_call(SYS_faccessat, AT_FDCWD, (long)path, F_OK, 0, 0) != 0;
    long fd = power_call(SYS_openat, directory, (long)name, flags, mode, 0);
    if (fd >= 0 && fd < DESCRIPTORS) is_writer[fd] = inside && (is_new || (flags & O_APPEND));
    if (!inside || fd < 0) return fd;
    if (is_new) append('C', 0, below(path), NULL, inode_of(fd, NULL), 0, NULL, 0);
    else if (flags & O_TRUNC) append('T', 0, NULL, NULL, inode_of(fd, NULL), 0, NULL, 0);
    return fd;
}

static long do_write(long fd, const void *bytes, long count, long at) {
    char path[PATH];
    if (fd == 1) append('A', 0, NULL, NULL, 0, 0, bytes, count);
    if (fd <= 2 || !path_of(fd, path)) {
        return at < 0 ? power_call(SYS_write, fd, (long)bytes, count, 0, 0)
                      : power_call(SYS_pwrite64, fd, (long)bytes, count, at, 0);
    }
    uint64_t size, inode = inode_of(fd, &size);
    long place = at, written;
    if (at < 0) {
        int appends = power_call(SYS_fcntl, fd, F_GETFL, 0, 0, 0) & O_APPEND;
        place = appends ? (long)size : power_call(SYS_lseek, fd, 0, SEEK_CUR, 0, 0);
        written = power_call(SYS_write, fd, (long)bytes, count, 0, 0);
    } else {
        written = power_call(SYS_pwrite64, fd, (long)bytes, count, at, 0);
    }
    if (written > 0) append('W', 0, NULL, NULL, inode, place, bytes, written);
    return written;
}

static long do_writev(long fd, const struct iovec *parts, long count) {
    long total = 0;
    for (long part = 0; part < count; part++) {
        long written = do_write(fd, parts[part].iov_base, (long)parts[part].iov_len, -1);
        if (written < 0) return total ? total : written;
        total += written;
        if (written < (long)parts[part].iov_len) break;
    }
    return total;
}

static long do_seek(long fd, long offset, long whence) {
    char path[PATH];
    long at = power_call(SYS_lseek, fd, offset, whence, 0, 0);
    if (at < 0 || !journal_bytes || whence != SEEK_CUR || offset != 0 || !path_of(fd, path)) return at;
    size_t length = strlen(path);
    int is_journal = length > 4 && strcmp(path + length - 4, ".jnl") == 0;
    return is_journal && fd < DESCRIPTORS && is_writer[fd] ? at + JOURNAL_FULL - journal_bytes : at;
}

static long do_truncate(long fd, long length) {
    char path[PATH];
    long outcome = power_call(SYS_ftruncate, fd, length, 0, 0, 0);
    if (outcome == 0 && path_of(fd, path)) append('T', 0, NULL, NULL, inode_of(fd, NULL), length, NULL, 0);
    return outcome;
}

static long do_rename(long from, const char *name, long to, const char *other, long flags) {
    char old[PATH], new[PATH];
    int inside = resolve(from, name, old);
    if (inside != resolve(to, other, new)) give_up("a rename into or out of the directory", 0);
    if (inside && flags & ~1L) give_up("flags of a rename", flags);
    long outcome = power_call(SYS_renameat2, from, (long)name, to, (long)other, flags);
    if (inside && outcome == 0) append('R', 0, below(old), below(new), 0, 0, NULL, 0);
    return outcome;
}

static long do_unlink(long directory, const char *name, long flags) {
    char path[PATH];
    int inside = resolve(directory, name, path);
    long outcome = power_call(SYS_unlinkat, directory, (long)name, flags, 0, 0);
    if (inside && outcome == 0) append('U', 0, below(path), NULL, 0, 0, NULL, 0);
    return outcome;
}

static long do_mkdir(long directory, const char *name, long mode) {
    char path[PATH];
    int inside = resolve(directory, name, path);
    long outcome = power_call(SYS_mkdirat, directory, (long)name, mode, 0, 0);
    struct stat stat;
    if (!inside || outcome != 0) return outcome;
    if (power_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)&stat, 0, 0) != 0) give_up("stat of a directory", 0);
    append('D', 0, below(path), NULL, stat.st_ino, 0, NULL, 0);
    return outcome;
}

/* Takes the lock only for the records: others go on while a disk syncs. */
static long do_sync(long number, long fd) {
    char path[PATH];
    if (!path_of(fd, path)) return power_call(number, fd, 0, 0, 0, 0);
    uint64_t inode = inode_of(fd, NULL);
    int fails = number == SYS_fdatasync && atomic_fetch_add(&syncs, 1) + 1 == fail_at;
    lock();
    append('B', 0, NULL, NULL, inode, 0, NULL, 0);
    unlock();
    struct timespec delay = {0, sync_us * 1000};
    if (sync_us) power_call(SYS_nanosleep, (long)&delay, 0, 0, 0, 0);
    long outcome = fails ? -EIO : power_call(number, fd, 0, 0, 0, 0);
    lock();
    append('E', outcome != 0, NULL, NULL, inode, 0, NULL, 0);
    unlock();
    return outcome;
}

static long perform(long number, ucontext_t *context) {
    long a = ARGUMENT(context, 0), b = ARGUMENT(context, 1), c = ARGUMENT(context, 2), d = ARGUMENT(context, 3),
         e = ARGUMENT(context, 4);
    switch (number) {
#if defined(__x86_64__)
    case SYS_open: return do_open(AT_FDCWD, (const char *)a, b, c);
    case SYS_creat: return do_open(AT_FDCWD, (const char *)a, O_CREAT | O_WRONLY | O_TRUNC, b);
    case SYS_rename: return do_rename(AT_FDCWD, (const char *)a, AT_FDCWD, (const char *)b, 0);
    case SYS_unlink: return do_unlink(AT_FDCWD, (const char *)a, 0);
    case SYS_rmdir: return do_unlink(AT_FDCWD, (const char *)a, AT_REMOVEDIR);
    case SYS_mkdir: return do_mkdir(AT_FDCWD, (const char *)a, b);
#endif
    case SYS_openat: return do_open(a, (const char *)b, c, d);
    case SYS_write: return do_write(a, (const void *)b, c, -1);
    case SYS_pwrite64: return do_write(a, (const void *)b, c, d);
    case SYS_writev: return do_writev(a, (const struct iovec *)b, c);
    case SYS_lseek: return do_seek(a, b, c);
    case SYS_ftruncate: return do_truncate(a, b);
    case SYS_renameat: return do_rename(a, (const char *)b, c, (const char *)d, 0);
    case SYS_renameat2: return do_rename(a, (const char *)b, c, (const char *)d, e);
    case SYS_unlinkat: return do_unlink(a, (const char *)b, c);
    case SYS_mkdirat: return do_mkdir(a, (const char *)b, c);
    /* Under the lock, so that no thread has changed a file and not recorded it. */
    case SYS_exit_group: return power_call(SYS_exit_group, a, 0, 0, 0, 0);
    default: give_up("a system call that the model of a disk does not have", number);
    }
    return -ENOSYS;
}

static void on_trap(int signal, siginfo_t *info, void *context) {
    (void)signal;
    long number = info->si_syscall;
    if (number == SYS_fsync || number == SYS_fdatasync) {
        RESULT((ucontext_t *)context) = do_sync(number, ARGUMENT((ucontext_t *)context, 0));
        return;
    }
    lock();
    long outcome = perform(number, context);
    unlock();
    RESULT((ucontext_t *)context) = outcome;
}

static const int TRAPPED[] = {
#if defined(__x86_64__)
    SYS_open, SYS_creat, SYS_rename, SYS_unlink, SYS_rmdir, SYS_mkdir, SYS_link, SYS_symlink,
#endif
    SYS_openat, SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev, SYS_pwritev2, SYS_ftruncate, SYS_truncate,
    SYS_renameat, SYS_renameat2, SYS_unlinkat, SYS_mkdirat, SYS_linkat, SYS_symlinkat, SYS_fsync, SYS_fdatasync,
    SYS_fallocate, SYS_copy_file_range, SYS_msync, SYS_lseek,
    SYS_exit_group,
};
#define TRAPPED_COUNT (sizeof TRAPPED / sizeof *TRAPPED)

static void install_filter(void) {
    struct sock_filter filter[TRAPPED_COUNT + 12], *next = filter;
    uint64_t ours = (uint64_t)power_called;
#define LOAD(field) (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(value, skip) (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define RETURN(action) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, action)
    *next++ = LOAD(arch);
    *next++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    *next++ = RETURN(SECCOMP_RET_ALLOW);
    *next++ = LOAD(instruction_pointer);
    *next++ = UNLESS((uint32_t)ours, 3);
    *next++ = (struct sock_filter)BPF_STMT(
        BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4);
    *next++ = UNLESS((uint32_t)(ours >> 32), 1);
    *next++ = RETURN(SECCOMP_RET_ALLOW);
    *next++ = LOAD(nr);
    for (size_t call = 0; call < TRAPPED_COUNT; call++) {
        uint8_t skip = TRAPPED_COUNT - call;
        *next++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TRAPPED[call], skip, 0);
    }
    *next++ = RETURN(SECCOMP_RET_ALLOW);
    *next++ = RETURN(SECCOMP_RET_TRAP);
    struct sock_fprog program = {next - filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        give_up("no seccomp filter", errno);
}

static long number_in(const char *name) {
    const char *value = getenv(name);
    return value ? atol(value) : 0;
}

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("POWER_TRACE"), *directory = getenv("POWER_ROOT");
    if (!directory) return;
    if (path) {
        trace = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (trace < 0) give_up("the trace cannot be opened", errno);
    }
    snprintf(root, sizeof root, "%s", directory);
    root_length = strlen(root);
    fail_at = number_in("POWER_FAIL");
    sync_us = number_in("POWER_SYNC_US");
    journal_bytes = number_in("POWER_JOURNAL");
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigfillset(&action.sa_mask);
    if (sigaction(SIGSYS, &action, NULL)) give_up("no handler", errno);
    install_filter();
}
