/* The program pluginhost-worker. */
#include "plugin_worker.h"

int main(int count, char **arguments) { return plugin_worker_main(count, arguments); }

/* An option for the linker, in front of those of "-static-stdlib". Without it, each worker would load libstdc++ and libm,
 * which it does not use. */
__asm__(".pushsection .swift1_autolink_entries, \"e\", %progbits\n\t.asciz \"-Wl,--as-needed\"\n\t.popsection");
