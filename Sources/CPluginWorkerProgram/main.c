/* The program pluginhost-worker. */
#include "plugin_worker.h"

int main(int count, char **arguments) { return plugin_worker_main(count, arguments); }
