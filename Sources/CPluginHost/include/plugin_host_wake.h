/* plugin_host_wake.h - wakes a thread that polls: eventfd(2), which Swift's Glibc module does not offer. */
#ifndef PLUGIN_HOST_WAKE_H
#define PLUGIN_HOST_WAKE_H

/* Creates a descriptor that can be read after a wake-up; -1 if none is left. */
int plugin_host_wake_create(void);
void plugin_host_wake(int descriptor);
/* Resets the descriptor: it cannot be read until it is woken again. */
void plugin_host_wake_clear(int descriptor);

#endif
