#include "plugin_host_lane.h"
