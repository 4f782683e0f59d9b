#define _GNU_SOURCE
#include "rooms.h"
#include "values.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a room of the host is for. */
typedef enum use {
    UNUSED,
    MADE,  /* has values of the host, which are not sent yet */
    LENT,  /* the worker reads it */
    GIVEN, /* the worker may write into it, once */
    KEPT,  /* the host reads it */
} use;

typedef struct room {
    uint32_t number;
    use use;
    int descriptor; /* of those that are made or given */
    uint32_t length;
} room;

struct plugin_wire_rooms {
    pthread_mutex_t lock;
    uint32_t references;
    /* On the side of the worker. */
    int (*take)(uint32_t);
    void (*leave)(uint32_t);
    /* On the side of the host. */
    int are_closed;
    uint32_t made; /* how many there were so far */
    uint64_t bytes;
    room rooms[PLUGIN_WIRE_ROOMS];
};

_Static_assert((PLUGIN_WIRE_ROOMS & (PLUGIN_WIRE_ROOMS - 1)) == 0, "the last bits of a number are the slot in the table");

plugin_wire_rooms *wire_rooms_create(void) {
    plugin_wire_rooms *rooms = calloc(1, sizeof *rooms);
    if (!rooms) return NULL;
    pthread_mutex_init(&rooms->lock, NULL);
    rooms->references = 1;
    return rooms;
}

static void retain(plugin_wire_rooms *rooms) { __atomic_add_fetch(&rooms->references, 1, __ATOMIC_RELAXED); }

void wire_rooms_release(plugin_wire_rooms *rooms) {
    if (__atomic_sub_fetch(&rooms->references, 1, __ATOMIC_ACQ_REL) > 0) return;
    pthread_mutex_destroy(&rooms->lock);
    free(rooms);
}

void wire_rooms_set(plugin_wire_rooms *rooms, int (*take)(uint32_t), void (*leave)(uint32_t)) {
    rooms->take = take;
    rooms->leave = leave;
}

/* -------------------------------------------------------------------------------------- memory */

int wire_memory_create(const char *name, size_t size) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size) {
        errno = EFBIG; /* instead of the signal SIGXFSZ */
        return -1;
    }
    int descriptor = memfd_create(name, MFD_ALLOW_SEALING | MFD_CLOEXEC);
    if (descriptor < 0) return -1;
    if (ftruncate(descriptor, (off_t)size) == 0 && fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
        return descriptor;
    int error = errno;
    close(descriptor);
    errno = error;
    return -1;
}

/* Creates the memory of a room. Its pages are allocated, so that using them cannot fail. */
static int create(uint32_t length) {
    int descriptor = wire_memory_create("pluginhost.room", length);
    if (descriptor < 0) return -1;
    int result;
    while ((result = fallocate(descriptor, 0, 0, length)) != 0 && errno == EINTR) {}
    if (result == 0) return descriptor;
    close(descriptor);
    return -1;
}

static void *map(int descriptor, uint32_t length, int is_shared) {
    int flags = is_shared ? MAP_SHARED : MAP_PRIVATE;
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, descriptor, 0);
    if (memory == MAP_FAILED) return NULL;
    (void)madvise(memory, length, MADV_DONTFORK); /* so that it is not mapped after its use */
    (void)madvise(memory, length, MADV_DONTDUMP);
    return memory;
}

static int write_values(int descriptor, const plugin_wire_message *message, uint32_t length, int *has_objects) {
    uint8_t *memory = map(descriptor, length, 1);
    if (!memory) return 0;
    wire_out out = {memory, 0, length, 0, 0};
    wire_put_values(&out, message->values, message->count, 0);
    munmap(memory, length);
    *has_objects = out.has_objects;
    return !out.has_failed;
}

static int seal(int descriptor) { return fcntl(descriptor, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) == 0; }

/* ---------------------------------------------------------------------------- the host's table */

/* Makes an entry. Returns its number; 0 if there are too many. */
static uint32_t reserve(plugin_wire_rooms *rooms, uint32_t length, use use) {
    uint32_t number = 0;
    pthread_mutex_lock(&rooms->lock);
    if (!rooms->are_closed && rooms->bytes + length <= (uint64_t)PLUGIN_WIRE_ROOMS_GIB << 30) {
        uint32_t slot = 0;
        while (slot < PLUGIN_WIRE_ROOMS && rooms->rooms[slot].use != UNUSED) slot++;
        if (slot < PLUGIN_WIRE_ROOMS) {
            /* Not 0, and without the flag of the numbers that the worker sends. */
            do number = (++rooms->made * PLUGIN_WIRE_ROOMS + slot) & (PLUGIN_WIRE_LEFT - 1);
            while (!number);
            rooms->rooms[slot] = (room){number, use, -1, length};
            rooms->bytes += length;
        }
    }
    pthread_mutex_unlock(&rooms->lock);
    return number;
}

/* Returns the entry with a number and a use; null if there is none. The caller must hold the lock. */
static room *find(plugin_wire_rooms *rooms, uint32_t number, use use) {
    room *room = &rooms->rooms[number % PLUGIN_WIRE_ROOMS];
    return room->number == number && room->use == use ? room : NULL;
}

/* Removes an entry if it has the given use. Returns whether it had. */
static int vacate(plugin_wire_rooms *rooms, uint32_t number, use use) {
    int descriptor = -1;
    pthread_mutex_lock(&rooms->lock);
    room *room = find(rooms, number, use);
    if (room) {
        descriptor = room->descriptor;
        rooms->bytes -= room->length;
        room->use = UNUSED;
    }
    pthread_mutex_unlock(&rooms->lock);
    if (descriptor >= 0) close(descriptor);
    return room != NULL;
}

/* Stores the descriptor of an entry. Returns 0 if there is no such entry or descriptor, or the worker has ended. */
static int store(plugin_wire_rooms *rooms, uint32_t number, use use, int descriptor) {
    pthread_mutex_lock(&rooms->lock);
    room *room = descriptor < 0 || rooms->are_closed ? NULL : find(rooms, number, use);
    if (room) room->descriptor = descriptor;
    pthread_mutex_unlock(&rooms->lock);
    if (room) return 1;
    if (descriptor >= 0) close(descriptor);
    vacate(rooms, number, use);
    return 0;
}

uint32_t wire_rooms_put(plugin_wire_rooms *rooms, plugin_wire_message *message, uint32_t length) {
    uint32_t number = reserve(rooms, length, MADE);
    if (!number) return 0;
    int descriptor = create(length), has_objects = 0;
    if (descriptor >= 0 && !(write_values(descriptor, message, length, &has_objects) && seal(descriptor))) {
        close(descriptor);
        descriptor = -1;
    }
    if (!store(rooms, number, MADE, descriptor)) return 0;
    message->has_objects = (uint32_t)has_objects;
    retain(rooms);
    return number;
}

int wire_rooms_lend(plugin_wire_rooms *rooms, uint32_t number) {
    int descriptor = -1;
    pthread_mutex_lock(&rooms->lock);
    room *room = find(rooms, number, MADE);
    if (room) {
        descriptor = room->descriptor;
        room->descriptor = -1;
        room->use = LENT;
    }
    pthread_mutex_unlock(&rooms->lock);
    return descriptor;
}

uint32_t wire_rooms_give(plugin_wire_rooms *rooms, uint32_t length, int *descriptor) {
    uint32_t number = reserve(rooms, length, GIVEN);
    if (!number) return 0;
    int own = create(length);
    *descriptor = own < 0 ? -1 : fcntl(own, F_DUPFD_CLOEXEC, 0);
    if (own >= 0 && *descriptor < 0) {
        close(own);
        own = -1;
    }
    if (store(rooms, number, GIVEN, own)) return number;
    if (*descriptor >= 0) close(*descriptor);
    return 0;
}

int wire_rooms_leave(plugin_wire_rooms *rooms, uint32_t number) { return !vacate(rooms, number, LENT); }

void wire_rooms_close(plugin_wire_rooms *rooms) {
    pthread_mutex_lock(&rooms->lock);
    rooms->are_closed = 1;
    for (room *room = rooms->rooms; room < rooms->rooms + PLUGIN_WIRE_ROOMS; room++) {
        if (room->use == UNUSED || room->use == KEPT) continue;
        if (room->descriptor >= 0) close(room->descriptor);
        rooms->bytes -= room->length;
        room->use = UNUSED;
    }
    pthread_mutex_unlock(&rooms->lock);
}

/* ------------------------------------------------------------------------------------- mapping */

/* Maps a room of the worker, and seals it against further writes. */
static uint8_t *map_given(plugin_wire_rooms *rooms, uint32_t number, uint32_t length) {
    int descriptor = -1;
    pthread_mutex_lock(&rooms->lock);
    room *room = find(rooms, number, GIVEN);
    if (room && length <= room->length) {
        descriptor = room->descriptor; /* -1 while it is being made: the worker cannot know it */
        room->descriptor = -1;
        room->use = KEPT;
    }
    pthread_mutex_unlock(&rooms->lock);
    if (descriptor < 0) return NULL;
    struct stat status;
    uint8_t *memory = NULL;
    /* The worker may still be able to write to it, or may have removed pages, for which there may be no memory. */
    if (seal(descriptor) && fstat(descriptor, &status) == 0
        && (uint64_t)status.st_blocks * 512 >= (uint64_t)status.st_size)
        memory = map(descriptor, length, 0);
    close(descriptor);
    if (!memory) vacate(rooms, number, KEPT);
    return memory;
}

static uint8_t *map_taken(plugin_wire_rooms *rooms, uint32_t number, uint32_t length) {
    int descriptor = rooms->take(number);
    uint8_t *memory = descriptor < 0 ? NULL : map(descriptor, length, 0);
    if (descriptor >= 0) close(descriptor);
    return memory;
}

uint8_t *wire_rooms_map(plugin_wire_rooms *rooms, uint32_t number, uint32_t length) {
    uint8_t *memory = rooms->take ? map_taken(rooms, number, length) : map_given(rooms, number, length);
    if (memory) retain(rooms);
    return memory;
}

void wire_rooms_unmap(plugin_wire_rooms *rooms, uint32_t number, void *bytes, uint32_t length) {
    if (bytes) munmap(bytes, length);
    if (rooms->leave) rooms->leave(number);
    else vacate(rooms, number, bytes ? KEPT : MADE);
    wire_rooms_release(rooms);
}

int wire_rooms_fill(plugin_wire_rooms *rooms, uint32_t number, const plugin_wire_message *message, uint32_t length) {
    int descriptor = rooms->take(number), has_objects;
    if (descriptor < 0) return 1;
    int is_done = write_values(descriptor, message, length, &has_objects);
    close(descriptor);
    return !is_done;
}

/* -------------------------------------------------------------------------------------- socket */

typedef union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr header;
} control;

int64_t plugin_wire_post(int socket, const void *bytes, size_t count, int descriptor) {
    struct iovec part = {(void *)bytes, count};
    struct msghdr message;
    control control;
    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof descriptor);
        memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int64_t plugin_wire_hear(int socket, void *bytes, size_t count, int *descriptor) {
    struct iovec part = {bytes, count};
    control control;
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof control.bytes;
    ssize_t result = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (result < 0) return result;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
    return result;
}
