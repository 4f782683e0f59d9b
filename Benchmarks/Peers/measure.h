/* How the peers measure: as the host is measured. Median of nine repetitions of about thirty milliseconds each. */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define REPETITIONS 9

static double now(void) { /* nanoseconds */
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static double median(double *times, int count) {
    qsort(times, count, sizeof *times, compare);
    return times[count / 2];
}

/* A line that scripts/bench reads: work, name, size or "-", value. */
static void tell(const char *work, const char *name, int size, double value) {
    if (size > 0)
        printf("%s\t%s\t%d\t%g\n", work, name, size, value);
    else
        printf("%s\t%s\t-\t%g\n", work, name, value);
    fflush(stdout);
}

/* Measures `body`, which does the work `count` times, and tells the nanoseconds of one. */
static void measure(const char *work, const char *name, int size, int share, void (*body)(long count, void *data),
                    void *data) {
    long count = 1;
    for (;;) {
        double start = now();
        body(count, data);
        double time = now() - start;
        if (time >= 7.5e6) {
            count = (long)(count * 3e7 / time) + 1;
            break;
        }
        count *= 2;
    }
    double times[REPETITIONS];
    for (int i = 0; i < REPETITIONS; i++) {
        double start = now();
        body(count, data);
        times[i] = (now() - start) / count / share;
    }
    tell(work, name, size, median(times, REPETITIONS));
}

#endif
