import CPluginABI
import PluginABI

/// A closure of the program that waits for an event: the instance of an object whose one action calls it.
final class EventHandlerBox: Sendable {
    typealias Handler = ProgramHandler<[String: Value], Void>

    private let handler: Handler

    init(_ handler: Handler) { self.handler = handler }

    /// The type of all handlers of an event, whose one action, `handle`, takes a map. Asynchronous ones reply later.
    static func type(for event: String, in program: Generation, isAsync: Bool) -> ObjectTypeEntry {
        let endpoint = Endpoint(own: "!\(event)", of: program, isAsync: isAsync) { data, call, arguments, count in
            let program = Unmanaged<Generation>.fromOpaque(data!).takeUnretainedValue()
            let box = Unmanaged<EventHandlerBox>.fromOpaque(call!.pointee.instance).takeUnretainedValue()
            let parameters = count > 0 ? Value(copying: arguments![0], host: program.hostTable).map : nil
            box.handle(parameters ?? [:], call!.pointee.token, of: program)
        }
        return ObjectTypeEntry(name: event, actions: ["handle": endpoint], generation: program)
    }

    /// The one action of a type of handlers.
    static func endpoint(of type: ObjectTypeEntry) -> Endpoint { type.actions["handle"]! }

    private func handle(_ parameters: [String: Value], _ token: plugin_token, of program: Generation) {
        func answer(_ error: PluginError?) {
            let host = program.hostTable!
            if let error {
                error.lend { _ = host.pointee.reject(host, token, $0) }
            } else {
                _ = host.pointee.resolve(host, token, nil)
            }
        }
        switch handler {
        case .synchronous: answer(run(parameters))
        case .asynchronous(let handler):
            Task {
                do {
                    try await handler(parameters)
                    answer(nil)
                } catch {
                    answer(PluginError(thrown: error))
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
}

extension PluginError {
    /// What a closure of the program has thrown. An error without a code is an action's.
    init(thrown error: any Error) {
        self = error as? PluginError ?? PluginError(.actionFailed, String(describing: error))
        if code.rawValue.isEmpty { self = PluginError(.actionFailed, message, source: source) }
        if source?.isEmpty == true { source = nil }
    }
}
