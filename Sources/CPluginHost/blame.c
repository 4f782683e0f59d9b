/* Finds out which file's code is running: by the step of the thread, the records of its calls, and the images on its
 * stack. Functions that a signal handler calls are async-signal-safe: they use write(2), process_vm_readv(2), and
 * memory that is never freed. */
#define _GNU_SOURCE
#include "blame.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

#include "thread_context.h"

enum { backtrace_max = 64 };

static __thread const char *step;
static __thread uint64_t step_file;
__thread uintptr_t plugin_host_thread_origin;

void plugin_host_set_step(const char *label, uint64_t file) {
    step = label;
    step_file = label ? file : PLUGIN_HOST_NOBODY;
}
const char *plugin_host_step(void) { return step; }
uint64_t plugin_host_step_file(void) { return step_file; }

/* --------------------------------------------------------------------------------------------------------- labels -- */

const char *plugin_host_label_create(const char *text, uint64_t file) {
    size_t size = strlen(text) + 1;
    char *memory = malloc(sizeof file + size);
    if (!memory) return NULL;
    memcpy(memory, &file, sizeof file);
    memcpy(memory + sizeof file, text, size);
    return memory + sizeof file;
}

void plugin_host_label_free(const char *label) {
    if (label) free((char *)label - sizeof(uint64_t));
}

static uint64_t file_of_label(const char *label) {
    uint64_t file;
    memcpy(&file, label - sizeof file, sizeof file);
    return file;
}

/* --------------------------------------------------------------------------------------------------------- images -- */

struct image {
    uintptr_t start, end;
    const char *path; /* instead of the bounds, which are not known before the image is opened */
    const char *label;
    uint64_t file;
    int is_library; /* of a module, which other modules may share */
    struct image *next;
};

static struct image *images;

struct search {
    uintptr_t address;
    struct image *found;
};

static int find_bounds(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct search *search = data;
    uintptr_t start = UINTPTR_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD) continue;
        uintptr_t low = info->dlpi_addr + header->p_vaddr, high = low + header->p_memsz;
        if (low < start) start = low;
        if (high > end) end = high;
    }
    if (search->address < start || search->address >= end) return 0;
    search->found->start = start;
    search->found->end = end;
    return 1;
}

/* Sets the bounds of the image that contains the address. Returns whether there is one. */
static int bound(struct image *image, const void *address) {
#if __GLIBC_PREREQ(2, 35)
    /* Does not search all images: there may be thousands. */
    struct dl_find_object object;
    if (_dl_find_object((void *)address, &object) == 0) {
        image->start = (uintptr_t)object.dlfo_map_start;
        image->end = (uintptr_t)object.dlfo_map_end;
        return 1;
    }
#endif
    /* An image that is still being relocated is only found by a search. */
    struct search search = {(uintptr_t)address, image};
    return dl_iterate_phdr(find_bounds, &search);
}

static void add(struct image *image) {
    image->next = __atomic_load_n(&images, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&images, &image->next, image, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {}
}

void plugin_host_add_image(const void *address, const char *label, uint64_t file) {
    struct image *image = calloc(1, sizeof *image);
    if (!image) return;
    if (!bound(image, address)) {
        free(image);
        return;
    }
    image->label = label;
    image->file = file;
    add(image);
}

static int normalize(const char *path, char *into, size_t room);

static void expect(const char *path, const char *label, uint64_t file, int is_library) {
    struct image *image = calloc(1, sizeof *image);
    char normal[4096];
    if (!image) return;
    char *copy = normalize(path, normal, sizeof normal) ? strdup(normal) : NULL;
    image->path = copy ? copy : path;
    image->label = label;
    image->file = file;
    image->is_library = is_library;
    add(image);
}

void plugin_host_expect_image(const char *path, const char *label, uint64_t file) { expect(path, label, file, 0); }
void plugin_host_expect_library(const char *path, const char *label, uint64_t file) { expect(path, label, file, 1); }

/* Removes `.`, `..` and redundant slashes from an absolute path: the dynamic linker makes such paths from
 * `$ORIGIN/../lib`. Returns whether there was room. */
static int normalize(const char *path, char *into, size_t room) {
    size_t length = 0;
    while (*path) {
        while (*path == '/') path++;
        size_t count = strcspn(path, "/");
        if (count == 2 && path[0] == '.' && path[1] == '.') {
            while (length > 0 && into[--length] != '/') {}
        } else if (count > 0 && !(count == 1 && path[0] == '.')) {
            if (length + count + 2 > room) return 0;
            into[length++] = '/';
            memcpy(into + length, path, count);
            length += count;
        }
        path += count;
    }
    into[length] = 0;
    return 1;
}

/* Finds an image whose description has not been read yet, such as one whose constructors are running, or a library of a
 * module. */
static const struct image *expected_image_at(uintptr_t address) {
#if __GLIBC_PREREQ(2, 35)
    struct dl_find_object object; /* the call is async-signal-safe */
    if (_dl_find_object((void *)address, &object) != 0) return NULL;
    char path[4096];
    if (!normalize(object.dlfo_link_map->l_name, path, sizeof path)) return NULL;
    const struct image *image = __atomic_load_n(&images, __ATOMIC_ACQUIRE);
    while (image && !(image->path && strcmp(image->path, path) == 0)) image = image->next;
    return image;
#else
    (void)address;
    return NULL;
#endif
}

static const struct image *image_at(uintptr_t address) {
    const struct image *image = __atomic_load_n(&images, __ATOMIC_ACQUIRE);
    while (image && (address < image->start || address >= image->end)) image = image->next;
    return image ? image : expected_image_at(address);
}

/* Whether several files use this library. */
static int is_shared(const struct image *library) {
    const struct image *image = __atomic_load_n(&images, __ATOMIC_ACQUIRE);
    while (image && !(image->path && image->file != library->file && strcmp(image->path, library->path) == 0))
        image = image->next;
    return image != NULL;
}

/* Returns the file that the code of an image is attributed to: for a library the file of the thread, since modules
 * share libraries. */
static uint64_t file_of_image(const struct image *image) {
    if (!image) return PLUGIN_HOST_NOBODY;
    if (!image->is_library) return image->file;
    uint64_t file = plugin_host_file_of_thread();
    if (file > PLUGIN_HOST_THE_PROGRAM) return file;
    return is_shared(image) ? PLUGIN_HOST_NOBODY : image->file;
}

uint64_t plugin_host_file_at(uintptr_t address) { return file_of_image(image_at(address)); }

const char *plugin_host_label_of(uint64_t file, int *names_module) {
    const struct image *expected = NULL;
    for (const struct image *image = __atomic_load_n(&images, __ATOMIC_ACQUIRE); image; image = image->next) {
        if (image->file != file || image->is_library) continue;
        *names_module = !image->path;
        if (*names_module) return image->label;
        expected = image;
    }
    return expected ? expected->label : NULL;
}

/* --------------------------------------------------------------------------------------------------------- memory -- */

static int read_memory(uintptr_t address, void *into, size_t count) {
    struct iovec local = {into, count}, remote = {(void *)address, count};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)count;
}

/* Reads one byte of each page. */
int plugin_host_is_readable(const void *address, size_t count) {
    enum { batch = 64 };
    if (count == 0) return 1;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), next = (uintptr_t)address, last;
    if (__builtin_add_overflow(next, count - 1, &last)) return 0;
    char bytes[batch];
    for (;;) {
        struct iovec local = {bytes, 0}, remote[batch];
        while (local.iov_len < batch) {
            remote[local.iov_len++] = (struct iovec){(void *)next, 1};
            if (last / page == next / page) break;
            next = (next / page + 1) * page;
        }
        if (process_vm_readv(getpid(), &local, 1, remote, local.iov_len, 0) != (ssize_t)local.iov_len) {
            char known = 0;
            /* A sandbox that forbids the call makes it fail for readable memory, too. */
            return !read_memory((uintptr_t)&known, bytes, 1);
        }
        if ((uintptr_t)remote[local.iov_len - 1].iov_base / page == last / page) return 1;
    }
}

/* ------------------------------------------------------------------------------------------------------ whose code -- */

static uintptr_t interrupted_at(const ucontext_t *context) {
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return context->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

static uintptr_t frame_of(const ucontext_t *context) {
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RBP];
#elif defined(__aarch64__)
    return context->uc_mcontext.regs[29];
#else
    (void)context;
    return 0;
#endif
}

/* Searches by the instruction pointer, the chain of frame pointers, and the function with which the thread began. This
 * finds code that runs outside any call, in a task or a thread of its own. Optimised code and the C library have no
 * chain of frame pointers. */
static const struct image *image_on_stack(const ucontext_t *context) {
    uintptr_t frame = frame_of(context);
    const struct image *image = image_at(interrupted_at(context));
    for (int i = 0; i < backtrace_max && !image; i++) {
        uintptr_t pair[2]; /* the caller's frame pointer, and the return address of this frame */
        if (frame == 0 || frame % sizeof frame != 0 || !read_memory(frame, pair, sizeof pair)) break;
        image = image_at(pair[1]);
        if (pair[0] <= frame) break;
        frame = pair[0];
    }
    return image ? image : image_at(plugin_host_thread_origin);
}

const char *plugin_host_module_on_stack(const ucontext_t *context) {
    const struct image *image = image_on_stack(context);
    return image ? image->label : NULL;
}

/* ------------------------------------------------------------------------------------------------------ addresses -- */

static int addresses = -1; /* the descriptor */
static pid_t addresses_of; /* the process that reports, not its children */

void plugin_host_report_addresses(int descriptor) {
    addresses_of = getpid();
    __atomic_store_n(&addresses, descriptor, __ATOMIC_RELEASE);
}

const char *plugin_host_code_address(const void *address, uint64_t *offset) {
#if __GLIBC_PREREQ(2, 35)
    struct dl_find_object object;
    if (!image_at((uintptr_t)address) || _dl_find_object((void *)address, &object) != 0) return NULL;
    *offset = (uintptr_t)address - object.dlfo_link_map->l_addr;
    return object.dlfo_link_map->l_name;
#else
    (void)address, (void)offset;
    return NULL;
#endif
}

/* Writes the address of an instruction, if it is in the code of a module. */
static int write_address(uintptr_t address) {
    uint64_t offset;
    const char *path = plugin_host_code_address((const void *)address, &offset);
    char line[4096 + 32] = "address ";
    size_t length = strlen(line), count = path ? strlen(path) : 0;
    if (count == 0 || count > 4096) return 0;
    for (int shift = 60; shift >= 0; shift -= 4) line[length++] = "0123456789abcdef"[offset >> shift & 15];
    line[length++] = ' ';
    memcpy(line + length, path, count);
    length += count;
    line[length++] = '\n';
    return write(addresses, line, length) == (ssize_t)length;
}

struct addresses {
    uintptr_t interrupted;
    int count;
};

static _Unwind_Reason_Code find_address(struct _Unwind_Context *context, void *data) {
    struct addresses *found = data;
    int is_exact = 0;
    uintptr_t address = _Unwind_GetIPInfo(context, &is_exact);
    if (address == found->interrupted) return _URC_NO_REASON;
    /* A return address is that of the instruction after the call. */
    found->count += write_address(is_exact ? address : address - 1);
    return found->count < 16 ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

/* After a call through a pointer that leads nowhere, makes the context look as if the call itself had been interrupted:
 * the stack can be unwound only from an address with code. */
static void step_to_caller(ucontext_t *context) {
#if __GLIBC_PREREQ(2, 35)
    struct dl_find_object object;
    uintptr_t caller = 0;
    if (_dl_find_object((void *)interrupted_at(context), &object) == 0) return;
#if defined(__x86_64__)
    if (!read_memory((uintptr_t)context->uc_mcontext.gregs[REG_RSP], &caller, sizeof caller)) return;
    if (_dl_find_object((void *)(caller - 1), &object) != 0) return;
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)caller - 1;
    context->uc_mcontext.gregs[REG_RSP] += sizeof caller;
#elif defined(__aarch64__)
    caller = context->uc_mcontext.regs[30];
    if (_dl_find_object((void *)(caller - 1), &object) == 0) context->uc_mcontext.pc = caller - 1;
#else
    (void)caller;
#endif
#else
    (void)context;
#endif
}

void plugin_host_write_addresses(ucontext_t *context) {
    if (__atomic_load_n(&addresses, __ATOMIC_ACQUIRE) < 0 || getpid() != addresses_of) return;
    const mcontext_t original = context->uc_mcontext;
    step_to_caller(context);
    struct addresses found = {.interrupted = interrupted_at(context)};
    found.count = write_address(found.interrupted);
    _Unwind_Backtrace(find_address, &found);
    context->uc_mcontext = original;
}

uint64_t plugin_host_file_of_thread(void) {
    const plugin_host_thread *thread = plugin_host_this_thread;
    uint32_t depth = thread ? thread->depth : 0;
    for (uint32_t i = depth < PLUGIN_HOST_CHUNK ? depth : PLUGIN_HOST_CHUNK; i > 0; i--) {
        const char *label = thread->records[i - 1].label;
        if (label) return file_of_label(label);
    }
    return step_file;
}

uint64_t plugin_host_culprit(const ucontext_t *context) {
    const struct image *image = image_at(interrupted_at(context));
    if (image) return file_of_image(image);
    uint64_t file = plugin_host_file_of_thread();
    if (file != PLUGIN_HOST_NOBODY) return file;
    return file_of_image(image_on_stack(context));
}
