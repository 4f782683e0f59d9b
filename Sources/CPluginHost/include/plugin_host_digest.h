/* The digest of a file's bytes: in C, since a debug build of Swift takes a hundred times as long for such a loop. */
#ifndef PLUGIN_HOST_DIGEST_H
#define PLUGIN_HOST_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* Four words at a time, each into a thread of its own, so that a processor multiplies them at once. */
typedef struct plugin_host_digest {
    uint64_t threads[4];
} plugin_host_digest;

/* A digest of nothing yet, of a file of `size` bytes. */
plugin_host_digest plugin_host_digest_begin(uint64_t size);

/* Takes the next `count` bytes: a multiple of 32, unless they are the last. */
void plugin_host_digest_mix(plugin_host_digest *digest, const void *bytes, size_t count);

void plugin_host_digest_mix_word(plugin_host_digest *digest, uint64_t word);

/* The digest of all that was taken so far. */
uint64_t plugin_host_digest_value(plugin_host_digest digest);

#endif /* PLUGIN_HOST_DIGEST_H */
