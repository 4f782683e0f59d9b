/* plugin_host_wake.h - what wakes a thread that polls: eventfd(2), which Swift's Glibc module does not show. */
#ifndef PLUGIN_HOST_WAKE_H
#define PLUGIN_HOST_WAKE_H

/* A descriptor that can be read when somebody has woken it; -1 where there is none left. */
int plugin_host_wake_create(void);
void plugin_host_wake(int descriptor);
/* From now on it cannot be read until it is woken again. */
void plugin_host_wake_clear(int descriptor);

#endif
