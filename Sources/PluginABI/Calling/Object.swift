/// A reference-counted handle to a result that lives in a module and has actions of its own, or to a callback.
///
/// The host issues the handle, and checks a call to the object like any other call. The object, and the generation of
/// the module that made it, live until the last `Object` with this handle is gone, even if the module is replaced.
public final class Object: Sendable {
    /// The number that identifies the object across the boundary. 0 only for a callback that could not be made.
    public let handle: plugin_object
    /// The host's table, which lives as long as the process.
    @usableFromInline nonisolated(unsafe) let host: UnsafePointer<plugin_host>

    /// Takes over one of the caller's references.
    @usableFromInline package init(adopting handle: plugin_object, host: UnsafePointer<plugin_host>) {
        self.handle = handle
        self.host = host
    }

    /// Retains a borrowed handle.
    @usableFromInline package convenience init(retaining handle: plugin_object, host: UnsafePointer<plugin_host>) {
        _ = host.pointee.object_retain(host, handle)
        self.init(adopting: handle, host: host)
    }

    deinit { _ = host.pointee.object_release(host, handle) }
}

extension Object: Hashable {
    public static func == (left: Object, right: Object) -> Bool { left.handle == right.handle }
    public func hash(into hasher: inout Hasher) { hasher.combine(handle) }
}

extension Object {
    /// Calls a synchronous action of the object and returns its result.
    ///
    /// - Parameters:
    ///   - action: The name of an action of the object's type.
    ///   - parameters: By name or by position.
    ///   - context: The context of the parent call. Default: the call of the action that runs on this thread, if any.
    ///   - timeout: The time that the call may take. Default: none.
    /// - Throws: The errors of ``HostContext/perform(_:_:_:timeout:)``.
    @discardableResult
    public func perform(
        _ action: String, _ parameters: Parameters = [:], in context: HostContext? = nil, timeout: Duration? = nil
    ) throws(PluginError) -> Value {
        try HostContext(host: host, call: context?.call ?? 0)
            .perform(.object(self, action), parameters, timeout: timeout)
    }

    /// Calls an action of the object, synchronous or asynchronous, without blocking a thread.
    @discardableResult
    public func call(
        _ action: String, _ parameters: Parameters = [:], in context: HostContext? = nil, timeout: Duration? = nil
    ) async throws(PluginError) -> Value {
        try await HostContext(host: host, call: context?.call ?? 0)
            .call(.object(self, action), parameters, timeout: timeout)
    }
}

extension HostContext {
    /// Makes an object of a type that this module's manifest declares.
    ///
    /// - Throws: ``PluginError/Code/unknownObject`` if the manifest declares no such ``ObjectType``, or if 16 million
    ///   objects exist.
    public func object<Instance: Sendable>(_ type: String, _ instance: Instance) throws(PluginError) -> Object {
        let pointer = InstanceBox.retained(instance)
        let handle = type.withPluginString { host.pointee.object_create(host, $0, pointer, { destroyInstance($0) }) }
        guard handle != 0 else {
            destroyInstance(pointer)
            throw PluginError(
                .unknownObject,
                "No object of the type “\(type.shortened)” can be made: the manifest of \(moduleName) declares no such "
                    + "type, or too many objects exist.")
        }
        return Object(adopting: handle, host: host)
    }
}
