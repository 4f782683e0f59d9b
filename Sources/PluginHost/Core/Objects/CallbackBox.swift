import PluginABI

/// A closure that was passed as a value: the instance of an object with a single action, which calls the closure.
final class CallbackBox {
    private let invoke: plugin_invoke
    private let data: UnsafeMutableRawPointer?
    private let destroy: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?

    init(
        invoke: @escaping plugin_invoke, data: UnsafeMutableRawPointer?,
        destroy: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
    ) {
        (self.invoke, self.data, self.destroy) = (invoke, data, destroy)
    }

    deinit { destroy?(data) }

    /// Returns the type of all callbacks of a generation. Its one action accepts any arguments and passes them on.
    static func type(in generation: Generation, isAsync: Bool) -> ObjectTypeEntry {
        let endpoint = Endpoint(own: "callback", of: generation, isAsync: isAsync, isRemote: true) {
            _, call, arguments, count in
            let box = Unmanaged<CallbackBox>.fromOpaque(call!.pointee.instance).takeUnretainedValue()
            var call = call!.pointee
            call.instance = nil  // The box is the host's own.
            box.invoke(box.data, &call, arguments, count)
        }
        return ObjectTypeEntry(name: "callback", actions: ["call": endpoint], generation: generation)
    }
}
