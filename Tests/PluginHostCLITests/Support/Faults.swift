import Foundation

@testable import TestSupport

/// Makes system calls of the program fail, without privileges, through a library that is loaded before the C library
/// (`LD_PRELOAD`) and replaces the calls.
///
/// A fault lasts as long as a folder contains a file with the name of the fault, so that a test can begin and end it
/// while the program runs. The variable `FAULTS` names the folder; the content of the file says where the fault occurs.
struct Faults {
    enum Fault: String, CaseIterable {
        /// There is no room for files inside the folder: `ENOSPC`.
        case full
        /// The libraries whose paths contain the text cannot be opened, as when there are too many maps.
        case maps
        /// The second half of the files whose paths end with the text cannot be read: `EIO`.
        case read
        /// The files whose paths end with the text become longer each time they are copied.
        case change
        /// No inotify instance is available: `EMFILE`.
        case instances
        /// No inotify watch is available: `ENOSPC`.
        case watches
    }

    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// The variables that the program needs in its environment.
    var environment: [String: String] {
        get throws {
            let library = try CFixture.build(Self.source, ["-O1", "-ldl"], name: "libfaults.so")
            // Otherwise, the library of a sanitizer insists on being loaded first.
            let options = ProcessInfo.processInfo.environment["ASAN_OPTIONS"].map { "\($0):" } ?? ""
            return [
                "LD_PRELOAD": library, "FAULTS": folder.path,
                "ASAN_OPTIONS": options + "verify_asan_link_order=0:detect_leaks=0",
            ]
        }
    }

    func begin(_ fault: Fault, _ place: String = "") throws {
        try folder.file(".\(fault.rawValue)", Data(place.utf8))
        rename("\(folder.path)/.\(fault.rawValue)", "\(folder.path)/\(fault.rawValue)")
    }

    func end(_ fault: Fault) { unlink("\(folder.path)/\(fault.rawValue)") }

    private static let source = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <errno.h>
        #include <fcntl.h>
        #include <limits.h>
        #include <linux/fs.h>
        #include <stdarg.h>
        #include <stdint.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/inotify.h>
        #include <sys/stat.h>
        #include <sys/syscall.h>
        #include <unistd.h>

        /* Whether a fault lasts, and what its file says. Makes system calls instead of calls that are replaced. */
        static int fault(const char *name, char place[PATH_MAX]) {
            const char *folder = getenv("FAULTS");
            char path[PATH_MAX];
            if (!folder || snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return 0;
            int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
            if (file < 0) return 0;
            long count = syscall(SYS_read, file, place, PATH_MAX - 1);
            syscall(SYS_close, file);
            place[count > 0 ? count : 0] = 0;
            return 1;
        }

        static int path_of(int file, char path[PATH_MAX]) {
            char link[64];
            snprintf(link, sizeof link, "/proc/self/fd/%d", file);
            ssize_t count = readlink(link, path, PATH_MAX - 1);
            path[count > 0 ? count : 0] = 0;
            return count > 0;
        }

        static int is_full(int file) {
            char place[PATH_MAX], path[PATH_MAX];
            return fault("full", place) && path_of(file, path) && strncmp(path, place, strlen(place)) == 0;
        }

        /* Whether a fault affects a file at a position, which must be in its second half. */
        static int strikes(const char *name, int file, off_t position) {
            char place[PATH_MAX], path[PATH_MAX];
            if (!fault(name, place) || !path_of(file, path)) return 0;
            size_t count = strlen(path), end = strlen(place);
            struct stat status;
            return count >= end && strcmp(path + count - end, place) == 0 && fstat(file, &status) == 0
                && position >= status.st_size / 2;
        }

        /* Whether reading at a position fails. */
        static int is_broken(int file, off_t position) { return strikes("read", file, position); }

        /* Writes to a file as another program would. */
        static void change(int file) {
            char path[PATH_MAX];
            if (!path_of(file, path)) return;
            int other = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CLOEXEC);
            if (other < 0) return;
            syscall(SYS_write, other, "", 1);
            syscall(SYS_close, other);
        }

        static off_t position_of(int file) { return lseek(file, 0, SEEK_CUR); }

        /* Shortens a read so that it ends at the middle of the file, where a fault begins. */
        static size_t until_middle(int file, off_t position, size_t size) {
            char place[PATH_MAX];
            struct stat status;
            if ((!fault("read", place) && !fault("change", place)) || fstat(file, &status) != 0) return size;
            off_t rest = status.st_size / 2 - position;
            return rest > 0 && (off_t)size > rest ? (size_t)rest : size;
        }

        /* True once for each reading of the file, since `until_middle` makes a read begin there. */
        static int is_middle(int file, off_t position) {
            struct stat status;
            return fstat(file, &status) == 0 && position == status.st_size / 2;
        }

        static ssize_t fail(int code) {
            errno = code;
            return -1;
        }

        ssize_t write(int file, const void *bytes, size_t size) {
            if (is_full(file)) return fail(ENOSPC);
            return syscall(SYS_write, file, bytes, size);
        }

        ssize_t read(int file, void *bytes, size_t size) {
            char place[PATH_MAX];
            if (!fault("read", place) && !fault("change", place)) return syscall(SYS_read, file, bytes, size);
            off_t position = position_of(file);
            if (is_broken(file, position)) return fail(EIO);
            if (is_middle(file, position) && strikes("change", file, position)) change(file);
            return syscall(SYS_read, file, bytes, until_middle(file, position, size));
        }

        /* A file that is cloned is not read, so no clone is allowed. */
        int ioctl(int file, unsigned long request, ...) {
            va_list arguments;
            va_start(arguments, request);
            long argument = va_arg(arguments, long);
            va_end(arguments);
            if (request == FICLONE) return (int)fail(EOPNOTSUPP);
            return (int)syscall(SYS_ioctl, file, request, argument);
        }

        int inotify_init1(int flags) {
            char place[PATH_MAX];
            if (fault("instances", place)) return (int)fail(EMFILE);
            return (int)syscall(SYS_inotify_init1, flags);
        }

        int inotify_add_watch(int file, const char *path, uint32_t mask) {
            char place[PATH_MAX];
            if (fault("watches", place)) return (int)fail(ENOSPC);
            return (int)syscall(SYS_inotify_add_watch, file, path, mask);
        }

        static __thread char message[PATH_MAX + 128];

        void *dlopen(const char *path, int mode) {
            char place[PATH_MAX];
            if (path && fault("maps", place) && strstr(path, place)) {
                snprintf(message, sizeof message, "%s: failed to map segment from shared object", path);
                return NULL;
            }
            void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
            return next(path, mode);
        }

        char *dlerror(void) {
            static __thread char told[PATH_MAX + 128];
            if (message[0]) {
                strcpy(told, message);
                message[0] = 0;
                return told;
            }
            char *(*next)(void) = (char *(*)(void))dlsym(RTLD_NEXT, "dlerror");
            return next();
        }
        """
}
