import CPluginABI
import PluginABI

/// A closure that was passed as a value: the instance of an object whose one action calls it.
final class CallbackBox {
    private let invoke: plugin_invoke
    private let data: UnsafeMutableRawPointer?
    private let destroy: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?

    init(
        invoke: @escaping plugin_invoke, data: UnsafeMutableRawPointer?,
        destroy: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
    ) {
        self.invoke = invoke
        self.data = data
        self.destroy = destroy
    }

    deinit { destroy?(data) }

    /// An object that holds the box; 0 when there are too many objects.
    func object(of type: ObjectTypeEntry) -> plugin_object {
        ObjectTable.create(type, Unmanaged.passRetained(self).toOpaque()) {
            Unmanaged<CallbackBox>.fromOpaque($0!).release()
        }
    }

    /// The type of all callbacks of a generation: one action that takes any arguments and passes them on.
    static func type(in generation: Generation, isAsync: Bool) -> ObjectTypeEntry {
        let endpoint = Endpoint(
            name: .immortal("callback"), parameters: [], isAsync: isAsync, isRemote: true, isVariadic: true,
            invoke: { _, call, arguments, count in
                let box = Unmanaged<CallbackBox>.fromOpaque(call!.pointee.instance).takeUnretainedValue()
                box.invoke(box.data, call, arguments, count)
            }, data: nil, generation: generation, instances: nil, gate: nil)
        return ObjectTypeEntry(name: "callback", actions: ["call": endpoint], generation: generation)
    }
}
