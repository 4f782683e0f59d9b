// In builds with the thread sanitizer: tells it what a Mutex and an AtomicLazyReference of Swift's Synchronization
// module order.
//
// A Mutex without contention is compiled into who uses it, and the sanitizer sees it. Its slow way, and all of
// AtomicLazyReference, is compiled in the toolchain, without the sanitizer: what a thread did before it unlocked would
// look unordered to the one that had waited for it, and what made an object to those that load it. These definitions
// stand before those of the toolchain, call them, and add the order.

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
#define name_of_load "$s15Synchronization19AtomicLazyReferenceV4loadxSgyF"
#define name_of_store_if_nil "$s15Synchronization19AtomicLazyReferenceV10storeIfNilyxxnF"

// Weak, for programs that the toolchain's own are linked into.
swift_method __attribute__((weak)) void lock(uint32_t thread, swift_self mutex) __asm__(name_of_lock);
swift_method __attribute__((weak)) bool try_lock(swift_self mutex) __asm__(name_of_try_lock);
swift_method __attribute__((weak)) void unlock(swift_self mutex) __asm__(name_of_unlock);
swift_method __attribute__((weak)) void *load(const void *type, swift_self reference) __asm__(name_of_load);
swift_method __attribute__((weak)) void *store_if_nil(
    void *object, const void *type, swift_self reference) __asm__(name_of_store_if_nil);

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

swift_method void *load(const void *type, swift_self reference) {
    swift_method void *(*original)(const void *, swift_self) = dlsym(RTLD_NEXT, name_of_load);
    void *object = original(type, reference);
    __tsan_acquire(reference);
    return object;
}

swift_method void *store_if_nil(void *object, const void *type, swift_self reference) {
    swift_method void *(*original)(void *, const void *, swift_self) = dlsym(RTLD_NEXT, name_of_store_if_nil);
    __tsan_release(reference);
    void *stored = original(object, type, reference);
    __tsan_acquire(reference);
    return stored;
}

#endif
#endif
