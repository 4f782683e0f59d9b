import AsyncHTTPClient
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import PluginABI
import Synchronization

/// A call of an action of the other host. It is sent again at most once: if it certainly had no effect, or if its action
/// is idempotent.
final class RemoteCall: Sendable {
    enum Outcome: Sendable {
        case value(Value)
        case cursor(RemoteCursor)
    }

    private struct State {
        /// Whether the caller has the outcome.
        var isOver = false
        var attempt = 0
        var task: HTTPClient.Task<Void>?
        var timer: Scheduled<Void>?
        var cursor: RemoteCursor?
        /// Whether the parts of the attempt's answer are used. Parts that are read after the end of the attempt are
        /// not.
        var isOpen = false
        var hasCalledBack = false
        /// When the attempt was sent.
        var start = ContinuousClock.now
        /// What the breaker returned for the attempt.
        var opening = 0
        /// Whether the outcome of the attempt has been reported to the breaker.
        var isSettled = true
    }

    private let mount: Mount
    private let target: OfferedTarget
    private let action: OfferedTarget.Action
    private let request: CallRequest
    private let trace: TraceContext
    private let deadline: NIODeadline
    /// The call that callbacks belong to.
    private let context: HostContext
    private let finish: @Sendable (Result<Outcome, PluginError>) -> Void
    private let values: TypedValues
    private let state: Mutex<State>

    /// - Parameter finish: Receives the outcome, once, on any thread.
    init(
        _ mount: Mount, _ target: OfferedTarget, _ action: OfferedTarget.Action, _ request: CallRequest,
        _ trace: TraceContext, until deadline: NIODeadline, in context: HostContext,
        finish: @escaping @Sendable (Result<Outcome, PluginError>) -> Void
    ) {
        (self.mount, self.target, self.action, self.request) = (mount, target, action, request)
        (self.trace, self.deadline, self.context, self.finish) = (trace, deadline, context, finish)
        values = TypedValues(records: target.records)
        state = Mutex(State())
    }

    // MARK: Sending

    func start() {
        guard let clients = mount.clients else {
            return over(
                .failure(
                    mount.unavailability(of: target.name) ?? .unavailable("\(mount.url) has not been reached yet.")))
        }
        guard deadline > .now() else {
            return over(.failure(PluginError(.deadlineExceeded, "The deadline had passed before the call was sent.")))
        }
        do throws(PluginError) { try mount.enter() } catch { return over(.failure(error)) }
        let timer = clients.loops.next().scheduleTask(deadline: deadline) { [weak self] () -> Void in
            guard let self else { return }
            self.end(.late(self.action.name, self.mount.url), isUnanswered: true)
        }
        state.withLock { $0.timer = timer }
        send(1, clients, after: nil)
    }

    /// - Parameter failure: Why the call is sent again; `nil` if it is not.
    private func send(_ attempt: Int, _ clients: Mount.Clients, after failure: CallFailure?) {
        // The caller may no longer be waiting.
        if state.withLock(\.isOver) { return mount.leave() }
        guard let opening = mount.breaker.admit() else {
            over(.failure(failure?.error(isRetried: false) ?? .open(mount)))
            return mount.leave()
        }
        do throws(PluginError) {
            let request = try request(attempt)
            let (reader, client) = (reader(attempt), attempt == 1 ? clients.usual : clients.fresh)
            state.withLock { state in
                (state.attempt, state.isOpen) = (attempt, true)
                (state.opening, state.isSettled, state.start) = (opening, false, .now)
            }
            mount.countSent(isRetry: attempt > 1)
            let task = client.execute(request: request, delegate: reader)
            let isOver = state.withLock { state in
                state.task = task
                return state.isOver
            }
            task.futureResult.whenComplete { result in
                guard reader.isLarge else { return self.ended(result, reader, clients) }
                // Reading it takes time, during which the connections would be blocked.
                CallbackThreads.run { self.ended(result, reader, clients) }
            }
            if isOver { task.cancel() }
        } catch {
            mount.breaker.abandon(opening)
            over(.failure(error))
            mount.leave()
        }
    }

    private func request(_ attempt: Int) throws(PluginError) -> HTTPClient.Request {
        var headers = try mount.headers()
        headers.add(name: "Content-Type", value: request.contentType)
        headers.add(
            name: "Accept",
            value: request.callbacks.isEmpty
                ? "application/json, application/octet-stream, application/jsonl" : "text/event-stream")
        let left = max(1, (deadline - .now()).nanoseconds / 1_000_000)
        headers.add(name: "Timeout", value: "\(min(left, 86_400_000))ms")
        headers.add(name: "traceparent", value: trace.traceparent)
        headers.add(name: "tracestate", value: trace.tracestate)
        do {
            return try HTTPClient.Request(
                url: mount.url + request.path, method: .POST, headers: headers,
                body: .byteBuffer(ByteBuffer(bytes: request.body)))
        } catch {
            throw .unavailable("No request can be created for \(mount.url): \(ForeignText.excerpt("\(error)".utf8)).")
        }
    }

    private func reader(_ attempt: Int) -> AnswerReader {
        AnswerReader(limit: mount.configuration.answerLimit) { [weak self] part, loop in
            guard let self else { return loop.makeSucceededVoidFuture() }
            switch part {
            case .lines(let bytes): return self.cursor(attempt)?.add(bytes, loop) ?? loop.makeSucceededVoidFuture()
            case .events(let events): return self.handle(events, attempt, loop)
            }
        }
    }

    // MARK: Ending

    /// Ends the call before its answer, because its caller no longer waits for it.
    func cancel() {
        // The host cancels asynchronous calls at their deadline.
        if deadline <= .now() { return end(.late(action.name, mount.url), isUnanswered: true) }
        end(PluginError(.cancelled, "The call was cancelled."), isUnanswered: false)
    }

    private func end(_ error: PluginError, isUnanswered: Bool) {
        let (task, isSent, isFirst) = state.withLock { state in (state.task, state.attempt > 0, !state.isOver) }
        guard isFirst else { return }
        if isUnanswered { settle(.failure(error)) } else { settle(nil) }
        var error = error
        if isSent, !action.isIdempotent { error.message += " Whether the call took effect is unknown." }
        over(.failure(error))
        task?.cancel()
    }

    /// Reports the outcome of the attempt to the breaker, unless that has been done.
    ///
    /// - Parameter outcome: `nil` if it says nothing about the other host.
    private func settle(_ outcome: Result<Void, PluginError>?) {
        let (isSettled, start, opening) = state.withLock { state in
            defer { state.isSettled = true }
            return (state.isSettled, state.start, state.opening)
        }
        guard !isSettled else { return }
        switch outcome {
        case .success: mount.breaker.succeed(opening)
        case .failure(let error):
            mount.countUnanswered()
            let isLate = error.code == .deadlineExceeded
            // Callers with short deadlines must not stop the calls of others to a host that answers.
            guard !isLate || .now - start >= fairTime else { return mount.breaker.abandon(opening) }
            mount.breaker.fail(opening, error.message, sent: isLate ? nil : start)
        case nil: mount.breaker.abandon(opening)
        }
    }

    /// The time without an answer after which the other host is to blame: slightly less than the timeout of calls that
    /// set none, since their deadline passes before the request has waited that long; but at most 2 seconds.
    private var fairTime: Duration { min(mount.configuration.callTimeout * 0.9, .seconds(2)) }

    private func over(_ result: Result<Outcome, PluginError>) {
        let (isFirst, timer) = state.withLock { state in
            defer { (state.isOver, state.timer) = (true, nil) }
            return (!state.isOver, state.timer)
        }
        timer?.cancel()
        guard isFirst else { return }
        if case .failure(let error) = result { mount.countOver(error) } else { mount.countOver(nil) }
        finish(result)
    }

    /// Handles the end of the request.
    private func ended(_ result: Result<Void, any Error>, _ reader: AnswerReader, _ clients: Mount.Clients) {
        let (cursor, isOver, attempt, hasCalledBack) = state.withLock { state in
            state.isOpen = state.cursor != nil
            return (state.cursor, state.isOver, state.attempt, state.hasCalledBack)
        }
        let answer = reader.answer
        if let cursor {
            if case .failure = result { cursor.finish(.unavailable("The connection to \(mount.url) was lost.")) }
            cursor.finish(answer.kind == .events ? .unavailable("The events from \(mount.url) did not end.") : nil)
            return mount.leave()
        }
        guard !isOver else {
            settle(nil)
            return mount.leave()
        }
        let failure: CallFailure
        switch outcome(result, answer) {
        case .success(let outcome):
            settle(.success(()))
            over(.success(outcome))
            return mount.leave()
        case .failure(let error): failure = error.failure
        }
        settle(failure.isUnanswered ? .failure(failure.error) : .success(()))
        let isRepeatable = failure.effect == .none || action.isIdempotent
        if attempt == 1, failure.isPassing, isRepeatable, !hasCalledBack, deadline > .now() + .milliseconds(1) {
            return send(2, clients, after: failure)
        }
        over(.failure(failure.error(isRetried: attempt > 1)))
        mount.leave()
    }

    private struct Failed: Error { let failure: CallFailure }

    /// Reads an answer.
    private func outcome(_ result: Result<Void, any Error>, _ answer: AnswerReader.Answer) -> Result<Outcome, Failed> {
        if case .failure(let error) = result, !answer.isTooLarge {
            return .failure(Failed(failure: CallFailure(error, answer, mount.url)))
        }
        guard !answer.isTooLarge else { return .failure(Failed(failure: CallFailure(answer, mount))) }
        switch answer.kind {
        case .bytes: return .success(.value(.bytes(answer.body.withUnsafeBytes { Bytes(copying: $0) })))
        case .json:
            guard let value = try? Value(foreign: answer.body) else { break }
            return .success(.value(values.value(value, of: action.result)))
        case .lines:
            // No element has arrived.
            let cursor = newCursor()
            state.withLock { $0.cursor = cursor }
            cursor.finish(nil)
            return .success(.cursor(cursor))
        case .events: return .failure(Failed(failure: CallFailure(endOfEventsFrom: mount.url)))
        default: break
        }
        return .failure(Failed(failure: CallFailure(answer, mount)))
    }

    // MARK: Streams

    private func newCursor() -> RemoteCursor {
        let element = target.cursors[target.cursorType(of: action)]?.element ?? "any"
        return RemoteCursor(limit: mount.configuration.answerLimit) { [values] in
            values.value($0, of: element)
        } cancel: { [weak self] in
            self?.state.withLock(\.task)?.cancel()
        }
    }

    /// Returns the cursor that is the result of the call. When it is created, the caller receives it. `nil` if the
    /// attempt has ended.
    private func cursor(_ attempt: Int) -> RemoteCursor? {
        let made = newCursor()
        let (cursor, isNew) = state.withLock { state -> (RemoteCursor?, Bool) in
            guard state.isOpen, state.attempt == attempt else { return (nil, false) }
            if let cursor = state.cursor { return (cursor, false) }
            state.cursor = made
            return (made, true)
        }
        if isNew {
            settle(.success(()))
            over(.success(.cursor(made)))
        }
        return cursor
    }

    /// Handles the events of a part. The returned future succeeds when the next part may come.
    private func handle(
        _ events: Result<[EventReader.Event], PluginError>, _ attempt: Int, _ loop: any EventLoop
    ) -> EventLoopFuture<Void> {
        switch events {
        case .failure(let error):
            end(error, isUnanswered: false)
            return loop.makeSucceededVoidFuture()
        case .success(let events):
            guard !events.isEmpty else { return loop.makeSucceededVoidFuture() }
            if events.contains(where: { request.callbacks[$0.name] != nil }) {
                state.withLock { $0.hasCalledBack = true }
            }
            let promise = loop.makePromise(of: Void.self)
            // Callbacks are code of the program, which may take long.
            Task(executorPreference: CallbackThreads.shared) {
                for event in events { await self.handle(event, attempt) }
                promise.completeWith(self.state.withLock(\.cursor)?.room(loop) ?? loop.makeSucceededVoidFuture())
            }
            return promise.futureResult
        }
    }

    private func handle(_ event: EventReader.Event, _ attempt: Int) async {
        let (isOver, cursor) = state.withLock { state in
            (state.isOver || !state.isOpen || state.attempt != attempt, state.cursor)
        }
        if isOver, cursor == nil { return }
        guard
            event.name == "result" || event.name == "error" || event.name == "item" || event.name == "missed"
                || request.callbacks[event.name] != nil
        else { return }
        guard let data = try? Value(foreign: event.data) else {
            return end(
                .unavailable("\(mount.url) has sent an event that is not JSON: “\(ForeignText.excerpt(event.data))”."),
                isUnanswered: false)
        }
        switch event.name {
        case "item": self.cursor(attempt)?.add(data, event.data.count, isLine: false)
        case "result":
            if let cursor { return cursor.finish(nil) }
            settle(.success(()))
            over(.success(.value(values.value(data, of: action.result))))
        case "error":
            let error = PluginError(problem: data) ?? .unavailable("\(mount.url) has sent an error without a code.")
            if let cursor { return cursor.finish(error) }
            settle(.success(()))
            over(.failure(error))
        case "missed":
            mount.logger.warning(
                "Callbacks of \(target.name)/\(action.name) were too slow: \(data["count"]?.int ?? 0) calls were dropped."
            )
        default:
            let arguments = Parameters(positional: data.list ?? [])
            _ = try? await request.callbacks[event.name]?.call("call", arguments, in: context)
        }
    }
}

extension PluginError {
    fileprivate static func late(_ action: String, _ url: String) -> PluginError {
        PluginError(.deadlineExceeded, "The call of “\(action)” got no answer from \(url) before its deadline.")
    }

    fileprivate static func open(_ mount: Mount) -> PluginError {
        .unavailable(
            "\(mount.url) has not answered several calls, so no more are sent for a while. The last failure: "
                + mount.breaker.reason)
    }
}
