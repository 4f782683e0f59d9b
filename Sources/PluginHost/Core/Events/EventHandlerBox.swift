import CPluginABI
import PluginABI

/// A closure of the program that waits for an event: the instance of an object whose one action calls it.
final class EventHandlerBox: Sendable {
    enum Handler: Sendable {
        case synchronous(@Sendable ([String: Value]) throws -> Void)
        case asynchronous(@Sendable ([String: Value]) async throws -> Void)

        var isAsync: Bool { if case .asynchronous = self { true } else { false } }
    }

    private let handler: Handler
    /// The program's table, which lives as long as the process.
    private nonisolated(unsafe) let host: UnsafePointer<plugin_host>

    init(_ program: Generation, _ handler: Handler) {
        host = program.hostTable
        self.handler = handler
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

    /// The one action of a type of handlers.
    static func endpoint(of type: ObjectTypeEntry) -> Endpoint { type.actions["handle"]! }

    private func handle(_ parameters: [String: Value], _ token: plugin_token) {
        switch handler {
        case .synchronous: answer(token, run(parameters))
        case .asynchronous(let handler):
            Task {
                do {
                    try await handler(parameters)
                    answer(token, nil)
                } catch {
                    answer(token, PluginError(thrown: error))
                }
            }
        }
    }

    /// Runs a synchronous handler; returns what it has thrown.
    @inline(__always)
    func run(_ parameters: [String: Value]) -> PluginError? {
        guard case .synchronous(let handler) = handler else { preconditionFailure("An asynchronous handler was run.") }
        do {
            try handler(parameters)
            return nil
        } catch {
            return PluginError(thrown: error)
        }
    }

    private func answer(_ token: plugin_token, _ error: PluginError?) {
        if let error {
            error.lend { _ = host.pointee.reject(host, token, $0) }
        } else {
            _ = host.pointee.resolve(host, token, nil)
        }
    }
}

extension PluginError {
    /// What a closure of the program has thrown. An error without a code is an action's.
    init(thrown error: any Error) {
        self = error as? PluginError ?? PluginError(.actionFailed, String(describing: error))
        if code.rawValue.isEmpty { self = PluginError(.actionFailed, message, source: source) }
        if source?.isEmpty == true { source = nil }
    }
}
