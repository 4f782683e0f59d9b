#include "worker.h"

#include <unistd.h>

/* The descriptors that have come, by the last bits of the numbers of the rooms: the host reuses these bits when the
 * room that had them before is no longer used. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t has_come;
    struct {
        uint32_t room; /* 0: none */
        int descriptor;
        uint32_t used; /* the last room whose descriptor was taken, or that was left without it */
    } slots[PLUGIN_WIRE_ROOMS];
} rooms = {.lock = PTHREAD_MUTEX_INITIALIZER, .has_come = PTHREAD_COND_INITIALIZER};

void plugin_worker_keep_room(uint32_t room, int descriptor) {
    uint32_t slot = room % PLUGIN_WIRE_ROOMS;
    pthread_mutex_lock(&rooms.lock);
    /* A room that no message has named, because the call was over. */
    if (rooms.slots[slot].room) close(rooms.slots[slot].descriptor);
    int is_used = rooms.slots[slot].used == room; /* it was left before its descriptor came */
    if (is_used) close(descriptor);
    rooms.slots[slot].room = is_used ? 0 : room;
    rooms.slots[slot].descriptor = descriptor;
    pthread_cond_broadcast(&rooms.has_come);
    pthread_mutex_unlock(&rooms.lock);
}

/* Waits for the descriptor of a room, which the host has sent before the message with its number. */
static int take(uint32_t room) {
    uint32_t slot = room % PLUGIN_WIRE_ROOMS;
    pthread_mutex_lock(&rooms.lock);
    while (rooms.slots[slot].room != room) {
        if (plugin_worker_listens()) {
            pthread_cond_wait(&rooms.has_come, &rooms.lock);
        } else {
            pthread_mutex_unlock(&rooms.lock);
            plugin_worker_receive_message();
            pthread_mutex_lock(&rooms.lock);
        }
    }
    int descriptor = rooms.slots[slot].descriptor;
    rooms.slots[slot].room = 0;
    rooms.slots[slot].used = room;
    pthread_mutex_unlock(&rooms.lock);
    return descriptor;
}

/* The host then counts the memory of the room as free, so the descriptor is not kept, even if it comes later. */
static void leave(uint32_t room) {
    uint32_t slot = room % PLUGIN_WIRE_ROOMS;
    pthread_mutex_lock(&rooms.lock);
    if (rooms.slots[slot].room == room) {
        close(rooms.slots[slot].descriptor);
        rooms.slots[slot].room = 0;
    }
    rooms.slots[slot].used = room;
    pthread_mutex_unlock(&rooms.lock);
    plugin_worker_announce(PLUGIN_WIRE_LEFT | room);
}

void plugin_worker_use_rooms(void) { plugin_wire_set_rooms(plugin_worker_wire, take, leave); }
