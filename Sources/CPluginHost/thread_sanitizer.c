// In builds with the thread sanitizer: reports to it the ordering that a Mutex of Swift's Synchronization module
// provides.
//
// The uncontended path is compiled into the code that uses a Mutex, and the sanitizer sees it. The contended path is
// compiled in the toolchain, without the sanitizer, so what a thread did before it unlocked would seem unordered to the
// thread that waited for it. These definitions take precedence over those of the toolchain, call them, and add the
// ordering.

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)

#define _GNU_SOURCE
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <stdbool.h>
#include <stdint.h>

#define swift_method __attribute__((swiftcall))
#define swift_self __attribute__((swift_context)) void *
#define name_of_lock "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define name_of_try_lock "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define name_of_unlock "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

// Weak, for programs that link the toolchain's definitions statically.
swift_method __attribute__((weak)) void lock(uint32_t thread, swift_self mutex) __asm__(name_of_lock);
swift_method __attribute__((weak)) bool try_lock(swift_self mutex) __asm__(name_of_try_lock);
swift_method __attribute__((weak)) void unlock(swift_self mutex) __asm__(name_of_unlock);

static swift_method void (*next_lock)(uint32_t, swift_self);
static swift_method bool (*next_try_lock)(swift_self);
static swift_method void (*next_unlock)(swift_self);

// Not when a Mutex is used: dlsym waits while the constructor of a library runs, which may wait for a Mutex.
__attribute__((constructor)) static void find_next(void) {
    next_lock = dlsym(RTLD_NEXT, name_of_lock);
    next_try_lock = dlsym(RTLD_NEXT, name_of_try_lock);
    next_unlock = dlsym(RTLD_NEXT, name_of_unlock);
}

swift_method void lock(uint32_t thread, swift_self mutex) {
    if (!next_lock) find_next(); // in the constructor of a library that the program needs
    next_lock(thread, mutex);
    __tsan_acquire(mutex);
}

swift_method bool try_lock(swift_self mutex) {
    if (!next_try_lock) find_next();
    bool is_locked = next_try_lock(mutex);
    if (is_locked) __tsan_acquire(mutex);
    return is_locked;
}

swift_method void unlock(swift_self mutex) {
    if (!next_unlock) find_next();
    __tsan_release(mutex);
    next_unlock(mutex);
}

#endif
#endif
