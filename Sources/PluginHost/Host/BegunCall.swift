public import PluginABI

/// A call that was begun outside of asynchronous code, the result of
/// ``PluginHost/begin(opening:method:_:origin:timeout:callContext:)``.
public enum BegunCall: Sendable {
    /// The call is over.
    case over(Result<Value, PluginError>)
    /// The call is not over; the task waits for its outcome. Cancelling the task cancels the call.
    case running(Task<Result<Value, PluginError>, Never>)
}

extension PluginHost {
    /// Begins to open a URL, without a task and without waiting. A synchronous action runs on this thread to its end,
    /// an asynchronous one until it suspends for the first time. For programs with threads of their own, such as
    /// servers.
    ///
    ///     switch host.begin(opening: "app://A/fetchDetail", method: .get, ["key": "lamp"]) {
    ///     case .over(let result): answer(result)
    ///     case .running(let task): Task { answer(await task.value) }
    ///     }
    ///
    /// - Parameters:
    ///   - url: A URL whose scheme is one of ``HostConfiguration/schemes``.
    ///   - method: The method, as for `open`.
    ///   - parameters: Values of any kind, which have precedence over those in the URL.
    ///   - origin: ``/PluginABI/CallOrigin/remote`` for a URL from outside the program.
    ///   - timeout: The timeout, as for ``call(_:_:_:timeout:)``.
    ///   - callContext: The trace and the caller, as for ``withCallContext(_:_:)``, until the call is over.
    /// - Returns: The outcome, or a task that waits for it. The errors are those of `open`.
    public func begin(
        opening url: String, method: RouteMethod, _ parameters: Parameters = [:], origin: CallOrigin = .local,
        timeout: Duration? = nil, callContext: CallContext = CallContext()
    ) -> BegunCall {
        do throws(PluginError) {
            let root = callContext.isEmpty ? nil : try beginCall(callContext)
            let caller = root.map { HostContext(host: core.program.hostTable, call: $0.token) } ?? programInTask
            let pending: PendingCall
            do throws(PluginError) {
                pending = try caller.start(
                    opening: url, method: method, parameters, origin: origin, timeout: timeout)
            } catch {
                if let root { core.end(root) }
                throw error
            }
            if let outcome = pending.earlyOutcome {
                if let root { core.end(root) }
                return .over(outcome)
            }
            return .running(
                Task {
                    defer { if let root { core.end(root) } }
                    do throws(PluginError) {
                        return .success(try await pending.lateOutcome())
                    } catch {
                        return .failure(error)
                    }
                })
        } catch {
            return .over(.failure(error))
        }
    }
}
