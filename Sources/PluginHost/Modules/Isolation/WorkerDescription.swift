import CPluginWire
import PluginABI

/// The description that stands for a module in another process: what the process says about it, with functions of the
/// host in place of the module's. It is checked like any other description, and never freed.
enum WorkerDescription {
    /// The number of values that describe a module.
    static let valueCount = 11

    /// - Parameters:
    ///   - message: Its values are copied.
    ///   - process: The process that runs the functions; `nil` if they are not called.
    /// - Returns: `nil` if the message is not valid.
    static func make(_ message: plugin_wire_message, _ process: WorkerProcess?) -> UnsafePointer<plugin_module>? {
        let isTooLong = withUnsafePointer(to: message) {
            plugin_wire_measure($0) > UInt32(PLUGIN_WIRE_DESCRIPTION_MIB) << 20
        }
        return isTooLong ? nil : read(message, process).map(UnsafePointer.immortal)
    }

    private static func read(_ message: plugin_wire_message, _ process: WorkerProcess?) -> plugin_module? {
        guard let magic = message.int(0), let size = message.int(1), let major = message.int(2),
            let minor = message.int(3)
        else { return nil }
        var module = plugin_module()
        module.magic = UInt64(bitPattern: magic)
        module.size = UInt32(truncatingIfNeeded: size)
        module.abi_major = UInt16(truncatingIfNeeded: major)
        module.abi_minor = UInt16(truncatingIfNeeded: minor)
        if module.magic == PLUGIN_ABI_MAGIC, module.abi_major == PLUGIN_ABI_MAJOR,
            module.size >= MemoryLayout<plugin_module>.size
        {
            guard fill(&module, message, process) else { return nil }
        }
        return module
    }

    private static func fill(
        _ module: inout plugin_module, _ message: plugin_wire_message, _ process: WorkerProcess?
    ) -> Bool {
        guard let toolchain = message.int(5), let manifest = message.int(7), let functions = message.map(8),
            let functionCount = message.int(9), let factories = message.map(10)
        else { return false }
        (module.function_count, module.factory_count) = (UInt64(bitPattern: functionCount), message.a)
        // A table that is too long is not sent, and is refused because of its length.
        guard max(functions.count, factories.count) <= 100_000,
            module.function_count == functions.count || module.function_count > 100_000,
            module.factory_count == factories.count || module.factory_count > 100_000
        else { return false }
        module.toolchain = text(message.string(4), UInt64(bitPattern: toolchain))
        module.manifest = text(message.string(6), UInt64(bitPattern: manifest))
        let stubs = functions.enumerated().map { number, function in
            plugin_function(
                name: .shared(function.key), invoke: function.value.as.boolean != 0 ? WorkerStub.invoke : nil,
                data: process.map { WorkerStub($0, UInt64(number), isOfObject: function.key.isOfObject).immortal })
        }
        module.functions = UnsafeBufferPointer.immortal(stubs).baseAddress
        let makers = factories.enumerated().map { number, factory in
            plugin_factory(
                target: .shared(factory.key), make: factory.value.as.boolean != 0 ? WorkerStub.make : nil,
                destroy: WorkerStub.destroy,
                data: process.map { WorkerStub($0, UInt64(number), isOfObject: false).immortal })
        }
        module.factories = UnsafeBufferPointer.immortal(makers).baseAddress
        module.data = process.map { Unmanaged.passRetained($0).toOpaque() }
        (module.activate, module.deactivate) = (WorkerStub.activate, WorkerStub.deactivate)
        return true
    }

    /// Returns a text that should have `count` bytes. If the process has not sent it, or sent another length, returns a
    /// null pointer with that count, so that it is refused where it is used.
    private static func text(_ string: plugin_string?, _ count: UInt64) -> plugin_string {
        guard let string, string.count == count, string.bytes != nil || count == 0 else {
            return plugin_string(bytes: nil, count: count)
        }
        return .shared(string)
    }
}

extension plugin_string {
    /// Whether this names an action of an object type: `Type#action`.
    fileprivate var isOfObject: Bool {
        guard let bytes else { return false }
        return UnsafeBufferPointer(start: bytes, count: Int(count)).contains(CChar(bitPattern: UInt8(ascii: "#")))
    }
}
