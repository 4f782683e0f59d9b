/* The digest of a file's bytes. In C, because such a loop takes a hundred times as long in a debug build of Swift. */
#ifndef PLUGIN_HOST_DIGEST_H
#define PLUGIN_HOST_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* The state of a digest. It mixes eight words at a time, each into a lane of its own, so that a processor can multiply
 * them in parallel. */
typedef struct plugin_host_digest {
    uint64_t lanes[8];
} plugin_host_digest;

/* Begins the digest of a file of `size` bytes. */
plugin_host_digest plugin_host_digest_begin(uint64_t size);

/* Adds the next `count` bytes: a multiple of 64, except in the last call. */
void plugin_host_digest_mix(plugin_host_digest *digest, const void *bytes, size_t count);

void plugin_host_digest_mix_word(plugin_host_digest *digest, uint64_t word);

/* Returns the digest of everything that was added so far. */
uint64_t plugin_host_digest_value(plugin_host_digest digest);

#endif /* PLUGIN_HOST_DIGEST_H */
