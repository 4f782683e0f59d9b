/* hooks.h - the functions that the host calls during the life of a module
 *
 * A hook is an entry of the function table. Its name without "@" is in the "hooks" of the manifest.
 * It replies like an action; it may reply later if the manifest lists it as {"name": "init",
 * "async": true}. If it replies with an error, it has failed. Only "@resume" has arguments. All
 * hooks are [one at a time]; `call` and `arguments` are borrowed until the hook returns.
 *
 * The last three hooks hand over the state of a module when a new file replaces it. The host blocks
 * new calls of the module, waits until the running ones have ended, and gives each hook a
 * deadline. */
#ifndef PLUGIN_ABI_HOOKS_H
#define PLUGIN_ABI_HOOKS_H

#include "../plugin_abi.h"

/* Runs before the actions of the module can be called, and before @suspend of the module that it
 * replaces, if any. If it fails, the module is refused. */
#define PLUGIN_HOOK_SET_UP "@setUp"

/* Runs when all new modules are set up: they can call each other, but no other module or program
 * can call them yet. If it fails, the module is refused. */
#define PLUGIN_HOOK_INIT "@init"

/* Runs when all new modules are initialised. If it fails, the error is logged. */
#define PLUGIN_HOOK_DID_START "@didStart"

/* Runs before the end of the module, while calls continue. */
#define PLUGIN_HOOK_WILL_STOP "@willStop"

/* Runs after the last call has ended. */
#define PLUGIN_HOOK_TEAR_DOWN "@tearDown"

/* Runs in the old module if the new one has @resume, or if either is "exclusive". It has ended
 * before @init of the new one begins. It replies with the state (any value). After that, the old
 * module must not use what the state represents. If the manifest declares "exclusive", the hook
 * releases what only one module can own, such as a port. If it fails, the module is not
 * replaced. */
#define PLUGIN_HOOK_SUSPEND "@suspend"

/* Runs in the new module before its @init, if there is a state: not at the start of the host, nor
 * after a version without @suspend. It has two arguments, the state, and the version (string) of
 * the module that handed it over. If it fails, the old module is not replaced. */
#define PLUGIN_HOOK_RESUME "@resume"

/* Runs in the old module after its @suspend was called, if the replacement has failed for any
 * reason, including a failed or late @suspend. The hook acquires again what @suspend released. The
 * module then continues as before, and gets the calls that were blocked. */
#define PLUGIN_HOOK_UNSUSPEND "@unsuspend"

#endif
