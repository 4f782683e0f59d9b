/* hooks.h - names of the functions that the host calls in the life of a module
 *
 * A hook is a function of the table, and its name without "@" is in the "hooks" of the manifest. It
 * replies like an action, and an error means that it has failed. It has no arguments unless said
 * here. All are [one at a time]; `call` and `arguments` are borrowed until it returns.
 *
 * The last three hand over the state of a module when a new file replaces it. The host blocks new
 * calls of the module, waits until the running ones have ended, and gives each hook a deadline. */
#ifndef PLUGIN_ABI_HOOKS_H
#define PLUGIN_ABI_HOOKS_H

#include "../plugin_abi.h"

/* Runs before the actions of the module can be called. If it fails, the module is refused. */
#define PLUGIN_HOOK_SET_UP "@setUp"

/* Runs when all new modules are set up: they can call each other, and nobody else can call them
 * yet. If it fails, the module is refused. */
#define PLUGIN_HOOK_INIT "@init"

/* Runs when all new modules are initialized. */
#define PLUGIN_HOOK_DID_START "@didStart"

/* Runs before the end of the module, while calls go on. */
#define PLUGIN_HOOK_WILL_STOP "@willStop"

/* Runs after the last call has ended. */
#define PLUGIN_HOOK_TEAR_DOWN "@tearDown"

/* Runs in the old module, and has ended before @init of the new one begins. It replies with the
 * state, any value, and does nothing more with what that stands for. If the manifest says
 * "exclusive", it lets go of what only one can have, such as a port. If it fails, the module is not
 * replaced. */
#define PLUGIN_HOOK_SUSPEND "@suspend"

/* Runs in the new module before its @init, if there is a state: not at the start of the host, nor
 * after a version without @suspend. It has two arguments, the state and the version (string) of the
 * module that gave it. If it fails, the old module is not replaced. */
#define PLUGIN_HOOK_RESUME "@resume"

/* Runs in the old module after its @suspend was called, if the replacement has failed for whatever
 * reason, a failed or late @suspend included. The module goes on as if nothing had happened, takes
 * back what it let go of, and gets the calls that were blocked. */
#define PLUGIN_HOOK_UNSUSPEND "@unsuspend"

#endif
