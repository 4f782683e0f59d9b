/*
 * plugin_worker.h - what the program pluginhost-worker does, for programs that do it themselves
 */
#ifndef PLUGIN_WORKER_H
#define PLUGIN_WORKER_H

/* Serves an isolated module, or scans files, as the arguments of the program say, until the host ends this process.
 * Must be called while the process has one thread. Returns an exit code if the arguments are not valid. */
int plugin_worker_main(int count, char **arguments);

#endif
