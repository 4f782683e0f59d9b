import HTTPTypes
import Hummingbird
import PluginABI
import PluginHost

/// The parameters of a call; those of a path in Hummingbird have the same name.
typealias CallParameters = PluginABI.Parameters

/// One call, ready to be made.
struct GatewayCall: Sendable {
    let url: String
    let parameters: CallParameters
    let timeout: Duration
    /// The module and the action that it leads to; `nil` if it leads to none.
    let module: String?
    let action: String?
}

extension PluginGateway {
    /// `POST /call/{target}/{action}`.
    func call(
        _ target: RequestTarget, _ request: Request, _ connection: Connection?
    ) async throws(Problem) -> Response {
        let names = target.path.dropFirst("/call/".count).split(separator: "/", omittingEmptySubsequences: false)
        guard names.count == 2, names.allSatisfy(isName) else {
            throw Problem(.noRoute, "There is nothing at this path. An action is at /call/{target}/{action}.")
        }
        guard request.method == .post else { throw Problem.method(request.method, allowed: "POST") }
        try checkReady()
        let (name, action) = (String(names[0]), String(names[1]))
        let known = catalog.current.action(name, action)
        let parameters = try await parameters(of: request, for: known?.action)
        return try await make(
            GatewayCall(
                url: "\(scheme)://\(name)/\(action)\(target.query)", parameters: parameters,
                timeout: try timeout(of: request), module: known?.module, action: "\(name)/\(action)"),
            request, connection)
    }

    /// The scheme by which the host finds targets and actions by their names.
    private var scheme: String {
        let schemes = host.configuration.schemes
        return schemes.contains("call") ? "call" : schemes.first ?? "call"
    }

    /// Whether a text can be the name of a target or an action.
    private func isName(_ text: Substring) -> Bool {
        guard (1...256).contains(text.utf8.count), let first = text.first, first.isLetter || first == "_" else {
            return false
        }
        return text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_.-".contains($0)) }
    }

    /// Makes a call and answers with its result.
    func make(_ call: GatewayCall, _ request: Request, _ connection: Connection?) async throws(Problem) -> Response {
        let start = ContinuousClock.now
        do throws(Problem) {
            let response = try await traced(call, request) { () throws(Problem) in
                try await self.response(to: request, try await result(of: call, connection), call)
            }
            count(call, nil, since: start)
            return response
        } catch {
            count(call, error, since: start)
            throw error
        }
    }

    private func result(of call: GatewayCall, _ connection: Connection?) async throws(Problem) -> Value {
        try admission.enter(call.module)
        let outcome = CallOutcome()
        let task = Task(executorPreference: threads) { [host, admission] in
            // The place is taken until the action is over, even if nobody waits for its result any more.
            defer { admission.leave(call.module) }
            do throws(PluginError) {
                outcome.set(
                    .success(try await host.open(call.url, call.parameters, origin: .remote, timeout: call.timeout)))
            } catch {
                outcome.set(.failure(error))
            }
        }
        @Sendable func end(_ error: PluginError) {
            task.cancel()
            outcome.set(.failure(error))
        }
        let number = calls.add(end)
        defer { calls.remove(number) }
        // The host ends calls at their deadline, but cannot interrupt synchronous actions.
        let timer = Task {
            try await Task.sleep(for: call.timeout + Self.patience)
            end(.late(call))
        }
        defer { timer.cancel() }
        if let connection { await departures.watch(connection) { end(.clientLeft) } }
        defer { if let connection { departures.forget(connection) } }
        let result = await withTaskCancellationHandler {
            await outcome.get()
        } onCancel: {
            end(.gatewayEnds)
        }
        do { return try result.get() } catch { throw Problem(error) }
    }

    /// How long the gateway waits for the host to end a call after its deadline.
    private static let patience = Duration.milliseconds(100)
}

extension PluginError {
    fileprivate static let clientLeft = PluginError(.cancelled, "The client has closed its connection.")

    fileprivate static func late(_ call: GatewayCall) -> PluginError {
        PluginError(
            .deadlineExceeded,
            "The call took longer than \(call.timeout). It continues: a synchronous action cannot be interrupted."
        )
    }
}
