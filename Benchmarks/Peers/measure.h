/* The protocol of the peers: they report work that can be done only once, and offer other work, which they do on
 * request. */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) { /* nanoseconds */
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

/* Prints a line that scripts/bench reads: work, name, size or, if it is 0, `-`, and value. */
static void tell(const char *work, const char *name, int size, double value) {
    if (size > 0) {
        printf("%s\t%s\t%d\t%g\n", work, name, size, value);
    } else {
        printf("%s\t%s\t-\t%g\n", work, name, value);
    }
    fflush(stdout);
}

static struct {
    void (*body)(long count, void *data);
    void *data;
} jobs[16];
static int job_count;

/* Offers `body`, which does the work `count` times. 0 means that the work has no size. */
static void offer(const char *work, const char *name, int size, void (*body)(long count, void *data), void *data) {
    if (size)
        printf("%s\t%s\t%d\n", work, name, size);
    else
        printf("%s\t%s\t-\n", work, name);
    jobs[job_count].body = body;
    jobs[job_count++].data = data;
}

/* Executes requests "NUMBER COUNT", and answers each with an empty line, until the input ends. */
static int serve(void) {
    int number;
    long count;
    puts("");
    fflush(stdout);
    while (scanf("%d %ld", &number, &count) == 2 && number >= 0 && number < job_count) {
        jobs[number].body(count, jobs[number].data);
        puts("");
        fflush(stdout);
    }
    return 0;
}

#endif
