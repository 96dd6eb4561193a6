/* A clock that can be set: loaded before libc, it adds to the time of day what stands in the file that LADDER_CHAOS_CLOCK
 * names (eight bytes, seconds). The monotonic clock and every wait stay as they are, as on a machine whose time of day is
 * set. (libfaketime also answers for sleeps, and lets Python's fail now and then.) */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t no_shift = 0;
static const volatile int64_t *shift_s = &no_shift;

__attribute__((constructor)) static void open_clock(void) {
    const char *path = getenv("LADDER_CHAOS_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) {
        return;
    }
    void *page = mmap(NULL, sizeof *shift_s, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (page != MAP_FAILED) {
        shift_s = page;
    }
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = (int)syscall(SYS_clock_gettime, clock, now);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        now->tv_sec += *shift_s;
    }
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    int status = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return status;
}

time_t time(time_t *out) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (out) {
        *out = exact.tv_sec;
    }
    return exact.tv_sec;
}
