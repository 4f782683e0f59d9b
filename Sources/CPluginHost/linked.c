#define _GNU_SOURCE
#include "include/plugin_host_linked.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static int read_whole(int file, void *bytes, size_t count, uint64_t offset) {
    return offset <= INT64_MAX && pread(file, bytes, count, (off_t)offset) == (ssize_t)count;
}

static int lacks_name(int file, const char *name) {
    struct stat status;
    Elf64_Ehdr header;
    Elf64_Shdr table;
    char names[4096];
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
    if (!read_whole(file, &header, sizeof header, 0)) return 0;
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return 0;
    /* Files with 65,280 sections or more have the numbers elsewhere. */
    if (header.e_shentsize != sizeof table || header.e_shstrndx >= header.e_shnum) return 0;
    if (header.e_shoff > INT64_MAX) return 0;
    if (!read_whole(file, &table, sizeof table, header.e_shoff + header.e_shstrndx * sizeof table)) return 0;
    if (table.sh_type != SHT_STRTAB || table.sh_size > sizeof names) return 0;
    if (!read_whole(file, names, (size_t)table.sh_size, table.sh_offset)) return 0;
    return memmem(names, (size_t)table.sh_size, name, strlen(name)) == NULL;
}

int plugin_host_lacks_section(const char *path, const char *name) {
    int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0) return 0;
    int lacks = lacks_name(file, name);
    close(file);
    return lacks;
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
