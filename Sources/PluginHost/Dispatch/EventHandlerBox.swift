import CPluginABI
import PluginABI

/// A closure of the program that waits for an event: the instance of an object whose one action calls it.
final class EventHandlerBox: Sendable {
    typealias Completion = @Sendable (PluginError?) -> Void

    /// The program's table, which lives as long as the process.
    private nonisolated(unsafe) let host: UnsafePointer<plugin_host>
    private let run: @Sendable ([String: Value], @escaping Completion) -> Void

    /// - Parameter run: Calls the closure, and then, once, the completion.
    init(_ program: Generation, _ run: @escaping @Sendable ([String: Value], @escaping Completion) -> Void) {
        host = program.hostTable
        self.run = run
    }

    /// An object that holds the box; 0 when there are too many objects.
    func object(of type: ObjectTypeEntry) -> plugin_object {
        ObjectTable.create(type, Unmanaged.passRetained(self).toOpaque()) {
            Unmanaged<EventHandlerBox>.fromOpaque($0!).release()
        }
    }

    /// The type of all handlers of an event, whose one action, `handle`, takes a map. Asynchronous ones reply later.
    static func type(for event: String, in program: Generation, isAsync: Bool) -> ObjectTypeEntry {
        let endpoint = Endpoint(
            name: .immortal("!\(event)"), parameters: [], isAsync: isAsync, isRemote: false, isVariadic: true,
            invoke: { _, call, arguments, count in
                let box = Unmanaged<EventHandlerBox>.fromOpaque(call!.pointee.instance).takeUnretainedValue()
                let parameters = count > 0 ? Value(copying: arguments![0], host: box.host).map : nil
                box.handle(parameters ?? [:], call!.pointee.token)
            }, data: nil, generation: program, instances: nil, gate: nil)
        return ObjectTypeEntry(name: event, actions: ["handle": endpoint], generation: program)
    }

    private func handle(_ parameters: [String: Value], _ token: plugin_token) {
        run(parameters) { [self] error in
            if let error {
                error.lend { _ = host.pointee.reject(host, token, $0) }
            } else {
                _ = host.pointee.resolve(host, token, nil)
            }
        }
    }
}

extension PluginError {
    /// What a closure of the program has thrown.
    init(thrown error: any Error) {
        self = error as? PluginError ?? PluginError(.actionFailed, String(describing: error))
    }
}
