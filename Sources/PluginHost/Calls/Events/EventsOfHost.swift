import PluginABI

// Events that are not posted by a request: sticky ones for later subscribers, and those of the host.

extension Calls {
    /// Delivers to modules that have started the sticky events that were posted before their start.
    func deliverSticky(to newcomers: [Generation]) {
        for newcomer in newcomers {
            for event in core.events.admit(newcomer) {
                if let endpoint = newcomer.subscriptions[event.name] { deliverSticky(event, to: .module(endpoint)) }
            }
        }
    }

    func deliverSticky(_ event: EventBoard.StickyEvent, to subscriber: Subscriber) {
        guard core.events.isLast(event) else { return }
        do throws(PluginError) {
            let call = hostCall(.synchronous, .none)
            try event.parameters.lend { (entries) throws(PluginError) in
                _ = try deliver(event.name, entries, to: [subscriber], of: nil, call)
            }
        } catch {
            noteFailure(error, of: event.name, .error)
        }
    }

    /// Posts an event of the host. Waits for asynchronous subscribers if a timeout is given.
    func postHostEvent(_ event: String, _ parameters: [String: Value] = [:], waitingAtMost timeout: Duration? = nil) {
        let table = registry.table
        let subscribers = subscribers(of: event, in: table)
        guard !subscribers.isEmpty else { return }
        let pending = PendingCall(host: program.hostTable)
        pending.start { completion, data in
            var call = hostCall(timeout == nil ? .synchronous : .any, Receiver(completion, data))
            call.timeout = timeout?.nanoseconds ?? 0
            do throws(PluginError) {
                return try Parameters(parameters).lend { [call] (entries) throws(PluginError) in
                    try deliver(event, entries, to: subscribers, of: table, call)
                }
            } catch {
                call.receiver.receive(error)
                return 0
            }
        }
        if case .failure(let error) = pending.wait() { noteFailure(error, of: event, .warning) }
    }

    func hasSubscribers(_ event: String) -> Bool { !subscribers(of: event, in: registry.table).isEmpty }

    /// Creates a call without a caller, as part of the call that this thread works on.
    private func hostCall(_ mode: Mode, _ receiver: Receiver) -> Call {
        Call(
            parent: ThreadContext.current?.currentCall ?? 0, timeout: 0, isRemote: false, mode: mode, receiver: receiver
        )
    }

    private func noteFailure(_ error: PluginError, of event: String, _ level: LogLevel) {
        settings.log(LogEntry(level: level, message: "The event “\(event.shortened)” failed: \(error.message)"))
    }
}
