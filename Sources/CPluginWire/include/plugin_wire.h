/*
 * plugin_wire.h - messages between a host and the process that runs an isolated module (its worker); a scan process
 * uses plugin_scan.h instead
 *
 * Both sides share memory with channels. A channel belongs to one thread of the host and one of the worker while a call
 * runs on it: they take turns, and the side that waits also serves the requests of the other one, so nested calls in
 * either direction run on the threads that wait. One-way messages of the host are byte strings on a socket.
 *
 * Values travel in canonical pre-order: a block of 16-byte values, followed for each one, in order, by what it
 * contains, 8-aligned. Pointers are not sent: the reader assigns them from its own position, so there is no offset to
 * trust, and nothing can be shared or circular. The host copies a message once into memory of its own, and checks the
 * copy. The pointers of an accepted message can be read; kinds, texts and objects are checked by the code that uses the
 * values. The worker trusts the host and reads small messages in place; while calls are nested, the host writes each
 * further message behind those that the worker still reads. If the only value of a message of the host in a channel is a
 * number, a truth value or null, it is in the head of the message.
 *
 * Values that take more bytes than a channel has are in a room: memory of their own, a memfd that the host creates for
 * either direction. The message names the room by its number; the worker gets the descriptor over the socket. The
 * reader maps a room privately and copies nothing. Its content can no longer change: the host seals its own rooms
 * before it sends them, and those of the worker before it reads them.
 */
#ifndef PLUGIN_WIRE_H
#define PLUGIN_WIRE_H

#include "plugin_abi.h"

/* The channels for calls of the host, and for requests that threads of the module make on their own. */
#define PLUGIN_WIRE_DOWN_CHANNELS 128u
#define PLUGIN_WIRE_UP_CHANNELS 128u
#define PLUGIN_WIRE_CHANNELS (PLUGIN_WIRE_DOWN_CHANNELS + PLUGIN_WIRE_UP_CHANNELS)
/* The most bytes that the values of a message take in a channel or on the socket; larger ones are in a room. */
#define PLUGIN_WIRE_CHANNEL_BYTES 524224u
/* The most bytes that the values of a message may take, in all. */
#define PLUGIN_WIRE_MAX_MIB 256
#define PLUGIN_WIRE_MAX_BYTES ((uint32_t)PLUGIN_WIRE_MAX_MIB << 20)
/* How many rooms a worker may have at a time, and how many bytes they may take. */
#define PLUGIN_WIRE_ROOMS 64u
#define PLUGIN_WIRE_ROOMS_GIB 1
/* The most bytes that the description of a module may take. */
#define PLUGIN_WIRE_DESCRIPTION_MIB 4
/* The descriptors of the memory and of the socket in a worker. */
#define PLUGIN_WIRE_MEMORY 3
#define PLUGIN_WIRE_SOCKET 4

/* The kinds of messages, with the members that they use besides `values`. */
enum plugin_wire_kind {
    /* Calls of the host; the worker answers with RETURN. */
    PLUGIN_WIRE_CALL = 1, /* a: the function; scalar: the instance; token, b: deadline, flags: of plugin_call, and
                           * PLUGIN_WIRE_OF_OBJECT; the answer is SCALAR if the result was written in place, and has
                           * its kind in a */
    PLUGIN_WIRE_CALLBACK, /* a: the callback; otherwise like CALL */
    PLUGIN_WIRE_MAKE,     /* a: the factory; token, b, flags; the answer has the instance in a */
    PLUGIN_WIRE_UNMAKE,   /* a: the factory; token: the instance */
    PLUGIN_WIRE_ACTIVATE, /* values: the context; the answer has the result in a */
    PLUGIN_WIRE_DEACTIVATE,
    /* One-way messages of the host. All except SERVE are sent in a channel instead, and answered with RETURN, if the
     * host's thread is serving a request of the worker there. */
    PLUGIN_WIRE_SERVE = 32, /* a: a channel on which calls arrive from now on */
    PLUGIN_WIRE_COMPLETE,   /* a: the worker's number of the request; the outcome; b: the number for DONE, or 0 */
    PLUGIN_WIRE_CANCELLED,  /* a: the worker's number of the handler; b: whether the call was cancelled */
    PLUGIN_WIRE_DESTROY,    /* a: an object or callback */
    PLUGIN_WIRE_CONFINE,    /* the first message, before a file is opened; values: the limits, see below */
    PLUGIN_WIRE_HAND_OVER,  /* a: a room, whose descriptor comes with the message; only over the socket */
    /* Messages of the worker. The host answers each with ANSWER, except RETURN. */
    PLUGIN_WIRE_RETURN = 64,
    PLUGIN_WIRE_CONFINED,      /* the first message; values: a list of the parts of the sandbox that are missing */
    PLUGIN_WIRE_DESCRIBE,      /* the second one; values: what the entry function has returned */
    PLUGIN_WIRE_FAIL,          /* or this one; a: PLUGIN_WIRE_FAIL_...; values: details */
    PLUGIN_WIRE_PERFORM,       /* token: the parent; values: the request */
    PLUGIN_WIRE_BEGIN,         /* the same; a: the worker's number of the request; the answer has a token */
    PLUGIN_WIRE_CANCEL,        /* token */
    PLUGIN_WIRE_RESOLVE,       /* token; values: the result */
    PLUGIN_WIRE_REJECT,        /* token; values: the error */
    PLUGIN_WIRE_ON_CANCEL,     /* token; a: the worker's number of the handler */
    PLUGIN_WIRE_OBJECT,        /* a: the worker's number of the object; values: its type; the answer has a handle in a */
    PLUGIN_WIRE_NEW_CALLBACK,  /* a: the worker's number of the callback; flags; the answer has a handle in a */
    PLUGIN_WIRE_RETAIN,        /* a: the object */
    PLUGIN_WIRE_RELEASE,       /* a: the object */
    PLUGIN_WIRE_DONE,          /* a: the outcome with objects that has been received */
    PLUGIN_WIRE_LOG,           /* token; a: the level; values: the message */
    PLUGIN_WIRE_MARK,          /* b: the duration; values: the name */
    PLUGIN_WIRE_CONFIGURATION, /* the answer has the map */
    PLUGIN_WIRE_BIND,          /* values: target, action; the answer has a number in a */
    PLUGIN_WIRE_BOUND,         /* a: the bound action; values: the arguments; the answer is the outcome, and has in a
                                * whether it was written in place */
    PLUGIN_WIRE_RECEIVER,      /* token; the answer has an object in a */
    PLUGIN_WIRE_PARENT,        /* a: the object; token: its parent */
    PLUGIN_WIRE_INFO,          /* values: name, version of a service */
    PLUGIN_WIRE_REQUEST,       /* token: the parent; values: name, version */
    PLUGIN_WIRE_AWAIT,         /* token: the parent; a: the worker's number of the request; b: timeout; values: the same */
    PLUGIN_WIRE_CAN_OPEN,      /* token: the parent; values: the request */
    PLUGIN_WIRE_BUILD,         /* values: the request */
    PLUGIN_WIRE_DROP,          /* values: a target, whose shared instance is dropped */
    PLUGIN_WIRE_CALL_CONTEXT,  /* token; the answer has in a whether there is one; values: traceparent, tracestate, caller */
    PLUGIN_WIRE_ROOM,          /* b: how many bytes; the answer has a room in a, or 0 if there can be none */
    /* Answer of the host. Most have a status or a number in a. */
    PLUGIN_WIRE_ANSWER = 128,
};

/* The values of CONFINE, in this order: the sandbox; the most bytes of memory, seconds of processor time, descriptors,
 * and processes besides its own, each 0 for none or no limit; lists of the paths of its own libraries, of those that it
 * may read, and of those that it may change; the network, and lists of the ports to which it may connect and on which
 * it may listen. */
#define PLUGIN_WIRE_LIMITS 11
/* The most threads of a sandboxed process and of the processes that it starts, in all. The kernel's limit is this
 * number plus the number of processes that may be started. */
#define PLUGIN_WIRE_THREADS_MAX 1024
#define PLUGIN_WIRE_SANDBOX_NONE 0
#define PLUGIN_WIRE_SANDBOX_POSSIBLE 1
#define PLUGIN_WIRE_SANDBOX_REQUIRED 2
#define PLUGIN_WIRE_NETWORK_NONE 0
#define PLUGIN_WIRE_NETWORK_PORTS 1
#define PLUGIN_WIRE_NETWORK_ALL 2

/* Why a file is not served. */
#define PLUGIN_WIRE_FAIL_OPEN 1 /* the details are those of the dynamic linker */
#define PLUGIN_WIRE_FAIL_NO_ENTRY 2
#define PLUGIN_WIRE_FAIL_NULL 3
#define PLUGIN_WIRE_FAIL_TOO_LARGE 4
#define PLUGIN_WIRE_FAIL_UNCONFINED 5 /* a required part of the sandbox is missing: the details say which */

/* Flags of RETURN, COMPLETE and of answers that are outcomes; calls and requests have other flags. */
#define PLUGIN_WIRE_SCALAR 1u /* the outcome is `scalar` */
#define PLUGIN_WIRE_VALUE 2u  /* the outcome is the first of `values` */
#define PLUGIN_WIRE_ERROR 4u  /* the outcome is an error: `values` are code, message, source */

/* A flag of CALL: the instance is an object that the module has made. */
#define PLUGIN_WIRE_OF_OBJECT 0x80000000u

/* The worker sends the numbers of channels over its socket, and with this flag those of rooms that it has left. */
#define PLUGIN_WIRE_LEFT 0x80000000u

typedef struct plugin_wire_rooms plugin_wire_rooms;

/* A message. Its receiver disposes of it, and must not move it while its values are read: they may be in `only`. */
typedef struct plugin_wire_message {
    uint32_t kind; /* PLUGIN_WIRE_... */
    uint32_t flags;
    uint64_t token;
    uint64_t a;
    int64_t b;
    plugin_value scalar;
    const plugin_value *values;
    uint32_t count;
    uint32_t has_objects; /* set when the message is read or copied: whether `values` contain an object */
    uint32_t room;        /* the number of the room in which the values are; 0 for none */
    uint32_t length;      /* how many bytes they take there; with `in_use`, the previous `*in_use` */
    plugin_wire_rooms *rooms; /* of which that room is one */
    uint32_t *in_use;         /* for values in the channel: how many bytes there are in use */
    plugin_value only;        /* in the worker: the value that came with the head; `values` then points to it */
} plugin_wire_message;

/* The shared memory, as one side sees it. */
typedef struct plugin_wire plugin_wire;

#define PLUGIN_WIRE_HOST 0u
#define PLUGIN_WIRE_WORKER 1u

/* Creates the memory, sealed against changes of its size. Returns a descriptor, or -1 and sets errno. */
int plugin_wire_create(void);
/* Maps the memory. Returns null, and sets errno, if that is not possible. The descriptor may be closed afterwards. */
plugin_wire *plugin_wire_map(int descriptor, uint32_t side);
/* Removes the mapping, which no thread may use afterwards. */
void plugin_wire_unmap(plugin_wire *wire);
/* Notes that the other side has ended, and wakes all threads that wait for it here. */
void plugin_wire_end(plugin_wire *wire);

/* Writes a message into a channel and passes the turn. Returns 0; 1, without doing anything, if its values are not in a
 * room and take more than PLUGIN_WIRE_CHANNEL_BYTES, or more than is free while the worker reads other values. */
int plugin_wire_send(plugin_wire *wire, uint32_t channel, const plugin_wire_message *message);

#define PLUGIN_WIRE_ARRIVED 0
#define PLUGIN_WIRE_ENDED 1 /* the other side has ended */
#define PLUGIN_WIRE_LATE 2
#define PLUGIN_WIRE_SPOILED 3 /* the turn is neither side's; only the host looks for that */

/* Waits for the turn, until the deadline at the latest: CLOCK_MONOTONIC, in nanoseconds; 0 for none. Returns
 * PLUGIN_WIRE_... */
int plugin_wire_await(plugin_wire *wire, uint32_t channel, int64_t deadline);
/* For the worker: waits for the answer to a request, or for a message within it. */
void plugin_wire_await_answer(plugin_wire *wire, uint32_t channel);
/* Returns how many messages this side has sent and received in the channels; UINT64_MAX while the number is odd in one of
 * them. A call within which the other side makes one of its own has an even number: whoever wants to know whether there
 * are calls must also look at those that run. May be called by any thread. */
uint64_t plugin_wire_traffic(const plugin_wire *wire);
/* Reads the message in a channel whose turn has come: the host copies it. The worker disposes of the messages on a
 * channel in reverse order, and of each one before it sends the next message there, unless that message is nested.
 * Returns 0, or 1 if the message is not valid. */
int plugin_wire_receive(plugin_wire *wire, uint32_t channel, plugin_wire_message *message);

/* Frees the values of a message that was received, unpacked or copied, or put into a room and not sent. */
void plugin_wire_dispose(plugin_wire_message *message);

/* Returns how many bytes the values of a message take; UINT32_MAX if more than PLUGIN_WIRE_MAX_BYTES. */
uint32_t plugin_wire_measure(const plugin_wire_message *message);

/* Replaces the values of a message with a copy. Returns 0; 1 if they take more than `limit` bytes or there is no
 * memory: the message then has no values. */
int plugin_wire_copy(plugin_wire_message *message, uint32_t limit);

/* Makes the bytes of a one-way message, which the caller frees. The first eight bytes are the number of the bytes that
 * follow. Returns null if the values take too many bytes, or there is no memory. */
uint8_t *plugin_wire_pack(const plugin_wire_message *message, size_t *count);
/* Reads the `count` bytes that follow the first eight. Without shared memory (null), there are no rooms. Returns 0, or
 * 1 if they are not valid. */
int plugin_wire_unpack(plugin_wire *wire, const uint8_t *bytes, size_t count, plugin_wire_message *message);

/* -------------------------------------------------------------------------------------- rooms */

#define PLUGIN_WIRE_PUT 0
#define PLUGIN_WIRE_TOO_LARGE 1 /* the values take more than PLUGIN_WIRE_MAX_BYTES */
#define PLUGIN_WIRE_NO_ROOM 2   /* there are too many rooms, or there is no memory */

/* For the host: moves the values of a message, which are borrowed, into a new room. Returns PLUGIN_WIRE_PUT; otherwise
 * does nothing, and returns the reason. */
int plugin_wire_put(plugin_wire *wire, plugin_wire_message *message);
/* For the host: returns the descriptor of a room that it has put values into, to be sent to the worker and closed; -1
 * if that has happened before. From now on the room is the worker's. */
int plugin_wire_lend(plugin_wire *wire, uint32_t room);
/* For the host: makes a room for values of the worker. Returns its number, and a descriptor like that of
 * plugin_wire_lend; 0 if that is not possible. */
uint32_t plugin_wire_give(plugin_wire *wire, int64_t bytes, int *descriptor);
/* For the host: notes that the worker no longer uses a room with values of the host. Returns 0, or 1 if the worker had
 * no such room. */
int plugin_wire_leave(plugin_wire *wire, uint32_t room);
/* For the host: closes all rooms, after the end of the worker. There will be no others. */
void plugin_wire_close_rooms(plugin_wire *wire);
/* For the host: sends bytes over a socket, as many as it takes at once, and a descriptor with the first one, unless
 * that is -1. Returns how many; -1, and sets errno. */
int64_t plugin_wire_post(int socket, const void *bytes, size_t count, int descriptor);

/* For the worker: sets the functions with which it takes the descriptor of a room, possibly after waiting, and tells
 * the host that it has left a room. */
void plugin_wire_set_rooms(plugin_wire *wire, int (*take)(uint32_t room), void (*leave)(uint32_t room));
/* For the worker: moves the values of a message, which are borrowed, into a room that it was given for them. Returns 0,
 * or 1 if the room cannot be mapped. */
int plugin_wire_fill(plugin_wire *wire, uint32_t room, plugin_wire_message *message);
/* For the worker: receives bytes from a socket, and a descriptor that comes with them; otherwise does not touch
 * `descriptor`. Returns how many; -1, and sets errno. */
int64_t plugin_wire_hear(int socket, void *bytes, size_t count, int *descriptor);

/* ----------------------------------------------------------------------------------- threads */

/* The channels on which this thread serves requests of workers: the innermost first. */
typedef struct plugin_wire_frame {
    plugin_wire *wire;
    uint32_t channel;
    struct plugin_wire_frame *outer;
} plugin_wire_frame;

plugin_wire_frame *plugin_wire_frames(void);
void plugin_wire_set_frames(plugin_wire_frame *frame);

#endif
