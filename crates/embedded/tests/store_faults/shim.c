// Stands between a test's child process and the system (LD_PRELOAD): notes every call that changes files below
// SHIM_ROOT in SHIM_TRACE, and makes one of them fail, as SHIM_FAULT says: "class index kind".
//
// A class is what is done and to what, such as "fsync rows". Kinds: 0 nothing is done and EIO is answered; 1 half of
// it is done (a write) or all of it, and EIO is answered; 2 as 0, and every later sync fails as well; 3 as 0, and every
// later call fails as well; 4 the process is killed before it; 5 as 0, and the next call of its class fails as well.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FDS 1024
#define CLASSES 128
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static char paths[FDS][512];
static char draft[512];
static struct { char name[64]; int seen; } classes[CLASSES];
static const char *root;
static FILE *trace;
static char fault_class[64];
static int fault_index = -1, fault_kind, broken;

#define REAL(ret, name, ...) static ret (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
    root = getenv("SHIM_ROOT");
    if (getenv("SHIM_TRACE")) trace = fopen(getenv("SHIM_TRACE"), "ae");
    if (getenv("SHIM_FAULT")) sscanf(getenv("SHIM_FAULT"), "%63[^,],%d,%d", fault_class, &fault_index, &fault_kind);
}

// What a path is, or NULL if it is none of ours.
static const char *what(const char *path) {
    size_t n = root ? strlen(root) : 0;
    if (!n || strncmp(path, root, n)) return NULL;
    const char *p = path + n;
    if (*p == '/') p++;
    if (!*p) return "root";
    if (!strcmp(p, "log") || !strcmp(p, "rows")) return p;
    if (!strcmp(p, "rows/tables")) return "tables";
    if (!strncmp(p, "log/spare", 9)) return "spare";
    if (!strncmp(p, "log/", 4)) return "segment";
    if (!strncmp(p, "rows/tables/", 12)) return "table";
    if (!strncmp(p, "rows/v", 6)) return "list";
    if (!strncmp(p, "rows/", 5)) return "current";
    return "file";
}

static void note(const char *format, ...) {
    if (!trace) return;
    va_list args;
    va_start(args, format);
    vfprintf(trace, format, args);
    va_end(args);
    fputc('\n', trace);
    fflush(trace);
}

// The library that keeps the tables renames its draft of `current` by a system call of its own.
static void notice_rename(void) {
    struct stat now;
    if (!*draft || !stat(draft, &now)) return;
    char to[512];
    strcpy(to, draft);
    strcpy(strrchr(to, '/') + 1, "current");
    if (!stat(to, &now)) note("rename\t%s\t%s", draft, to);
    *draft = 0;
}

// Counts a call. 0: go on; otherwise 1 + the kind of fault.
static int at(const char *verb, const char *path) {
    const char *to = what(path);
    if (!to) return 0;
    notice_rename();
    char name[64];
    snprintf(name, sizeof name, "%s %s", verb, to);
    int i = 0;
    while (i < CLASSES - 1 && *classes[i].name && strcmp(classes[i].name, name)) i++;
    strcpy(classes[i].name, name);
    note("class\t%s", name);
    if (broken == 3 || (broken == 2 && !strcmp(verb, "sync"))) return 1;
    if (strcmp(name, fault_class)) return 0;
    int later = classes[i].seen++ - fault_index;
    if (later != 0 && !(fault_kind == 5 && later == 1)) return 0;
    if (fault_kind == 4) raise(SIGKILL);
    broken = fault_kind;
    note("fault");
    return fault_kind == 1 ? 2 : 1;
}

static int fail(void) { errno = EIO; return -1; }

static int opened(int fd, const char *path, int flags, int existed) {
    if (fd < 0 || fd >= FDS) return fd;
    paths[fd][0] = 0;
    if (!what(path)) return fd;
    snprintf(paths[fd], sizeof paths[fd], "%s", path);
    if (strstr(path, "/rows/.tmp")) strcpy(draft, path);
    note("open\t%d\t%s\t%s", fd, path, !existed ? "new" : flags & O_TRUNC ? "cut" : "old");
    return fd;
}

#define OPEN(name)                                                                                                 \
    int name(const char *path, int flags, ...) {                                                                   \
        REAL(int, name, const char *, int, ...);                                                                   \
        va_list args; va_start(args, flags);                                                                       \
        int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, int) : 0; va_end(args);                          \
        if (!what(path)) { int fd = real(path, flags, mode); return opened(fd, path, flags, 1); }                  \
        pthread_mutex_lock(&lock);                                                                                 \
        struct stat there; int existed = !stat(path, &there);                                                      \
        int fault = at("open", path), fd = -1;                                                                     \
        if (fault != 1) fd = opened(real(path, flags, mode), path, flags, existed);                                \
        if (fault == 2 && fd >= 0) { close(fd); fd = -1; }                                                         \
        int why = fault ? EIO : errno; pthread_mutex_unlock(&lock); errno = why; return fd;                        \
    }
OPEN(open)
OPEN(open64)

static const char *path_of(int fd) { return fd >= 0 && fd < FDS && *paths[fd] ? paths[fd] : ""; }

static void note_write(int fd, const char *bytes, ssize_t n, long offset) {
    if (!trace || n <= 0) return;
    fprintf(trace, "write\t%d\t%ld\t", fd, offset);
    for (ssize_t i = 0; i < n; i++) fprintf(trace, "%02x", (unsigned char)bytes[i]);
    note("");
}

ssize_t write(int fd, const void *bytes, size_t n) {
    REAL(ssize_t, write, int, const void *, size_t);
    if (fd == 1 && trace) { pthread_mutex_lock(&lock); notice_rename(); note("print\t%.*s", (int)n, (char *)bytes); pthread_mutex_unlock(&lock); }
    if (!*path_of(fd)) return real(fd, bytes, n);
    pthread_mutex_lock(&lock);
    long offset = lseek(fd, 0, SEEK_CUR);
    int fault = at("write", path_of(fd));
    ssize_t done = fault == 1 ? -1 : real(fd, bytes, fault ? n / 2 : n);
    note_write(fd, bytes, done, offset);
    pthread_mutex_unlock(&lock);
    return fault ? fail() : done;
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t offset) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    if (!*path_of(fd)) return real(fd, bytes, n, offset);
    pthread_mutex_lock(&lock);
    int fault = at("write", path_of(fd));
    ssize_t done = fault == 1 ? -1 : real(fd, bytes, fault ? n / 2 : n, offset);
    note_write(fd, bytes, done, offset);
    pthread_mutex_unlock(&lock);
    return fault ? fail() : done;
}

int ftruncate64(int fd, off64_t length) {
    REAL(int, ftruncate64, int, off64_t);
    if (!*path_of(fd)) return real(fd, length);
    pthread_mutex_lock(&lock);
    int fault = at("truncate", path_of(fd)), done = fault == 1 ? -1 : real(fd, length);
    if (!done) note("truncate\t%d\t%ld", fd, (long)length);
    pthread_mutex_unlock(&lock);
    return fault ? fail() : done;
}

#define SYNC(name)                                                                                                 \
    int name(int fd) {                                                                                             \
        REAL(int, name, int);                                                                                      \
        if (!*path_of(fd)) return real(fd);                                                                        \
        pthread_mutex_lock(&lock);                                                                                 \
        int fault = at("sync", path_of(fd));                                                                       \
        if (!fault) note("sync\t%d", fd);                                                                          \
        pthread_mutex_unlock(&lock);                                                                               \
        return fault ? fail() : 0;                                                                                 \
    }
SYNC(fsync)
SYNC(fdatasync)

int rename(const char *from, const char *to) {
    REAL(int, rename, const char *, const char *);
    pthread_mutex_lock(&lock);
    int fault = at("rename", to), done = fault == 1 ? -1 : real(from, to);
    if (!done && what(to)) {
        note("rename\t%s\t%s", from, to);
        for (int fd = 0; fd < FDS; fd++) if (!strcmp(paths[fd], from)) strcpy(paths[fd], to);
    }
    int why = fault ? EIO : errno; pthread_mutex_unlock(&lock); errno = why;
    return fault ? -1 : done;
}

#define NAME(name, verb, params, args)                                                                             \
    int name params {                                                                                              \
        REAL(int, name, const char *, mode_t);                                                                     \
        pthread_mutex_lock(&lock);                                                                                 \
        int fault = at(verb, path), done = fault == 1 ? -1 : real args;                                            \
        if (!done && what(path)) note("%s\t%s", verb, path);                                                       \
        if (!done && !strcmp(path, draft)) *draft = 0;                                                             \
        int why = fault ? EIO : errno; pthread_mutex_unlock(&lock); errno = why;                                   \
        return fault ? -1 : done;                                                                                  \
    }
NAME(unlink, "unlink", (const char *path), (path, 0))
NAME(mkdir, "mkdir", (const char *path, mode_t mode), (path, mode))
