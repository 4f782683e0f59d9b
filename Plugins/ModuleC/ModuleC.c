#include "plugin_abi.h"
