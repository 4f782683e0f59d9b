import PluginABI
import Synchronization

/// A closure of the program that handles an event: the instance of an object with a single action, which calls the
/// closure.
final class EventHandlerBox: Sendable {
    typealias Handler = ProgramHandler<[String: Value], Void>

    private let handler: Handler
    /// The synchronous handler. Apart from the other form, so that a call need not retain it.
    private let synchronous: @Sendable ([String: Value]) throws -> Void
    /// Whether the subscription is over. A delivery may still reach the handler: it has read the handlers before, and
    /// another delivery runs the handler.
    private let isOver = Atomic(false)

    init(_ handler: Handler) {
        self.handler = handler
        synchronous =
            switch handler {
            case .synchronous(let body): body
            case .asynchronous: { _ in preconditionFailure("An asynchronous handler was run.") }
            }
    }

    /// Returns the type of all handlers of an event. Its one action, `handle`, accepts a map. Asynchronous handlers
    /// reply later.
    static func type(for event: String, in program: Generation, isAsync: Bool) -> ObjectTypeEntry {
        let endpoint = Endpoint(own: "!\(event)", of: program, isAsync: isAsync) { data, call, arguments, count in
            let program = Unmanaged<Generation>.fromOpaque(data!).takeUnretainedValue()
            let box = Unmanaged<EventHandlerBox>.fromOpaque(call!.pointee.instance).takeUnretainedValue()
            let parameters = count > 0 ? Value(copying: arguments![0], host: program.hostTable).map : nil
            box.handle(parameters ?? [:], call!.pointee.token, of: program)
        }
        return ObjectTypeEntry(
            name: event, actions: ["handle": endpoint], generation: program, isOfValues: false)
    }

    /// Returns the one action of a type of handlers.
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
        case _ where isOver.load(ordering: .acquiring): answer(nil)
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

    /// Ends the subscription: the handler is not called from now on.
    func end() { isOver.store(true, ordering: .releasing) }

    /// Runs a synchronous handler. Returns the error that it threw, if any.
    @inline(__always)
    func run(_ parameters: [String: Value]) -> PluginError? {
        guard !isOver.load(ordering: .acquiring) else { return nil }
        do {
            try synchronous(parameters)
            return nil
        } catch {
            return PluginError(thrown: error)
        }
    }
}

extension PluginError {
    /// Converts the error that a closure of the program threw. An error without a code becomes `actionFailed`.
    init(thrown error: any Error) {
        self = error as? PluginError ?? PluginError(.actionFailed, String(describing: error))
        if code.rawValue.isEmpty { self = PluginError(.actionFailed, message, source: source) }
        if source?.isEmpty == true { source = nil }
    }
}
