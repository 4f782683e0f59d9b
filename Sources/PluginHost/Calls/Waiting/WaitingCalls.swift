import PluginABI
import Synchronization

// Calls that wait, without a thread, until their module has handed over its state, or the guard has decided.

extension Calls {
    /// The address of a waiting call.
    enum WaitingAddress {
        /// The endpoint that was found, and the object that the call retains, or 0.
        case endpoint(Endpoint, instance: UnsafeMutableRawPointer?, object: plugin_object)
        case url(String, asksForObject: Bool, method: UInt32)
        case action(String, String)
        case service(String, String, version: String)
        case event(String, flags: UInt32, caller: Generation)
        /// A URL that a remote caller opens.
        case remoteURL(String, RemoteOpening)
    }

    /// The thing that a call waits for.
    enum Awaited {
        case handOver(CallBarrier)
        /// The start of a module.
        case start(StartRequest, LoadedModule)
        /// The decision of the guard's asynchronous form about a remote call.
        case decision(RemoteCall, RemoteSubject, AsynchronousRemoteGuard)
    }

    /// Stores a call until what it waits for has happened.
    func keep(
        _ awaited: Awaited, _ address: WaitingAddress, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call,
        _ thread: ThreadContext,
        _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        let parameters = Parameters(entries.map { ($0.key.text, Value(copying: $0.value, host: program.hostTable)) })
        let waiting = WaitingCall(awaited: awaited, address: address, parameters: parameters, call: call, calls: self)
        let endpoint =
            switch awaited {
            case .handOver: core.ownActions.waitingCalls
            case .start: core.ownActions.startingCalls
            case .decision: core.ownActions.guardedCalls
            }
        return try invoke(endpoint, carrying: waiting, call, thread, record)
    }

    /// Creates the endpoint that represents calls that wait for a hand-over, and by which they are cancelled: an
    /// asynchronous action of the program.
    static func makeWaitingCalls(_ program: Generation) -> Endpoint {
        makeWaitingCalls(program, "waiting for a module that hands its state over")
    }

    /// Creates the endpoint that represents calls that wait for the guard.
    static func makeGuardedCalls(_ program: Generation) -> Endpoint {
        makeWaitingCalls(program, "waiting for the guard of remote calls")
    }

    static func makeWaitingCalls(_ program: Generation, _ name: String) -> Endpoint {
        Endpoint(own: name, of: program, ["call": .int], isRemote: true) { _, call, arguments, _ in
            Calls.takeCarried(WaitingCall.self, arguments).begin(call!.pointee.token)
        }
    }

    /// One waiting call. `begin` sets `token` before another thread sees the call, `address` is changed before the call
    /// proceeds, and `running` has a lock; the other members are immutable. Hence `@unchecked Sendable`.
    private final class WaitingCall: @unchecked Sendable {
        private let awaited: Awaited
        private var address: WaitingAddress
        private let parameters: Parameters
        private let call: Call
        private let calls: Calls
        /// The token of the waiting call. Set once, by `begin`.
        private var token: plugin_token = 0
        private let running = Mutex(Running())

        private struct Running {
            var isCancelled = false
            /// The token of the call that the waiting call has become; 0 before that.
            var token: plugin_token = 0
            /// The task that asks the guard.
            var task: Task<Void, Never>?
        }

        init(awaited: Awaited, address: WaitingAddress, parameters: Parameters, call: Call, calls: Calls) {
            (self.awaited, self.address, self.parameters) = (awaited, address, parameters)
            (self.call, self.calls) = (call, calls)
        }

        func begin(_ token: plugin_token) {
            self.token = token
            CancelHandler.set(of: token, in: calls.program) { self.cancel() }
            do throws(PluginError) {
                switch awaited {
                case .handOver(let barrier): try barrier.whenOver { ThreadPool.shared.run { self.proceed() } }
                case .start(let start, _): try start.whenOver { ThreadPool.shared.run { self.proceed() } }
                case .decision(let remoteCall, let subject, let decide): ask(decide, remoteCall, subject)
                }
            } catch {
                end(error)
            }
        }

        /// Asks the guard in a task. The parent of the guard's calls is this call.
        private func ask(
            _ decide: @escaping AsynchronousRemoteGuard, _ remoteCall: RemoteCall, _ subject: RemoteSubject
        ) {
            let task = Task(executorPreference: BlockingExecutor.modules) {
                await InterceptedTask.run(for: self.token) {
                    do {
                        self.decided(try await decide(remoteCall), subject)
                    } catch {
                        self.end(.guardFailed(error, remoteCall.url))
                    }
                }
            }
            let isCancelled = running.withLock { running in
                running.task = task
                return running.isCancelled
            }
            if isCancelled { task.cancel() }
        }

        private func decided(_ answer: RemoteAnswer, _ subject: RemoteSubject) {
            guard case .remoteURL(let url, var opening) = address else { return }
            switch answer {
            case .pass: opening.decision = .pass(subject)
            case .redirect(let other): opening.decision = .redirect(other)
            case .refuse(let message): return end(PluginError(.refused, message))
            }
            address = .remoteURL(url, opening)
            ThreadPool.shared.run { self.proceed() }
        }

        private func cancel() {
            let (token, task) = running.withLock { running in
                running.isCancelled = true
                return (running.token, running.task)
            }
            task?.cancel()
            if token != 0 { Calls.abandon(token, PluginError(.cancelled, "The caller cancelled the call.")) }
        }

        private func end(_ error: PluginError) {
            if case .endpoint(_, _, let object) = address, object != 0 { _ = ObjectTable.release(object) }
            calls.answer(token, error)
        }

        private func proceed() {
            guard !running.withLock({ $0.isCancelled }) else {
                return end(PluginError(.cancelled, "The caller cancelled the call."))
            }
            guard let thread = ThreadContext.current, let record = thread.next else { return end(.recursionLimit) }
            if case .start(let start, let module) = awaited {
                do throws(PluginError) { _ = try calls.check(start, of: module, for: call) } catch { return end(error) }
            }
            let receiver = Receiver(Self.forward, Unmanaged.passRetained(self).toOpaque())
            let next = Call(
                parent: call.parent, timeout: call.timeout, isRemote: call.isRemote, mode: .any, receiver: receiver,
                isFresh: call.isFresh)
            do throws(PluginError) {
                let inner = try parameters.lend { (entries) throws(PluginError) in
                    try proceed(entries, next, thread, record)
                }
                let isCancelled = running.withLock { running in
                    running.token = inner
                    return running.isCancelled
                }
                if isCancelled { cancel() }
            } catch {
                calls.refuse(error, receiver, thread, record)
            }
        }

        private func proceed(
            _ entries: UnsafeBufferPointer<plugin_entry>, _ next: Call, _ thread: ThreadContext, _ record: CallRecord
        ) throws(PluginError) -> plugin_token {
            switch address {
            case .endpoint(let endpoint, let instance, let object):
                let endpoint = try calls.occupyAgain(record, endpoint, next, thread, object)
                return try calls.invoke(endpoint, entries, next, thread, record, instance: instance)
            case .action(let target, let action):
                return try target.withRawText { (target) throws(PluginError) in
                    try action.withRawText { (action) throws(PluginError) in
                        try calls.callSlow(
                            plugin_string(target), plugin_string(action), entries, next, thread, record)
                    }
                }
            case .service(let name, let action, let version):
                return try calls.callService(name, action, version, entries, next, thread, record)
            case .event(let event, let flags, let caller):
                return try event.withRawText { (event) throws(PluginError) in
                    var request = plugin_request()
                    request.size = UInt32(MemoryLayout<plugin_request>.size)
                    (request.address, request.flags) = (PLUGIN_ADDRESS_EVENT, flags)
                    request.target = plugin_string(event)
                    (request.parameters, request.parameter_count) = (entries.baseAddress, UInt64(entries.count))
                    return try calls.post(request, next, from: caller, thread)
                }
            case .url(let url, let asksForObject, let method):
                return try url.withRawText { (url) throws(PluginError) in
                    try calls.open(url, entries, asksForObject: asksForObject, method: method, next, thread, record)
                }
            case .remoteURL(let url, let opening):
                return try url.withRawText { (url) throws(PluginError) in
                    try calls.openRemotely(url, entries, opening, next, thread, record)
                }
            }
        }

        private static let forward: plugin_completion = { data, value, error in
            let waiting = Unmanaged<WaitingCall>.fromOpaque(data!).takeRetainedValue()
            waiting.calls.answer(waiting.token, value, error)
        }
    }
}

extension PluginError {
    /// The error of a remote call whose guard has thrown an error instead of deciding.
    fileprivate static func guardFailed(_ error: any Error, _ url: String) -> PluginError {
        if let error = error as? PluginError { return error }
        if error is CancellationError { return PluginError(.cancelled, "The program's guard was cancelled.") }
        return PluginError(.refused, "The program's guard failed to decide about “\(url.shortened)”: \(error)")
    }
}
