#define _GNU_SOURCE
#include "include/plugin_host_linked.h"

#include <link.h>

struct visit {
    void (*body)(void *, const plugin_host_image *);
    void *data;
};

static int visit_image(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    const struct visit *visit = data;
    plugin_host_image image = {
        .path = info->dlpi_name ? info->dlpi_name : "",
        .base = info->dlpi_addr,
        .program_headers = info->dlpi_phdr,
        .program_header_count = info->dlpi_phnum,
    };
    visit->body(visit->data, &image);
    return 0;
}

void plugin_host_each_image(void (*body)(void *, const plugin_host_image *), void *data) {
    struct visit visit = {body, data};
    dl_iterate_phdr(visit_image, &visit);
}

/* The linker defines these if the section exists; weak, because most programs have no linked modules. */
extern const void *const __start_plugin_modules[] __attribute__((weak, visibility("hidden")));
extern const void *const __stop_plugin_modules[] __attribute__((weak, visibility("hidden")));

const void *const *plugin_host_own_records(size_t *count) {
    *count = (size_t)(__stop_plugin_modules - __start_plugin_modules);
    return __start_plugin_modules;
}

const void *plugin_host_own_address(void) {
    static const char here;
    return &here;
}
