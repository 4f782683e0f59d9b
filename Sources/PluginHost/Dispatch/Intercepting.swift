import CPluginABI
import CPluginHost
import Dispatch
import PluginABI
import Synchronization

// The call path with interceptors. An intercepted call is a call of its own, of an endpoint that stands for the action
// and runs the interceptors; the action is called from within it. So deadlines, cancellation, the chain of calls and
// the depth are those of every other call.

extension Dispatcher {
    /// Runs an endpoint whose record is occupied, through the interceptors that see it.
    func invoke(
        _ endpoint: Endpoint, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call, _ lane: Lane,
        _ record: CallRecord, instance: UnsafeMutableRawPointer? = nil, through interception: Interception?
    ) throws(PluginError) -> plugin_token {
        let route = call.route?.takeUnretainedValue()
        guard let interceptors = interception?.matching(endpoint, route), !interceptors.isEmpty else {
            return try invoke(endpoint, entries, call, lane, record, instance: instance)
        }
        try check(endpoint, call, record)
        if call.mode == .synchronous, let other = interceptors.first(where: \.body.isAsync) {
            throw PluginError(
                .asynchronousAction,
                "An asynchronous interceptor \(other.scope) stands before \(endpoint.title): use call (or "
                    + "performAndWait), not perform.")
        }
        let isAsync =
            endpoint.isAsync || interceptors.contains { $0.body.isAsync }
            || (call.mode == .any && endpoint.gate != nil)
        let object = record.pointer.pointee.object
        let names = endpoint.name.split(maxSplits: 1) { $0 == "/" || $0 == "#" }.map(String.init)
        let invocation = InterceptedInvocation(
            dispatcher: self, endpoint: endpoint, interceptors: interceptors, instance: instance, object: object,
            call: InterceptedCall(
                target: names[0], action: names[1], parameters: try endpoint.named(entries),
                origin: call.isRemote ? .remote : .local, route: route?.pattern.text,
                context: HostContext(host: program.hostTable)))
        let stand = endpoint.standIn(isAsync: isAsync)
        record.occupy(.passUnretained(stand), label: stand.label, parent: call.parent, depth: record.depth)
        record.pointer.pointee.object = object
        let hold = Unmanaged.passRetained(invocation)
        do throws(PluginError) {
            let none = UnsafeBufferPointer<plugin_entry>(start: nil, count: 0)
            return try invoke(stand, none, call, lane, record, instance: hold.toOpaque())
        } catch {
            hold.release()  // Who throws has not run it.
            throw error
        }
    }

    /// Calls an endpoint from within an intercepted call.
    fileprivate func callIntercepted(
        _ endpoint: Endpoint, _ parameters: Parameters, _ call: Call, _ instance: UnsafeMutableRawPointer?,
        _ object: plugin_object
    ) -> plugin_token {
        guard let lane = Lane.current, let record = lane.next else {
            call.receiver.receive(.recursionLimit)
            return 0
        }
        let holdsObject = object != 0 && ObjectTable.retain(object)
        do throws(PluginError) {
            return try parameters.withEntries { (entries, count) throws(PluginError) in
                occupy(record, .passUnretained(endpoint), call)
                if holdsObject { record.pointer.pointee.object = object }
                let entries = UnsafeBufferPointer(start: entries, count: count)
                return try invoke(endpoint, entries, call, lane, record, instance: instance)
            }
        } catch {
            record.vacate()
            if holdsObject { _ = ObjectTable.release(object) }
            call.receiver.receive(error)
            return 0
        }
    }
}

extension Endpoint {
    /// The parameters by name; of equal names the first one counts.
    fileprivate func named(_ entries: UnsafeBufferPointer<plugin_entry>) throws(PluginError) -> [String: Value] {
        var named: [String: Value] = [:]
        var position = 0
        for entry in entries {
            var name = entry.key.text
            if entry.key.count == 0 {
                guard position < parameters.count else { throw .tooManyArguments(entries.count, self) }
                name = parameters[position].name
                position += 1
                if named[name] != nil { throw .givenTwice(name, self) }
            }
            if named[name] == nil {
                named[name] = Value(copying: entry.value, host: generation.dispatcher.program.hostTable)
            }
        }
        return named
    }

    /// What runs the interceptors in place of the action. Never freed, like every endpoint.
    fileprivate func standIn(isAsync: Bool) -> Endpoint {
        standIns.withLock { standIns in
            if let made = isAsync ? standIns.asynchronous : standIns.synchronous { return made }
            let made = Endpoint(
                name: name, parameters: [], isAsync: isAsync, isRemote: isRemote, isVariadic: true,
                invoke: { _, call, _, _ in
                    let call = call!.pointee
                    Unmanaged<InterceptedInvocation>.fromOpaque(call.instance).takeRetainedValue().run(call)
                }, data: nil, generation: generation, instances: nil, gate: nil)
            if isAsync { standIns.asynchronous = made } else { standIns.synchronous = made }
            return made
        }
    }
}

/// One intercepted call, while it runs.
private final class InterceptedInvocation: Sendable {
    private let dispatcher: Dispatcher
    private let endpoint: Endpoint
    private let interceptors: [Interception.Entry]
    private nonisolated(unsafe) let instance: UnsafeMutableRawPointer?  // Passed on, never used here.
    private let object: plugin_object
    private let call: InterceptedCall

    private struct State {
        /// The whole, and the rests that synchronous interceptors wait for.
        var tasks: [Task<Void, Never>] = []
        var isCancelled = false
        /// The interceptor whose own code runs.
        var running: Int?
    }
    private let state = Mutex(State())

    init(
        dispatcher: Dispatcher, endpoint: Endpoint, interceptors: [Interception.Entry],
        instance: UnsafeMutableRawPointer?, object: plugin_object, call: InterceptedCall
    ) {
        self.dispatcher = dispatcher
        self.endpoint = endpoint
        self.interceptors = interceptors
        self.instance = instance
        self.object = object
        self.call = call
    }

    /// The call of the stand-in, by which the action is called.
    private struct Frame: Sendable {
        let token: plugin_token
        let deadline: Int64
        let isAsync: Bool

        var isOverdue: Bool { deadline != 0 && monotonicNow() > deadline }
    }

    func run(_ raw: plugin_call) {
        let isAsync = CallRecord(token: raw.token)?.endpoint?.isAsync ?? false
        let frame = Frame(token: raw.token, deadline: raw.deadline, isAsync: isAsync)
        let call = InterceptedCall(
            target: call.target, action: call.action, parameters: call.parameters, origin: call.origin,
            route: call.route, context: HostContext(host: dispatcher.program.hostTable, call: raw.token))
        guard isAsync else { return reply(frame, Result { try pass(0, call, frame) }) }
        watchCancelling(frame)
        let task = Task(executorPreference: BlockingThreads.shared) {
            await InterceptedTask.$call.withValue(frame.token) {
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

    /// Takes care that a task ends with the call.
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
                    _ = dispatcher.resolve(frame.token, $0, from: endpoint.generation)
                }
            }
        } catch {
            let failure =
                error as? PluginError
                ?? PluginError(.actionFailed, "An interceptor of \(endpoint.title) failed: \(error)")
            if let record = CallRecord(token: frame.token) { dispatcher.fail(record, frame.token, failure) }
        }
    }

    // MARK: Through the interceptors

    private func pass(_ index: Int, _ call: InterceptedCall, _ frame: Frame) throws -> Value {
        guard index < interceptors.count else { return try performAction(call, frame) }
        guard case .synchronous(let body) = interceptors[index].body else { return .null }  // Checked before.
        let wasOverdue = frame.isOverdue
        var becameOverdueInside = false
        defer { if !wasOverdue, !becameOverdueInside, frame.isOverdue { reportOverdue(index) } }
        return try body(call) { call in
            let wasOverdue = frame.isOverdue
            defer { if !wasOverdue, frame.isOverdue { becameOverdueInside = true } }
            return try pass(index + 1, call, frame)
        }
    }

    private func passLater(_ index: Int, _ call: InterceptedCall, _ frame: Frame) async throws -> Value {
        guard index < interceptors.count else { return try await callAction(call, frame) }
        state.withLock { $0.running = index }
        defer { state.withLock { $0.running = index == 0 ? nil : index - 1 } }
        switch interceptors[index].body {
        case .asynchronous(let body): return try await body(call) { try await self.passLater(index + 1, $0, frame) }
        case .synchronous(let body): return try body(call) { try self.waitForRest(index + 1, $0, frame) }
        }
    }

    /// Blocks this thread, one of `BlockingThreads`, until the rest of the call is done.
    private func waitForRest(_ index: Int, _ call: InterceptedCall, _ frame: Frame) throws -> Value {
        let done = DispatchSemaphore(value: 0)
        let box = RestOutcome()
        let task = Task(executorPreference: BlockingThreads.shared) {
            await InterceptedTask.$call.withValue(frame.token) {
                let result: Result<Value, any Error>
                do {
                    result = .success(try await self.passLater(index, call, frame))
                } catch {
                    result = .failure(error)
                }
                box.value.withLock { $0 = result }
            }
            done.signal()
        }
        note(task)
        done.wait()
        return try box.value.withLock { $0! }.get()
    }

    // MARK: The action

    private func call(_ frame: Frame, _ receiver: Dispatcher.Receiver, _ call: InterceptedCall) -> plugin_token {
        if frame.isOverdue {
            receiver.receive(.deadlineExceeded(endpoint))
            return 0
        }
        let timeout = frame.deadline == 0 ? 0 : max(1, frame.deadline - monotonicNow())
        return dispatcher.callIntercepted(
            endpoint, Parameters(call.parameters),
            Dispatcher.Call(
                parent: frame.token, timeout: timeout, isRemote: call.origin == .remote,
                mode: frame.isAsync ? .any : .synchronous, receiver: receiver), instance, object)
    }

    private func performAction(_ call: InterceptedCall, _ frame: Frame) throws(PluginError) -> Value {
        var outcome = ActionOutcome(host: dispatcher.program.hostTable)
        withUnsafeMutablePointer(to: &outcome) { outcome in
            let receiver = Dispatcher.Receiver(
                completion: { data, value, error in
                    data!.assumingMemoryBound(to: ActionOutcome.self).pointee.set(value, error)
                }, data: outcome)
            _ = self.call(frame, receiver, call)
        }
        return try outcome.result.get()
    }

    private func callAction(_ call: InterceptedCall, _ frame: Frame) async throws(PluginError) -> Value {
        let running = state.withLock { state in
            defer { state.running = nil }
            return state.running
        }
        defer { state.withLock { $0.running = running } }
        let waiting = WaitingCall(host: dispatcher.program.hostTable)
        let result = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                waiting.start(continuation) { self.call(frame, $0, call) }
            }
        } onCancel: {
            waiting.cancel()
        }
        return try result.get()
    }

    // MARK: The deadline

    private func watchCancelling(_ frame: Frame) {
        let table = endpoint.generation.hostTable!
        let hold = Unmanaged.passRetained(
            CancelWatch(self) { [deadline = frame.deadline] invocation in
                invocation.cancel(isOverdue: deadline != 0 && monotonicNow() >= deadline)
            })
        table.pointee.on_cancel(
            table, frame.token,
            { data, isCancelled in
                let watch = Unmanaged<CancelWatch>.fromOpaque(data!).takeRetainedValue()
                if isCancelled != 0 { watch.cancel(watch.invocation) }
            }, hold.toOpaque())
    }

    private final class CancelWatch: Sendable {
        let invocation: InterceptedInvocation
        let cancel: @Sendable (InterceptedInvocation) -> Void

        init(_ invocation: InterceptedInvocation, _ cancel: @escaping @Sendable (InterceptedInvocation) -> Void) {
            (self.invocation, self.cancel) = (invocation, cancel)
        }
    }

    private func cancel(isOverdue: Bool) {
        let (tasks, running) = state.withLock { state in
            state.isCancelled = true
            return (state.tasks, state.running)
        }
        if isOverdue, let running { reportOverdue(running) }
        for task in tasks { task.cancel() }
    }

    private func reportOverdue(_ index: Int) {
        dispatcher.settings.log(
            LogEntry(
                level: .warning, call: endpoint.name,
                message: "The interceptor \(interceptors[index].scope) ran past the deadline of a call of "
                    + "\(endpoint.title)."))
    }
}

/// The call that a task of an interceptor works on, as the parent of calls that it makes.
enum InterceptedTask {
    @TaskLocal static var call: plugin_token = 0
}

/// What a synchronous action has answered.
private struct ActionOutcome {
    let host: UnsafePointer<plugin_host>
    var result: Result<Value, PluginError> = .success(.null)

    init(host: UnsafePointer<plugin_host>) { self.host = host }

    mutating func set(_ value: UnsafePointer<plugin_value>?, _ error: UnsafePointer<plugin_error>?) {
        result = Self.result(value, error, host)
    }

    static func result(
        _ value: UnsafePointer<plugin_value>?, _ error: UnsafePointer<plugin_error>?, _ host: UnsafePointer<plugin_host>
    ) -> Result<Value, PluginError> {
        if let error { return .failure(PluginError(error.pointee)) }
        return .success(value.map { Value(copying: $0.pointee, host: host) } ?? .null)
    }
}

/// What the rest of a call has come to, for the thread that waits for it.
private final class RestOutcome: Sendable {
    let value = Mutex<Result<Value, any Error>?>(nil)
}

/// A call of an action whose outcome a task waits for.
private final class WaitingCall: Sendable {
    private nonisolated(unsafe) let host: UnsafePointer<plugin_host>  // It lives as long as the process.
    private typealias Continuation = UnsafeContinuation<Result<Value, PluginError>, Never>
    private let continuation = Mutex<Continuation?>(nil)
    private let token = Mutex<(call: plugin_token, isCancelled: Bool)>((0, false))

    init(host: UnsafePointer<plugin_host>) { self.host = host }

    func start(
        _ continuation: UnsafeContinuation<Result<Value, PluginError>, Never>,
        _ call: (Dispatcher.Receiver) -> plugin_token
    ) {
        self.continuation.withLock { $0 = continuation }
        let hold = Unmanaged.passRetained(self).toOpaque()
        let started = call(
            Dispatcher.Receiver(
                completion: { data, value, error in
                    let waiting = Unmanaged<WaitingCall>.fromOpaque(data!).takeRetainedValue()
                    let result = ActionOutcome.result(value, error, waiting.host)
                    waiting.continuation.withLock { $0 }?.resume(returning: result)
                }, data: hold))
        let isCancelled = token.withLock {
            $0.call = started
            return $0.isCancelled
        }
        if isCancelled { cancel() }
    }

    func cancel() {
        let started = token.withLock {
            $0.isCancelled = true
            return $0.call
        }
        if started != 0 { Dispatcher.abandon(started, PluginError(.cancelled, "The caller cancelled the call.")) }
    }
}

/// Runs each step of a task on a thread that it may block.
private final class BlockingThreads: TaskExecutor {
    static let shared = BlockingThreads()

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        DispatchQueue(label: "pluginhost.interceptor").async {
            job.runSynchronously(on: self.asUnownedTaskExecutor())
        }
    }
}
