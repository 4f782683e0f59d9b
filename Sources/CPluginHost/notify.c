/* Messages to the service manager. See plugin_host_notify.h. */
#define _GNU_SOURCE
#include "plugin_host_notify.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

int plugin_host_notify(const char *address, const char *message) {
    struct sockaddr_un target = {.sun_family = AF_UNIX};
    size_t length = strlen(address);
    if (length < 2 || (address[0] != '/' && address[0] != '@')) return EAFNOSUPPORT;
    if (length >= sizeof target.sun_path) return ENAMETOOLONG;
    memcpy(target.sun_path, address, length);
    /* An abstract name begins with a zero, and ends where the address ends. */
    if (address[0] == '@') target.sun_path[0] = 0;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (address[0] == '/'));
    int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return errno;
    ssize_t sent;
    do
        sent = sendto(
            descriptor, message, strlen(message), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&target, size);
    while (sent < 0 && errno == EINTR);
    int error = sent < 0 ? errno : 0;
    close(descriptor);
    return error;
}

uint64_t plugin_host_monotonic_microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int plugin_host_hangup(void) {
    struct sigaction present;
    if (sigaction(SIGHUP, NULL, &present) == 0 && present.sa_handler == SIG_IGN) return PLUGIN_HOST_HANGUP_IGNORED;
    int terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0) return PLUGIN_HOST_HANGUP_OF_SERVICE;
    close(terminal);
    return PLUGIN_HOST_HANGUP_OF_TERMINAL;
}
