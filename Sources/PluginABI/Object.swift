public import CPluginABI

/// A reference-counted handle of something that lives in a module: a result with actions of its own, or a callback.
///
/// The host mints the handle and checks every call on it like any other. The object, and the generation of the module
/// that made it, live until the last `Object` that names it is gone, also after that module was replaced.
public final class Object: Sendable {
    /// The number that names the object across the border. Never 0.
    public let handle: plugin_object
    /// The host's table; it lives as long as the process.
    @usableFromInline nonisolated(unsafe) let host: UnsafePointer<plugin_host>

    /// Takes over one hold that the caller has on the handle.
    @usableFromInline init(adopting handle: plugin_object, host: UnsafePointer<plugin_host>) {
        self.handle = handle
        self.host = host
    }

    /// Adds a hold on a handle that was borrowed.
    @usableFromInline convenience init(retaining handle: plugin_object, host: UnsafePointer<plugin_host>) {
        _ = host.pointee.object_retain(host, handle)
        self.init(adopting: handle, host: host)
    }

    deinit { _ = host.pointee.object_release(host, handle) }
}

extension Object: Hashable {
    public static func == (left: Object, right: Object) -> Bool { left.handle == right.handle }
    public func hash(into hasher: inout Hasher) { hasher.combine(handle) }
}
