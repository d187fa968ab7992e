/* Makes the file system fail on purpose, preloaded into a test process.
 *
 * KVFAULT_DIR names a directory. While a file `sync-fails` is in it, fsync and fdatasync fail with
 * EIO; while `disk-full` is in it, write and writev fail with ENOSPC, except on the standard
 * streams; while `tables-fail` is in it, files below a folder `tables` cannot be opened: EMFILE.
 * KVFAULT_SYNC_AFTER=n makes every sync after the first n fail. KVFAULT_SYNC_DELAY_US makes each
 * sync that much slower. KVFAULT_CLOCK_STEP_S moves the clock of the machine by so many seconds, as
 * the process sees it; a file `clock-step` in KVFAULT_DIR, which holds a number of seconds, moves it
 * while the process runs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static atomic_long syncs;

static int armed(const char *name) {
    const char *directory = getenv("KVFAULT_DIR");
    char path[4096];
    if (!directory) return 0;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

static long number(const char *name, long otherwise) {
    const char *value = getenv(name);
    return value ? atol(value) : otherwise;
}

/* The number in a file of KVFAULT_DIR; 0 without it. */
static long number_in(const char *name) {
    const char *directory = getenv("KVFAULT_DIR");
    char path[4096], text[32] = "";
    if (!directory) return 0;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    return length > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int outcome = (int)syscall(SYS_clock_gettime, clock, time);
    if (clock == CLOCK_REALTIME && outcome == 0)
        time->tv_sec += number("KVFAULT_CLOCK_STEP_S", 0) + number_in("clock-step");
    return outcome;
}

static int sync_fails(void) {
    long done = atomic_fetch_add(&syncs, 1);
    long delay = number("KVFAULT_SYNC_DELAY_US", 0);
    long after = number("KVFAULT_SYNC_AFTER", -1);
    if (delay > 0) usleep((useconds_t)delay);
    if ((after >= 0 && done >= after) || armed("sync-fails")) {
        errno = EIO;
        return 1;
    }
    return 0;
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return sync_fails() ? -1 : real(fd);
}

int fsync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return sync_fails() ? -1 : real(fd);
}

int open64(const char *path, int flags, ...) {
    static int (*real)(const char *, int, ...);
    if (!real) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    va_list rest;
    va_start(rest, flags);
    int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, int) : 0;
    va_end(rest);
    if (strstr(path, "/tables/") && armed("tables-fail")) {
        errno = EMFILE;
        return -1;
    }
    return real(path, flags, mode);
}

static int is_full(int fd) {
    if (fd <= 2 || !armed("disk-full")) return 0;
    errno = ENOSPC;
    return 1;
}

ssize_t write(int fd, const void *bytes, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    return is_full(fd) ? -1 : real(fd, bytes, count);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    static ssize_t (*real)(int, const struct iovec *, int);
    if (!real) real = (ssize_t (*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev");
    return is_full(fd) ? -1 : real(fd, parts, count);
}
