/* See plugin_host_wake.h. */
#include "plugin_host_wake.h"

#include <sys/eventfd.h>

int plugin_host_wake_create(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
void plugin_host_wake(int descriptor) { eventfd_write(descriptor, 1); }
void plugin_host_wake_clear(int descriptor) {
    eventfd_t count;
    eventfd_read(descriptor, &count);
}
