import CPluginABI
import Dispatch
import PluginABI
import Synchronization

/// One intercepted call that is running.
final class InterceptedInvocation: Sendable {
    let calls: Calls
    let endpoint: Endpoint
    private let interceptors: [Interception.Entry]
    private nonisolated(unsafe) let instance: UnsafeMutableRawPointer?  // Passed on, never used here.
    private let object: plugin_object
    /// Whether the action gets an instance of its own.
    private let isFresh: Bool
    private let call: InterceptedCall

    private struct State {
        /// The task of the whole call, and the tasks that run the rest of the call while synchronous interceptors wait.
        var tasks: [Task<Void, Never>] = []
        var isCancelled = false
        /// The indices of the interceptors that have begun and not ended; the number of interceptors stands for the
        /// action. An inner interceptor can outlive an outer one whose deadline has passed.
        var begun: [Int] = []
        /// Whether the interceptor that was running when the deadline passed has been reported.
        var isReported = false
    }
    private let state = Mutex(State())

    init(
        calls: Calls, endpoint: Endpoint, interceptors: [Interception.Entry],
        instance: UnsafeMutableRawPointer?, object: plugin_object, isFresh: Bool, call: InterceptedCall
    ) {
        self.calls = calls
        self.endpoint = endpoint
        self.interceptors = interceptors
        self.instance = instance
        self.object = object
        self.isFresh = isFresh
        self.call = call
    }

    /// The call of the stand-in within which the action is called.
    struct Frame: Sendable {
        let token: plugin_token
        /// The parent of calls that are made within it: the call itself, or one made by a module's interceptor.
        var parent: plugin_token
        let deadline: Int64
        let isAsync: Bool

        var isOverdue: Bool { deadline != 0 && monotonicNow() > deadline }

        func within(_ root: HostCore.RootCall) -> Frame {
            var frame = self
            frame.parent = root.token
            return frame
        }
    }

    func run(_ raw: plugin_call) {
        let isAsync = CallRecord(token: raw.token)?.endpoint?.isAsync ?? false
        let frame = Frame(token: raw.token, parent: raw.token, deadline: raw.deadline, isAsync: isAsync)
        let call = InterceptedCall(
            target: call.target, action: call.action, parameters: call.parameters, origin: call.origin,
            route: call.route, context: HostContext(host: calls.program.hostTable, call: raw.token))
        guard isAsync else { return reply(frame, Result { try pass(0, call, frame) }) }
        CancelHandler.set(of: frame.token, in: endpoint.generation) {
            self.cancel(isOverdue: frame.deadline != 0 && monotonicNow() >= frame.deadline)
        }
        let task = Task(executorPreference: BlockingExecutor.modules) {
            await InterceptedTask.run(for: frame.token) {
                do {
                    let value = try await self.passLater(0, call, frame)
                    self.reply(frame, .success(value))
                } catch {
                    self.reply(frame, .failure(error))
                }
            }
        }
        note(task)
    }

    /// Makes sure that a task is cancelled with the call.
    private func note(_ task: Task<Void, Never>) {
        let isCancelled = state.withLock { state in
            state.tasks.append(task)
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    private func reply(_ frame: Frame, _ result: Result<Value, any Error>) {
        do {
            try result.get().lend { value in
                withUnsafePointer(to: value) {
                    _ = Calls.resolve(frame.token, $0, from: endpoint.generation)
                }
            }
        } catch {
            let failure =
                error as? PluginError
                ?? PluginError(.actionFailed, "An interceptor of \(endpoint.title) failed: \(error)")
            if let record = CallRecord(token: frame.token) { calls.fail(record, frame.token, failure) }
        }
    }

    // MARK: Through the interceptors

    func pass(_ index: Int, _ call: InterceptedCall, _ frame: Frame) throws -> Value {
        guard index < interceptors.count else {
            return try whileRunning(index, frame) { try performAction(call, frame) }
        }
        return try whileRunning(index, frame) {
            switch interceptors[index].body {
            case .synchronous(let body): return try body(call) { try within($0, frame) { try pass(index + 1, $0, $1) } }
            case .asynchronous: return .null  // Refused earlier.
            case .module(let rule): return try passModule(rule, index, call, frame)
            }
        }
    }

    /// Runs the code of an interceptor, or the action, and records before and after it which interceptor's own code is
    /// running: the innermost one that has not ended. Reports the interceptor that was running when the deadline
    /// passed.
    private func whileRunning<Result>(
        _ index: Int, _ frame: Frame, _ body: () throws -> Result
    ) rethrows -> Result {
        note(frame) { $0.append(index) }
        defer { note(frame) { $0.remove(at: $0.lastIndex(of: index)!) } }
        return try body()
    }

    private func whileRunning<Result>(
        _ index: Int, _ frame: Frame, _ body: () async throws -> Result
    ) async rethrows -> Result {
        note(frame) { $0.append(index) }
        defer { note(frame) { $0.remove(at: $0.lastIndex(of: index)!) } }
        return try await body()
    }

    private func note(_ frame: Frame, _ change: (inout [Int]) -> Void) {
        let overrun: Int? = state.withLock { state in
            let before = running(state)
            change(&state.begun)
            calls.core.interceptorTimes.note(
                running(state).map { interceptors[$0].id }, in: endpoint.name, frame.token, deadline: frame.deadline)
            guard frame.isOverdue, !state.isReported else { return nil }
            state.isReported = true
            return before
        }
        if let overrun { reportOverdue(overrun) }
    }

    /// Returns the interceptor whose own code is running: the innermost one, unless the action is running.
    private func running(_ state: State) -> Int? {
        state.begun.max().flatMap { $0 < interceptors.count ? $0 : nil }
    }

    /// Creates a call that is made within the intercepted one, with the remaining time as its timeout.
    func innerCall(
        _ call: InterceptedCall, _ frame: Frame, _ receiver: Calls.Receiver
    ) -> Calls.Call {
        Calls.Call(
            parent: frame.parent, timeout: frame.deadline == 0 ? 0 : max(1, frame.deadline - monotonicNow()),
            isRemote: call.origin == .remote, mode: frame.isAsync ? .any : .synchronous, receiver: receiver,
            caller: .passUnretained(calls.program))
    }

    func passLater(_ index: Int, _ call: InterceptedCall, _ frame: Frame) async throws -> Value {
        guard index < interceptors.count else {
            return try await whileRunning(index, frame) { try await callAction(call, frame) }
        }
        return try await whileRunning(index, frame) {
            switch interceptors[index].body {
            case .asynchronous(let body):
                try await body(call) {
                    try await self.within($0, frame) { try await self.passLater(index + 1, $0, $1) }
                }
            case .synchronous(let body):
                try body(call) { try self.within($0, frame) { try self.waitForContinuation(index + 1, $0, $1) } }
            case .module(let rule): try await passModuleLater(rule, index, call, frame)
            }
        }
    }

    /// Runs the rest of a call, with the call context that an interceptor has set.
    private func within(
        _ call: InterceptedCall, _ frame: Frame, _ rest: (InterceptedCall, Frame) throws -> Value
    ) throws -> Value {
        guard let context = call.changedContext else { return try rest(call, frame) }
        let root = try calls.core.begin(context, parent: frame.parent)
        defer { calls.core.end(root) }
        return try rest(self.call(call, within: root), frame.within(root))
    }

    private func within(
        _ call: InterceptedCall, _ frame: Frame, _ rest: (InterceptedCall, Frame) async throws -> Value
    ) async throws -> Value {
        guard let context = call.changedContext else { return try await rest(call, frame) }
        let root = try calls.core.begin(context, parent: frame.parent)
        defer { calls.core.end(root) }
        return try await rest(self.call(call, within: root), frame.within(root))
    }

    private func call(_ call: InterceptedCall, within root: HostCore.RootCall) -> InterceptedCall {
        InterceptedCall(
            target: call.target, action: call.action, parameters: call.parameters, origin: call.origin,
            route: call.route, context: HostContext(host: calls.program.hostTable, call: root.token))
    }

    /// Blocks this thread, which belongs to `BlockingExecutor`, until the rest of the call has ended.
    func waitForContinuation(_ index: Int, _ call: InterceptedCall, _ frame: Frame) throws -> Value {
        let done = DispatchSemaphore(value: 0)
        let outcome = Mutex<Result<Value, any Error>?>(nil)
        let task = Task(executorPreference: BlockingExecutor.modules) {
            await InterceptedTask.run(for: frame.parent) {
                let result: Result<Value, any Error>
                do {
                    result = .success(try await self.passLater(index, call, frame))
                } catch {
                    result = .failure(error)
                }
                outcome.withLock { $0 = result }
            }
            done.signal()
        }
        note(task)
        done.wait()
        return try outcome.withLock { $0! }.get()
    }

    // MARK: The action

    /// The context of the program, which is the caller of what remains of the call.
    var program: HostContext { HostContext(host: calls.program.hostTable) }

    private func call(_ frame: Frame, _ receiver: Calls.Receiver, _ call: InterceptedCall) -> plugin_token {
        if frame.isOverdue {
            receiver.receive(.deadlineExceeded(endpoint))
            return 0
        }
        var inner = innerCall(call, frame, receiver)
        inner.isFresh = isFresh
        return calls.callIntercepted(endpoint, Parameters(call.parameters), inner, instance, object)
    }

    private func performAction(_ call: InterceptedCall, _ frame: Frame) throws(PluginError) -> Value {
        try program.receive { _ = self.call(frame, Calls.Receiver($0, $1), call) }
    }

    private func callAction(_ call: InterceptedCall, _ frame: Frame) async throws(PluginError) -> Value {
        let pending = PendingCall(host: calls.program.hostTable)
        pending.start { self.call(frame, Calls.Receiver($0, $1), call) }
        return try await pending.outcome()
    }

    // MARK: The deadline

    private func cancel(isOverdue: Bool) {
        let (tasks, overrun): ([Task<Void, Never>], Int?) = state.withLock { state in
            state.isCancelled = true
            guard isOverdue, !state.isReported else { return (state.tasks, nil) }
            state.isReported = true
            return (state.tasks, running(state))
        }
        if let overrun { reportOverdue(overrun) }
        for task in tasks { task.cancel() }
    }

    private func reportOverdue(_ index: Int) {
        calls.core.interceptorTimes.noteOverrun(of: interceptors[index].id, in: endpoint.name)
        calls.settings.log(
            LogEntry(
                level: .warning, call: endpoint.name,
                message: "The interceptor \(interceptors[index].title) ran past the deadline of a call of "
                    + "\(endpoint.title)."))
    }
}
