// In builds with the thread sanitizer: tells it what a Mutex of Swift's Synchronization module orders.
//
// The way without contention is compiled into who uses a Mutex, and the sanitizer sees it. The slow way is compiled in
// the toolchain, without the sanitizer: what a thread did before it unlocked would look unordered to the one that had
// waited for it. These definitions stand before those of the toolchain, call them, and add the order.

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

// Weak, for programs that the toolchain's own are linked into.
swift_method __attribute__((weak)) void lock(uint32_t thread, swift_self mutex) __asm__(name_of_lock);
swift_method __attribute__((weak)) bool try_lock(swift_self mutex) __asm__(name_of_try_lock);
swift_method __attribute__((weak)) void unlock(swift_self mutex) __asm__(name_of_unlock);

swift_method void lock(uint32_t thread, swift_self mutex) {
    swift_method void (*original)(uint32_t, swift_self) = dlsym(RTLD_NEXT, name_of_lock);
    original(thread, mutex);
    __tsan_acquire(mutex);
}

swift_method bool try_lock(swift_self mutex) {
    swift_method bool (*original)(swift_self) = dlsym(RTLD_NEXT, name_of_try_lock);
    bool is_locked = original(mutex);
    if (is_locked) __tsan_acquire(mutex);
    return is_locked;
}

swift_method void unlock(swift_self mutex) {
    swift_method void (*original)(swift_self) = dlsym(RTLD_NEXT, name_of_unlock);
    __tsan_release(mutex);
    original(mutex);
}

#endif
#endif
