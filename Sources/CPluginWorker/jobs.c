#include "worker.h"

#include <stdlib.h>

/* A message that waits for a thread. */
typedef struct job {
    plugin_wire_message message;
    struct job *next;
} job;

/* The worker has as many threads as the host has for code of modules that may block. The memory limit includes their
 * stacks. */
enum { THREADS_MAX = 512, STACK_BYTES = 1 << 20 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t is_wanted;
    job *first, *last;
    uint32_t threads, idle;
} jobs = {.lock = PTHREAD_MUTEX_INITIALIZER, .is_wanted = PTHREAD_COND_INITIALIZER};

void plugin_worker_run(plugin_wire_message *message) {
    switch (message->kind) {
    case PLUGIN_WIRE_COMPLETE: {
        plugin_worker_pending pending = *(plugin_worker_pending *)(uintptr_t)message->a;
        free((void *)(uintptr_t)message->a);
        plugin_worker_pass_outcome(message, pending.completion, pending.data);
        break;
    }
    case PLUGIN_WIRE_CANCELLED: {
        plugin_worker_handler handler = *(plugin_worker_handler *)(uintptr_t)message->a;
        free((void *)(uintptr_t)message->a);
        handler.handler(handler.data, (int32_t)message->b);
        break;
    }
    case PLUGIN_WIRE_DESTROY: {
        plugin_worker_object object = *(plugin_worker_object *)(uintptr_t)message->a;
        free((void *)(uintptr_t)message->a);
        if (object.destroy) object.destroy(object.instance);
        break;
    }
    case PLUGIN_WIRE_UNMAKE: plugin_worker_unmake(message); break;
    default: plugin_worker_give_up("the host has sent an unknown message");
    }
    plugin_wire_dispose(message);
}

static void *work(void *argument) {
    (void)argument;
    plugin_worker_add_signal_stack();
    pthread_mutex_lock(&jobs.lock);
    for (;;) {
        job *next = jobs.first;
        if (!next) {
            jobs.idle++;
            pthread_cond_wait(&jobs.is_wanted, &jobs.lock);
            jobs.idle--;
            continue;
        }
        jobs.first = next->next;
        pthread_mutex_unlock(&jobs.lock);
        plugin_worker_run(&next->message);
        free(next);
        pthread_mutex_lock(&jobs.lock);
    }
}

static int start_thread(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    int error = pthread_create(&thread, &attributes, work, NULL);
    pthread_attr_destroy(&attributes);
    return error == 0;
}

void plugin_worker_run_later(const plugin_wire_message *message) {
    job *added = plugin_worker_allocate(sizeof *added);
    *added = (job){*message, NULL};
    pthread_mutex_lock(&jobs.lock);
    uint32_t waiting = 1;
    for (job *other = jobs.first; other && waiting <= jobs.idle; other = other->next) waiting++;
    if (jobs.first) jobs.last->next = added;
    else jobs.first = added;
    jobs.last = added;
    if (waiting > jobs.idle && jobs.threads < THREADS_MAX) {
        if (start_thread()) jobs.threads++;
        else if (jobs.threads == 0) plugin_worker_give_up("no thread can be started");
    }
    pthread_cond_signal(&jobs.is_wanted);
    pthread_mutex_unlock(&jobs.lock);
}
