#define _GNU_SOURCE
#include "plugin_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

struct plugin_scan {
    _Atomic uint32_t steps[PLUGIN_SCAN_MAX_FILES];
    char reasons[PLUGIN_SCAN_MAX_FILES][PLUGIN_SCAN_REASON_BYTES];
    _Atomic uint64_t length; /* of the description */
    uint8_t description[((size_t)PLUGIN_WIRE_DESCRIPTION_MIB << 20) + 4096];
    _Atomic uint64_t manifest_lengths[PLUGIN_SCAN_MAX_FILES];
    uint8_t manifests[PLUGIN_SCAN_MAX_FILES][PLUGIN_MANIFEST_MAX_BYTES]; /* pages exist when they are used */
};

int plugin_scan_create(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < sizeof(plugin_scan)) {
        errno = EFBIG; /* instead of the signal SIGXFSZ */
        return -1;
    }
    int descriptor = memfd_create("pluginhost.scan", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    if (descriptor < 0) return -1;
    if (ftruncate(descriptor, sizeof(plugin_scan)) == 0
        && fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return descriptor;
    int error = errno;
    close(descriptor);
    errno = error;
    return -1;
}

plugin_scan *plugin_scan_map(int descriptor) {
    void *memory = mmap(NULL, sizeof(plugin_scan), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void plugin_scan_unmap(plugin_scan *scan) { munmap(scan, sizeof *scan); }

void plugin_scan_set_step(plugin_scan *scan, uint32_t file, enum plugin_scan_step step) {
    atomic_store_explicit(&scan->steps[file], step, memory_order_release);
}

uint32_t plugin_scan_get_step(const plugin_scan *scan, uint32_t file) {
    return atomic_load_explicit(&scan->steps[file], memory_order_acquire);
}

void plugin_scan_set_reason(plugin_scan *scan, uint32_t file, const char *reason) {
    strncpy(scan->reasons[file], reason, PLUGIN_SCAN_REASON_BYTES - 1);
}

void plugin_scan_get_reason(const plugin_scan *scan, uint32_t file, char reason[PLUGIN_SCAN_REASON_BYTES]) {
    memcpy(reason, scan->reasons[file], PLUGIN_SCAN_REASON_BYTES);
    reason[PLUGIN_SCAN_REASON_BYTES - 1] = 0;
}

void plugin_scan_set_description(plugin_scan *scan, const plugin_wire_message *message) {
    size_t count;
    uint8_t *bytes = plugin_wire_pack(message, &count);
    if (bytes && count <= sizeof scan->description) {
        memcpy(scan->description, bytes, count);
        atomic_store_explicit(&scan->length, count, memory_order_release);
    }
    free(bytes);
}

int plugin_scan_get_description(const plugin_scan *scan, plugin_wire_message *message) {
    uint64_t length = atomic_load_explicit(&scan->length, memory_order_acquire);
    const size_t first = sizeof(uint64_t); /* the number of those that follow */
    if (length < first || length > sizeof scan->description) return 1;
    return plugin_wire_unpack(NULL, scan->description + first, length - first, message);
}

/* Copies memory that may not be readable: where a read would crash, the kernel refuses. Returns 0 or -1. */
static int copy(int descriptor, size_t place, const void *bytes, uint64_t count) {
    return pwrite(descriptor, bytes, count, (off_t)place) == (ssize_t)count ? 0 : -1;
}

void plugin_scan_set_manifest(plugin_scan *scan, int descriptor, uint32_t file, const plugin_module *module) {
    const size_t place = offsetof(plugin_scan, manifests) + (size_t)file * PLUGIN_MANIFEST_MAX_BYTES;
    plugin_module seen;
    if (copy(descriptor, place, module, sizeof seen) != 0) return;
    memcpy(&seen, scan->manifests[file], sizeof seen);
    if (seen.magic != PLUGIN_ABI_MAGIC || seen.abi_major != PLUGIN_ABI_MAJOR || seen.size < sizeof seen) return;
    if (seen.manifest.count > PLUGIN_MANIFEST_MAX_BYTES) return;
    if (copy(descriptor, place, seen.manifest.bytes, seen.manifest.count) != 0) return;
    atomic_store_explicit(&scan->manifest_lengths[file], seen.manifest.count, memory_order_release);
}

uint64_t plugin_scan_get_manifest(const plugin_scan *scan, uint32_t file, uint8_t *bytes) {
    uint64_t length = atomic_load_explicit(&scan->manifest_lengths[file], memory_order_acquire);
    if (length > PLUGIN_MANIFEST_MAX_BYTES) return 0;
    memcpy(bytes, scan->manifests[file], length);
    return length;
}
