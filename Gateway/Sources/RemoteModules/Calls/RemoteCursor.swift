import NIOCore
import PluginABI
import Synchronization

/// The elements of a cursor of the other host, as they arrive. While nobody reads them, no more are received.
final class RemoteCursor: Sendable {
    typealias Waiter = @Sendable (Result<Value, PluginError>) -> Void

    /// The elements that have not been read yet.
    private struct Elements {
        private var values: [Value] = []
        private var first = 0

        var isEmpty: Bool { first == values.count }
        mutating func append(_ value: Value) { values.append(value) }

        mutating func removeFirst() -> Value {
            defer {
                first += 1
                if isEmpty { (values, first) = ([], 0) }
            }
            return values[first]
        }
    }

    private struct State {
        var elements = Elements()
        /// The approximate amount of memory that they take.
        var bytes = 0
        /// The beginning of the next line.
        var partial: [UInt8] = []
        /// The last line, if it could also be the error that ends the stream.
        var doubtful: (element: Value, error: PluginError)?
        var end: PluginError?
        var isOver = false
        var nextWaiter = 0
        var waiters: [(number: Int, waiter: Waiter)] = []
        var room: EventLoopPromise<Void>?
    }

    /// How many bytes may wait to be read before no more are received.
    private static let enough = 256 << 10
    private let limit: Int
    private let read: @Sendable (Value) -> Value
    /// Ends the request.
    private let cancel: @Sendable () -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - limit: The maximum size of an element, in bytes.
    ///   - read: Creates an element from JSON.
    ///   - cancel: Ends the request.
    init(limit: Int, read: @escaping @Sendable (Value) -> Value, cancel: @escaping @Sendable () -> Void) {
        (self.limit, self.read, self.cancel) = (limit, read, cancel)
    }

    // MARK: What arrives

    /// Adds a part of the stream of lines. The returned future succeeds when there is room for more.
    func add(_ bytes: [UInt8], _ loop: any EventLoop) -> EventLoopFuture<Void> {
        var lines: [[UInt8]] = []
        let isTooLong = state.withLock { state in
            var rest = bytes[...]
            while let end = rest.firstIndex(of: 0x0A) {
                lines.append(state.partial + rest[..<end])
                state.partial = []
                rest = rest[(end + 1)...]
            }
            state.partial += rest
            return state.partial.count > limit || lines.contains { $0.count > limit }
        }
        if isTooLong {
            finish(PluginError(.invalidResult, "An element of the cursor has more than \(limit) bytes."))
            cancel()
            return loop.makeSucceededVoidFuture()
        }
        for line in lines where !line.isEmpty {
            guard let element = try? Value(foreign: line) else {
                finish(.unavailable("The cursor has an element that is not JSON: “\(ForeignText.excerpt(line))”."))
                cancel()
                return loop.makeSucceededVoidFuture()
            }
            add(element, line.count)
        }
        return room(loop)
    }

    /// Adds an element.
    ///
    /// - Parameter size: Its size, in bytes.
    func add(_ element: Value, _ size: Int, isLine: Bool = true) {
        let deliveries: [(Waiter, Value)] = state.withLock { state in
            guard !state.isOver else { return [] }
            if let (doubtful, _) = state.doubtful { state.elements.append(doubtful) }
            state.doubtful = nil
            if isLine, let map = element.map, map.count == 1,
                let error = map["error"].flatMap(PluginError.init(problem:))
            {
                state.doubtful = (element, error)
            } else {
                state.elements.append(element)
            }
            state.bytes += size + MemoryLayout<Value>.stride
            var deliveries: [(Waiter, Value)] = []
            while !state.waiters.isEmpty, !state.elements.isEmpty {
                deliveries.append((state.waiters.removeFirst().waiter, state.elements.removeFirst()))
            }
            if state.elements.isEmpty { state.bytes = 0 }
            return deliveries
        }
        for (waiter, element) in deliveries { waiter(.success(read(element))) }
    }

    /// Returns a future that succeeds when there is room for more elements.
    func room(_ loop: any EventLoop) -> EventLoopFuture<Void> {
        state.withLock { state in
            guard state.bytes > Self.enough, !state.isOver else { return loop.makeSucceededVoidFuture() }
            let promise = loop.makePromise(of: Void.self)
            state.room = promise
            return promise.futureResult
        }
    }

    /// Ends the cursor, with or without an error. Only the first call has an effect.
    func finish(_ error: PluginError?) {
        let (waiters, end, room) = state.withLock { state -> ([Waiter], PluginError?, EventLoopPromise<Void>?) in
            guard !state.isOver else { return ([], nil, nil) }
            (state.isOver, state.end) = (true, error ?? state.doubtful?.error)
            if error == nil, !state.partial.isEmpty {
                state.end = .unavailable("The cursor has ended in the middle of an element.")
            }
            defer { (state.waiters, state.room) = ([], nil) }
            return (state.waiters.map(\.waiter), state.end, state.room)
        }
        room?.succeed()
        // If a reader waits, there are no elements.
        for waiter in waiters { waiter(end.map { .failure($0) } ?? .success(.null)) }
    }

    // MARK: Reading

    /// Gets the next element, or null at the end. Returns a number with which the wait can be given up; 0 if it is
    /// already over.
    func next(_ waiter: @escaping Waiter) -> Int {
        let (result, number, room) = state.withLock {
            state -> (Result<Value, PluginError>?, Int, EventLoopPromise<Void>?) in
            if !state.elements.isEmpty {
                let element = state.elements.removeFirst()
                if state.elements.isEmpty { state.bytes = 0 }
                guard state.elements.isEmpty else { return (.success(element), 0, nil) }
                defer { state.room = nil }
                return (.success(element), 0, state.room)
            }
            if state.isOver { return (state.end.map { .failure($0) } ?? .success(.null), 0, nil) }
            state.nextWaiter += 1
            state.waiters.append((state.nextWaiter, waiter))
            return (nil, state.nextWaiter, nil)
        }
        room?.succeed()
        if let result { waiter(result.map { $0.isNull ? $0 : read($0) }) }
        return number
    }

    /// Gives up waiting for an element. The cursor ends, since it would be unknown which element comes next.
    func giveUp(_ number: Int, _ error: PluginError) {
        let waiter = state.withLock { state -> Waiter? in
            guard let place = state.waiters.firstIndex(where: { $0.number == number }) else { return nil }
            return state.waiters.remove(at: place).waiter
        }
        guard let waiter else { return }
        waiter(.failure(error))
        finish(error)
        cancel()
    }

    /// Ends the request, because the cursor has no holder any more.
    func close() {
        finish(PluginError(.cancelled, "The cursor has no holder any more."))
        cancel()
    }
}
