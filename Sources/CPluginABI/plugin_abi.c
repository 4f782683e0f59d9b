/* The header is the whole target; compiling it here checks its layout assertions in every build. */
#include "plugin_abi.h"
