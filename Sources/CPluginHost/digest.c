#include "plugin_host_digest.h"

#include <string.h>

static uint64_t mixed(uint64_t state, uint64_t word) {
    unsigned __int128 product = (unsigned __int128)(state ^ word) * 0xD6E8FEB86659FD93;
    return ((uint64_t)(product >> 64) ^ (uint64_t)product) + 0x9E3779B97F4A7C15;
}

/* Reads little-endian, like every processor that Swift runs on under Linux. */
static uint64_t word_at(const unsigned char *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

plugin_host_digest plugin_host_digest_begin(uint64_t size) {
    uint64_t seed = size ^ 0x9E3779B97F4A7C15;
    return (plugin_host_digest){
        {seed, ~seed, seed + 1, ~seed - 1, seed + 2, ~seed - 2, seed + 3, ~seed - 3}};
}

void plugin_host_digest_mix(plugin_host_digest *digest, const void *bytes, size_t count) {
    const unsigned char *next = bytes;
    plugin_host_digest state = *digest;
    for (; count >= 64; next += 64, count -= 64) {
        for (int lane = 0; lane < 8; lane++) state.lanes[lane] = mixed(state.lanes[lane], word_at(next + 8 * lane));
    }
    for (; count >= 8; next += 8, count -= 8) state.lanes[0] = mixed(state.lanes[0], word_at(next));
    if (count > 0) {
        uint64_t rest = 0;
        while (count-- > 0) rest = rest << 8 | *next++;
        state.lanes[1] = mixed(state.lanes[1], rest);
    }
    *digest = state;
}

void plugin_host_digest_mix_word(plugin_host_digest *digest, uint64_t word) {
    digest->lanes[0] = mixed(digest->lanes[0], word);
}

uint64_t plugin_host_digest_value(plugin_host_digest digest) {
    uint64_t value = digest.lanes[0];
    for (int lane = 1; lane < 8; lane++) value = mixed(value, digest.lanes[lane]);
    return value;
}
