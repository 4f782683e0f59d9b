/* all.h - all files of this folder, included by plugin_abi.h */
#ifndef PLUGIN_ABI_ALL_H
#define PLUGIN_ABI_ALL_H

#include "bound.h"
#include "call_context.h"
#include "chain.h"
#include "configuration.h"
#include "context.h"
#include "entry.h"
#include "events.h"
#include "helpers.h"
#include "hooks.h"
#include "instances.h"
#include "interceptors.h"
#include "log.h"
#include "manifest.h"
#include "profile.h"
#include "routes.h"
#include "services.h"
#include "types.h"

#endif
