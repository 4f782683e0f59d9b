#define _GNU_SOURCE
#include "messages.h"
#include "values.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A flag in `processor`: the worker's thread should run on that processor, too. */
#define TOGETHER 0x80000000u

typedef struct channel {
    _Atomic uint32_t turn; /* counts the messages: odd after one of the side that begins */
    uint32_t processor;    /* on which the message was sent, with that flag */
    wire_head head;
    _Atomic uint32_t sleeps[2]; /* whether each side waits in the kernel */
    /* How many bytes at the beginning of the host's part the worker still reads: the host writes behind them. */
    uint32_t in_use;
    uint32_t rooms[2]; /* with the values of a message, by the side that sends it */
    uint8_t unused[44];
    uint8_t bytes[2][PLUGIN_WIRE_CHANNEL_BYTES]; /* the values, by the side that writes them */
} channel;

_Static_assert(offsetof(channel, sleeps) == 64, "the turn and the head are one line of the cache");
_Static_assert(sizeof(channel) % 4096 == 0, "channels do not share pages");

#define MEMORY_SIZE ((size_t)PLUGIN_WIRE_CHANNELS * sizeof(channel))

struct plugin_wire {
    channel *channels;
    plugin_wire_rooms *rooms;
    uint32_t side, processors; /* how many this process may use */
    _Atomic int has_ended;
    /* For each channel, changed by the thread that the channel belongs to: the number of messages so far, and whether
     * the other side last ran on another processor. */
    _Atomic uint32_t messages[PLUGIN_WIRE_CHANNELS];
    uint8_t is_apart[PLUGIN_WIRE_CHANNELS];
    uint8_t short_looks[PLUGIN_WIRE_CHANNELS]; /* for how many answers the worker looks only briefly */
    uint32_t in_use[PLUGIN_WIRE_CHANNELS]; /* what the worker tells the host */
    /* Whether a thread waits. Like `sleeps`, but out of reach of the other side. */
    _Atomic uint8_t waits[PLUGIN_WIRE_CHANNELS];
};

/* -------------------------------------------------------------------------------------- memory */

int plugin_wire_create(void) {
    int descriptor = wire_memory_create("pluginhost.channels", MEMORY_SIZE);
    if (descriptor >= 0) (void)fcntl(descriptor, F_ADD_SEALS, F_SEAL_SEAL);
    return descriptor;
}

plugin_wire *plugin_wire_map(int descriptor, uint32_t side) {
    plugin_wire *wire = calloc(1, sizeof *wire);
    if (!wire) return NULL;
    wire->rooms = wire_rooms_create();
    void *memory = mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
    if (!wire->rooms || memory == MAP_FAILED) {
        if (memory != MAP_FAILED) munmap(memory, MEMORY_SIZE);
        if (wire->rooms) wire_rooms_release(wire->rooms);
        free(wire);
        return NULL;
    }
    (void)madvise(memory, MEMORY_SIZE, MADV_DONTFORK); /* a child of the host has no part in it */
    (void)madvise(memory, MEMORY_SIZE, MADV_DONTDUMP); /* nor has a core dump, whose end the callers would wait for */
    wire->channels = memory;
    wire->side = side;
    cpu_set_t allowed;
    wire->processors = sched_getaffinity(0, sizeof allowed, &allowed) ? UINT32_MAX : (uint32_t)CPU_COUNT(&allowed);
    return wire;
}

void plugin_wire_unmap(plugin_wire *wire) {
    if (!wire) return;
    munmap(wire->channels, MEMORY_SIZE);
    wire_rooms_close(wire->rooms);
    wire_rooms_release(wire->rooms);
    free(wire);
}

/* ------------------------------------------------------------------------------------- waiting */

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *limit) {
    return syscall(SYS_futex, word, operation, value, limit, NULL, FUTEX_BITSET_MATCH_ANY);
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* How long a thread looks for the turn before it sleeps, if the other side last ran on another processor: longer than
 * a short call takes, and about as long as waking up. On the same processor, looking would only delay the other side. */
enum { SPIN_NANOSECONDS = 20000 };
/* A worker looks longer for the answer to a request. If it fell asleep while the host called another worker for it, the
 * scheduler would move the threads of that call to its processor, and wake-ups between processors would take longer
 * than the call. If an answer takes longer than that, it looks only briefly for the next SHORT_LOOKS ones, so that slow
 * answers cost little processor time. */
enum { REQUEST_SPIN_NANOSECONDS = 150000, SHORT_LOOKS = 32 };

static int spin(channel *channel, uint32_t wanted, int64_t nanoseconds) {
    int64_t end = 0;
    for (;;) {
        for (int round = 0; round < 32; round++) {
            pause_briefly();
            if (atomic_load_explicit(&channel->turn, memory_order_acquire) == wanted) return 1;
        }
        int64_t time = now(); /* not before the first rounds: that would delay a short call */
        if (!end) end = time + nanoseconds;
        if (time >= end) return 0;
    }
}

void plugin_wire_end(plugin_wire *wire) {
    atomic_store(&wire->has_ended, 1);
    for (uint32_t index = 0; index < PLUGIN_WIRE_CHANNELS; index++) {
        if (!atomic_load(&wire->waits[index])) continue;
        /* The new turn keeps a thread from falling asleep after this wake-up. */
        atomic_store(&wire->channels[index].turn, UINT32_MAX);
        futex(&wire->channels[index].turn, FUTEX_WAKE_BITSET, INT32_MAX, NULL);
    }
}

/* The longest sleep of a thread of the host: the other side can make the futex skip the thread that should be woken. */
#define SLEEP_NANOSECONDS 2000000000

/* Returns the time until which this side may sleep, or 0. */
static int64_t end_of_sleep(const plugin_wire *wire, int64_t deadline) {
    if (wire->side != PLUGIN_WIRE_HOST) return deadline;
    int64_t end = now() + SLEEP_NANOSECONDS;
    return deadline && deadline < end ? deadline : end;
}

static int sleep_until(plugin_wire *wire, uint32_t index, uint32_t wanted, int64_t deadline) {
    channel *channel = &wire->channels[index];
    int result = PLUGIN_WIRE_ARRIVED;
    atomic_store(&wire->waits[index], 1);
    for (;;) {
        atomic_store(&channel->sleeps[wire->side], 1);
        uint32_t turn = atomic_load(&channel->turn);
        if (turn == wanted) break;
        if (atomic_load(&wire->has_ended)) result = PLUGIN_WIRE_ENDED;
        else if (turn != wanted - 1 && wire->side == PLUGIN_WIRE_HOST) result = PLUGIN_WIRE_SPOILED;
        else if (deadline && now() >= deadline) result = PLUGIN_WIRE_LATE;
        if (result != PLUGIN_WIRE_ARRIVED) break;
        int64_t end = end_of_sleep(wire, deadline);
        struct timespec limit = {end / 1000000000, end % 1000000000};
        futex(&channel->turn, FUTEX_WAIT_BITSET, turn, end ? &limit : NULL);
    }
    atomic_store_explicit(&wire->waits[index], 0, memory_order_relaxed);
    atomic_store_explicit(&channel->sleeps[wire->side], 0, memory_order_relaxed);
    return result;
}

static uint32_t messages_so_far(const plugin_wire *wire, uint32_t index) {
    return atomic_load_explicit(&wire->messages[index], memory_order_relaxed);
}

uint64_t plugin_wire_traffic(const plugin_wire *wire) {
    uint64_t sum = 0;
    for (uint32_t index = 0; index < PLUGIN_WIRE_CHANNELS; index++) {
        uint32_t count = messages_so_far(wire, index);
        if (count % 2) return UINT64_MAX;
        sum += count;
    }
    return sum;
}

static int await(plugin_wire *wire, uint32_t index, int64_t deadline, int has_asked) {
    channel *channel = &wire->channels[index];
    uint32_t wanted = messages_so_far(wire, index) + 1;
    int has_come = atomic_load_explicit(&channel->turn, memory_order_acquire) == wanted;
    if (!has_come && wire->is_apart[index]) {
        uint8_t *short_looks = &wire->short_looks[index];
        int is_long = has_asked && !*short_looks;
        has_come = spin(channel, wanted, is_long ? REQUEST_SPIN_NANOSECONDS : SPIN_NANOSECONDS);
        if (is_long && !has_come) *short_looks = SHORT_LOOKS;
        else if (has_asked && *short_looks) --*short_looks;
    }
    int result = has_come ? PLUGIN_WIRE_ARRIVED : sleep_until(wire, index, wanted, deadline);
    /* A process that the worker has started could still write messages in the worker's name. */
    if (wire->side == PLUGIN_WIRE_HOST && atomic_load(&wire->has_ended)) result = PLUGIN_WIRE_ENDED;
    if (result == PLUGIN_WIRE_ARRIVED) atomic_store_explicit(&wire->messages[index], wanted, memory_order_relaxed);
    return result;
}

int plugin_wire_await(plugin_wire *wire, uint32_t index, int64_t deadline) { return await(wire, index, deadline, 0); }

void plugin_wire_await_answer(plugin_wire *wire, uint32_t index) { (void)await(wire, index, 0, 1); }

/* --------------------------------------------------------------------------------- processors */

static __thread plugin_wire_frame *frames;

plugin_wire_frame *plugin_wire_frames(void) { return frames; }

void plugin_wire_set_frames(plugin_wire_frame *frame) { frames = frame; }

/* Whether a message of this thread begins a call into one worker while other workers wait for this thread, and more
 * threads take part than there are processors. */
static int is_crowded(const plugin_wire *wire, uint32_t index) {
    uint32_t threads = 2; /* of both sides */
    for (const plugin_wire_frame *frame = frames; frame; frame = frame->outer) {
        if (frame->wire == wire && frame->channel == index) return 0;
        threads++;
    }
    return frames && threads > wire->processors;
}

static uint32_t own_processor(void) {
    int processor = sched_getcpu();
    return processor < 0 ? 0 : (uint32_t)processor;
}

/* Moves this thread to another processor, and leaves it free to be moved again. Returns where it runs. */
static uint32_t move_to(uint32_t processor) {
    cpu_set_t allowed, wanted;
    if (processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed)) return own_processor();
    CPU_ZERO(&wanted);
    CPU_SET(processor, &wanted);
    if (CPU_ISSET(processor, &allowed) && sched_setaffinity(0, sizeof wanted, &wanted) == 0)
        (void)sched_setaffinity(0, sizeof allowed, &allowed);
    return own_processor();
}

/* Notes where the other side ran when it sent a message. If A calls B, and B calls C, three threads take turns; on two
 * processors, those that look for their turn would delay the one that has it. The worker therefore moves to the host's
 * processor, where neither side looks, and waking the other one takes only a change of context; A may look on another
 * processor. */
static void note_processor(plugin_wire *wire, uint32_t index, uint32_t sent) {
    uint32_t other = sent & ~TOGETHER, own = own_processor();
    if (other != own && sent & TOGETHER && wire->side == PLUGIN_WIRE_WORKER) own = move_to(other);
    wire->is_apart[index] = other != own;
}

/* ------------------------------------------------------------------------------------ messages */

/* Returns where the host writes its values. */
static uint32_t behind_used(const channel *channel) {
    uint32_t in_use = *(const volatile uint32_t *)&channel->in_use;
    return in_use % 8 == 0 && in_use <= PLUGIN_WIRE_CHANNEL_BYTES ? in_use : 0;
}

int plugin_wire_send(plugin_wire *wire, uint32_t index, const plugin_wire_message *message) {
    channel *channel = &wire->channels[index];
    wire_head head = wire_head_of(message);
    if (message->room) {
        channel->rooms[wire->side] = message->room;
        head.kind |= WIRE_IN_ROOM;
        head.length = message->length;
    } else if (wire->side == PLUGIN_WIRE_HOST && message->count == 1 && message->values->kind <= PLUGIN_KIND_DOUBLE) {
        head.kind |= WIRE_IN_HEAD | message->values->kind << 16;
        head.only = wire_bytes_of(message->values);
    } else if (message->count) {
        uint32_t start = wire->side == PLUGIN_WIRE_HOST ? behind_used(channel) : 0;
        wire_out out = {channel->bytes[wire->side] + start, 0, PLUGIN_WIRE_CHANNEL_BYTES - start, 0, 0};
        wire_put_values(&out, message->values, message->count, 0);
        if (out.has_failed) return 1;
        head.length = (uint32_t)out.used;
    }
    channel->head = head;
    /* Writing the same number again would take the line, which both sides have read, away from the host. */
    if (wire->side == PLUGIN_WIRE_WORKER && channel->in_use != wire->in_use[index])
        channel->in_use = wire->in_use[index];
    channel->processor = own_processor() | (is_crowded(wire, index) ? TOGETHER : 0);
    uint32_t turn = messages_so_far(wire, index) + 1;
    atomic_store_explicit(&wire->messages[index], turn, memory_order_relaxed);
    atomic_store(&channel->turn, turn);
    /* The other side resets this flag itself. If it were reset here, the other side could already be waiting for the
     * next turn. */
    if (atomic_load(&channel->sleeps[1 - wire->side])) futex(&channel->turn, FUTEX_WAKE_BITSET, 1, NULL);
    return 0;
}

/* The worker reads the host's values in place up to this offset. Beyond it, there is room for messages that arrive
 * during the reading. */
enum { IN_PLACE_MAX = PLUGIN_WIRE_CHANNEL_BYTES / 2 };

/* Makes a message of a head and the values in a channel. Returns 0, or 1 if they are not valid. */
static int make_in_place(plugin_wire *wire, uint32_t index, const wire_head *head, plugin_wire_message *message) {
    uint32_t *in_use = &wire->in_use[index];
    if (wire_read(head, wire->channels[index].bytes[PLUGIN_WIRE_HOST] + *in_use, message)) return 1;
    message->in_use = in_use;
    message->length = *in_use;
    *in_use += head->length;
    return 0;
}

int plugin_wire_receive(plugin_wire *wire, uint32_t index, plugin_wire_message *message) {
    channel *channel = &wire->channels[index];
    wire_head head;
    memset(message, 0, sizeof *message);
    /* The other side can change the head at any time: it is read once. */
    memcpy(&head, &channel->head, sizeof head);
    uint32_t processor = *(volatile uint32_t *)&channel->processor;
    __asm__ volatile("" ::: "memory");
    note_processor(wire, index, processor);
    if (head.kind & WIRE_IN_HEAD) return wire->side != PLUGIN_WIRE_WORKER || wire_make_only(&head, message);
    if (head.length > PLUGIN_WIRE_MAX_BYTES || (head.count == 0) != (head.length == 0)) return 1;
    if (head.kind & WIRE_IN_ROOM)
        return wire_make_of_room(wire->rooms, &head, *(volatile uint32_t *)&channel->rooms[1 - wire->side], message);
    uint32_t start = wire->in_use[index];
    if (head.length > PLUGIN_WIRE_CHANNEL_BYTES - start) return 1;
    if (wire->side == PLUGIN_WIRE_WORKER && head.count && start + head.length <= IN_PLACE_MAX)
        return make_in_place(wire, index, &head, message);
    uint8_t *bytes = NULL;
    if (head.count) {
        bytes = malloc(head.length);
        if (!bytes) return 1;
        memcpy(bytes, channel->bytes[1 - wire->side] + start, head.length);
    }
    return wire_make(&head, bytes, message);
}

int plugin_wire_unpack(plugin_wire *wire, const uint8_t *bytes, size_t count, plugin_wire_message *message) {
    wire_head head;
    memset(message, 0, sizeof *message);
    if (count < sizeof head) return 1;
    memcpy(&head, bytes, sizeof head);
    uint32_t room;
    if (head.kind & WIRE_IN_ROOM) {
        if (!wire || count != sizeof head + sizeof room) return 1;
        memcpy(&room, bytes + sizeof head, sizeof room);
        return wire_make_of_room(wire->rooms, &head, room, message);
    }
    if (head.length != count - sizeof head || (head.count == 0) != (head.length == 0)) return 1;
    uint8_t *copy = NULL;
    if (head.count) {
        copy = malloc(head.length);
        if (!copy) return 1;
        memcpy(copy, bytes + sizeof head, head.length);
    }
    return wire_make(&head, copy, message);
}

/* --------------------------------------------------------------------------------------- rooms */

int plugin_wire_put(plugin_wire *wire, plugin_wire_message *message) {
    uint32_t length = plugin_wire_measure(message);
    if (length == UINT32_MAX) return PLUGIN_WIRE_TOO_LARGE;
    uint32_t room = wire_rooms_put(wire->rooms, message, length);
    if (!room) return PLUGIN_WIRE_NO_ROOM;
    message->values = NULL;
    message->room = room;
    message->length = length;
    message->rooms = wire->rooms;
    return PLUGIN_WIRE_PUT;
}

int plugin_wire_lend(plugin_wire *wire, uint32_t room) { return wire_rooms_lend(wire->rooms, room); }

uint32_t plugin_wire_give(plugin_wire *wire, int64_t bytes, int *descriptor) {
    int is_sound = bytes > PLUGIN_WIRE_CHANNEL_BYTES && bytes <= PLUGIN_WIRE_MAX_BYTES;
    return is_sound ? wire_rooms_give(wire->rooms, (uint32_t)bytes, descriptor) : 0;
}

int plugin_wire_leave(plugin_wire *wire, uint32_t room) { return wire_rooms_leave(wire->rooms, room); }

void plugin_wire_close_rooms(plugin_wire *wire) { wire_rooms_close(wire->rooms); }

void plugin_wire_set_rooms(plugin_wire *wire, int (*take)(uint32_t), void (*leave)(uint32_t)) {
    wire_rooms_set(wire->rooms, take, leave);
}

int plugin_wire_fill(plugin_wire *wire, uint32_t room, plugin_wire_message *message) {
    uint32_t length = plugin_wire_measure(message);
    if (wire_rooms_fill(wire->rooms, room, message, length)) return 1;
    message->values = NULL;
    message->room = room;
    message->length = length;
    return 0;
}
