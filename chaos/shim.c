/* What a program writes below one folder, recorded, so that a power loss can be acted out.
 *
 * Loaded with LD_PRELOAD; does nothing before chaos_arm. Every change below `root` is appended to a
 * journal after it was made:
 *
 *   record = op (u8), inode (u64), offset (u64), bytes of first text (u32), of second (u32), both
 *   op     = W write, T set length, C create, R rename, L link, U unlink, M mkdir, D rmdir, S sync
 *
 * `full_at`: from this write on, the disk is full. `chaos_set_clock`: seconds by which the clock of
 * this process is wrong. `power_loss.py` reads the journal.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static char root[PATH_MAX];
static size_t root_length;
static int journal = -1;
static long full_at = -1, writes;
static double wrong_by;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

void chaos_set_clock(double seconds) { wrong_by = seconds; }
void chaos_fill(void) { full_at = 0; }

int chaos_arm(const char *folder, const char *journal_path, long full) {
    strncpy(root, folder, sizeof root - 1);
    root_length = strlen(root);
    full_at = full;
    writes = 0;
    if (*journal_path) {
        journal = syscall(SYS_openat, AT_FDCWD, journal_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (journal < 0) return errno;
    }
    return 0;
}

static int is_inside(const char *path) {
    return root_length && !strncmp(path, root, root_length) && path[root_length] == '/';
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = 0;
    return is_inside(path);
}

static int path_at(int folder, const char *name, char *path) {
    char base[PATH_MAX] = "";
    if (!root_length) return 0;
    if (*name == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return is_inside(path);
    }
    if (folder == AT_FDCWD)
        syscall(SYS_getcwd, base, sizeof base);
    else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, base, sizeof base - 1);
        base[length > 0 ? length : 0] = 0;
    }
    size_t length = strlen(base);
    if (length + strlen(name) + 2 > PATH_MAX) return 0;
    memcpy(path, base, length);
    path[length] = '/';
    strcpy(path + length + 1, name);
    return is_inside(path);
}

static uint64_t inode_of(int fd) {
    struct stat facts;
    return fstat(fd, &facts) ? 0 : facts.st_ino;
}

static void record(char op, uint64_t inode, uint64_t offset, const void *first, uint32_t length,
                   const void *second, uint32_t other) {
    if (journal < 0) return;
    char head[25];
    head[0] = op;
    memcpy(head + 1, &inode, 8);
    memcpy(head + 9, &offset, 8);
    memcpy(head + 17, &length, 4);
    memcpy(head + 21, &other, 4);
    struct iovec parts[3] = {{head, sizeof head}, {(void *)first, length}, {(void *)second, other}};
    syscall(SYS_writev, journal, parts, 3);
}

static int is_full(void) { return full_at >= 0 && ++writes >= full_at; }

/* One write of any kind; `at` is -1 for the position of the file. */
static ssize_t write_parts(int fd, const struct iovec *parts, int count, off_t at) {
    char path[PATH_MAX];
    if (!root_length || fd == journal || !path_of(fd, path))
        return at < 0 ? syscall(SYS_writev, fd, parts, count)
                      : syscall(SYS_pwritev, fd, parts, count, at, 0);
    pthread_mutex_lock(&turn);
    if (is_full()) {
        pthread_mutex_unlock(&turn);
        errno = ENOSPC;
        return -1;
    }
    ssize_t done = at < 0 ? syscall(SYS_writev, fd, parts, count)
                          : syscall(SYS_pwritev, fd, parts, count, at, 0);
    int error = errno;
    if (done > 0) {
        off_t start = at < 0 ? syscall(SYS_lseek, fd, 0, SEEK_CUR) - done : at;
        ssize_t left = done;
        for (int k = 0; k < count && left > 0; k++) {
            ssize_t size = (ssize_t)parts[k].iov_len < left ? (ssize_t)parts[k].iov_len : left;
            record('W', inode_of(fd), start, parts[k].iov_base, size, "", 0);
            start += size;
            left -= size;
        }
    }
    pthread_mutex_unlock(&turn);
    errno = error;
    return done;
}

ssize_t write(int fd, const void *data, size_t size) {
    if (!root_length) return syscall(SYS_write, fd, data, size);
    struct iovec part = {(void *)data, size};
    return write_parts(fd, &part, 1, -1);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    struct iovec part = {(void *)data, size};
    return write_parts(fd, &part, 1, at);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) {
    return pwrite(fd, data, size, at);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    return write_parts(fd, parts, count, -1);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    return write_parts(fd, parts, count, at);
}
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at) {
    return write_parts(fd, parts, count, at);
}
ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t at, int flags) {
    (void)flags; /* hints only */
    return write_parts(fd, parts, count, at);
}
ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off_t at, int flags) {
    return pwritev2(fd, parts, count, at, flags);
}

/* Copies inside the kernel: refused, so that callers read and write instead. */
ssize_t sendfile(int to, int from, off_t *at, size_t size) {
    char path[PATH_MAX];
    if (root_length && path_of(to, path)) return errno = EINVAL, -1;
    return syscall(SYS_sendfile, to, from, at, size);
}
ssize_t sendfile64(int to, int from, off_t *at, size_t size) { return sendfile(to, from, at, size); }
ssize_t copy_file_range(int from, off_t *at, int to, off_t *into, size_t size, unsigned flags) {
    char path[PATH_MAX];
    if (root_length && path_of(to, path)) return errno = EINVAL, -1;
    return syscall(SYS_copy_file_range, from, at, to, into, size, flags);
}

int ftruncate(int fd, off_t size) {
    char path[PATH_MAX];
    if (!root_length || !path_of(fd, path)) return syscall(SYS_ftruncate, fd, size);
    pthread_mutex_lock(&turn);
    int failed = syscall(SYS_ftruncate, fd, size);
    if (!failed) record('T', inode_of(fd), size, "", 0, "", 0);
    pthread_mutex_unlock(&turn);
    return failed;
}
int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }

static int open_at(int folder, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    if (!(flags & (O_CREAT | O_TRUNC)) || !path_at(folder, name, path))
        return syscall(SYS_openat, folder, name, flags, mode);
    pthread_mutex_lock(&turn);
    struct stat facts;
    int is_new = stat(path, &facts) != 0;
    int fd = syscall(SYS_openat, folder, name, flags, mode);
    int error = errno;
    if (fd >= 0 && is_new && (flags & O_TMPFILE) != O_TMPFILE)
        record('C', inode_of(fd), 0, path, strlen(path), "", 0);
    else if (fd >= 0 && (flags & O_TRUNC))
        record('T', inode_of(fd), 0, "", 0, "", 0);
    pthread_mutex_unlock(&turn);
    errno = error;
    return fd;
}

#define MODE(flags)                                          \
    mode_t mode = 0;                                         \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                   \
        va_list rest;                                        \
        va_start(rest, flags);                               \
        mode = va_arg(rest, int);                            \
        va_end(rest);                                        \
    }
int open(const char *name, int flags, ...) { MODE(flags) return open_at(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE(flags) return open_at(AT_FDCWD, name, flags, mode); }
int openat(int folder, const char *name, int flags, ...) { MODE(flags) return open_at(folder, name, flags, mode); }
int openat64(int folder, const char *name, int flags, ...) { MODE(flags) return open_at(folder, name, flags, mode); }

/* A change of names: made by a system call, recorded if it succeeds below the root. */
#define CHANGE_OF_NAMES(op, call, at, name, other_at, other_name)                             \
    char path[PATH_MAX] = "", other[PATH_MAX] = "";                                           \
    int is_first = path_at(at, name, path), is_second = path_at(other_at, other_name, other); \
    if (!is_first && !is_second) return call;                                                 \
    pthread_mutex_lock(&turn);                                                                \
    int failed = call, error = errno;                                                         \
    if (!failed) record(op, 0, 0, path, strlen(path), other, strlen(other));                  \
    pthread_mutex_unlock(&turn);                                                              \
    errno = error;                                                                            \
    return failed;

int renameat2(int at, const char *name, int to, const char *target, unsigned flags) {
    CHANGE_OF_NAMES('R', syscall(SYS_renameat2, at, name, to, target, flags), at, name, to, target)
}
int renameat(int at, const char *name, int to, const char *target) { return renameat2(at, name, to, target, 0); }
int rename(const char *name, const char *target) { return renameat2(AT_FDCWD, name, AT_FDCWD, target, 0); }
int linkat(int at, const char *name, int to, const char *target, int flags) {
    CHANGE_OF_NAMES('L', syscall(SYS_linkat, at, name, to, target, flags), at, name, to, target)
}
int link(const char *name, const char *target) { return linkat(AT_FDCWD, name, AT_FDCWD, target, 0); }
int unlinkat(int at, const char *name, int flags) {
    CHANGE_OF_NAMES(flags & AT_REMOVEDIR ? 'D' : 'U', syscall(SYS_unlinkat, at, name, flags), at, name, at, name)
}
int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }
int mkdirat(int at, const char *name, mode_t mode) {
    CHANGE_OF_NAMES('M', syscall(SYS_mkdirat, at, name, mode), at, name, at, name)
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

static int sync_file(int fd, long number) {
    char path[PATH_MAX];
    if (!root_length) return syscall(number, fd);
    int is_ours = path_of(fd, path) || !strcmp(path, root);
    if (!is_ours) return syscall(number, fd);
    pthread_mutex_lock(&turn);
    record('S', inode_of(fd), 0, "", 0, "", 0); /* nothing to wait for: the machine stays on */
    pthread_mutex_unlock(&turn);
    return 0;
}
int fsync(int fd) { return sync_file(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_file(fd, SYS_fdatasync); }

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += (time_t)wrong_by;
    return failed;
}
int gettimeofday(struct timeval *now, void *zone) {
    (void)zone;
    struct timespec precise;
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return failed;
}
time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}
