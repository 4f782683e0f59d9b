import Synchronization

/// Stops calls to a host that does not answer.
final class CircuitBreaker: Sendable {
    /// What a breaker does with calls.
    enum State: String, Sendable {
        /// The breaker lets calls pass.
        case closed
        /// The breaker refuses calls.
        case open
        /// The breaker has let one call pass, as a probe, and refuses the others.
        case halfOpen
    }

    private struct Contents {
        var state = State.closed
        /// How often the breaker has opened. A call belongs to the opening whose number was current when the call
        /// began.
        var opening = 0
        var failuresInRow = 0
        /// The last outcomes, the newest last; true for a failure.
        var outcomes: [Bool] = []
        var opened = ContinuousClock.now
        var lastFailure: ContinuousClock.Instant?
        var reason = ""
    }

    private let settings: RemoteConfiguration.Breaker
    private let contents = Mutex(Contents())
    /// Called after each change of the state.
    private let changed: @Sendable (State, _ reason: String) -> Void

    init(_ settings: RemoteConfiguration.Breaker, changed: @escaping @Sendable (State, String) -> Void) {
        (self.settings, self.changed) = (settings, changed)
    }

    var state: State { contents.withLock(\.state) }
    /// Why the breaker last opened.
    var reason: String { contents.withLock(\.reason) }

    /// Asks whether a call may be sent. If so, its outcome must be reported: ``succeed(_:)``, ``fail(_:_:sent:)`` or
    /// ``abandon(_:)``.
    ///
    /// - Returns: How often the breaker has opened, to be passed with the outcome; `nil` if the call is refused. The
    ///   outcomes of calls from before the last opening do not count: they say nothing about the probe, nor about what
    ///   follows.
    func admit() -> Int? {
        let (opening, isProbe) = contents.withLock { contents -> (Int?, Bool) in
            switch contents.state {
            case .closed: return (contents.opening, false)
            case .open where .now - contents.opened >= settings.pause:
                contents.state = .halfOpen
                return (contents.opening, true)
            case .open, .halfOpen: return (nil, false)
            }
        }
        if isProbe { changed(.halfOpen, "") }
        return opening
    }

    /// Notes that a call was answered.
    ///
    /// - Parameter opening: What ``admit()`` has returned.
    func succeed(_ opening: Int) {
        let closes = contents.withLock { contents in
            guard opening == contents.opening else { return false }
            contents.failuresInRow = 0
            let closes = contents.state == .halfOpen
            if closes { (contents.state, contents.outcomes) = (.closed, []) }
            add(false, to: &contents)
            return closes
        }
        if closes { changed(.closed, "") }
    }

    /// Notes that a call was not answered.
    ///
    /// - Parameters:
    ///   - opening: What ``admit()`` has returned.
    ///   - reason: What happened.
    ///   - start: When the call was sent, if its connection has failed. When one of several hosts vanishes, many calls
    ///     fail at once, and count as one failure.
    func fail(_ opening: Int, _ reason: String, sent start: ContinuousClock.Instant?) {
        let opens = contents.withLock { contents in
            guard opening == contents.opening else { return false }
            if contents.state == .closed, let start, let last = contents.lastFailure, start <= last { return false }
            contents.lastFailure = .now
            contents.failuresInRow += 1
            add(true, to: &contents)
            switch contents.state {
            case .open: return false
            case .halfOpen: break
            case .closed:
                let failures = contents.outcomes.count { $0 }
                let isFull = contents.outcomes.count >= max(1, settings.window)
                guard
                    contents.failuresInRow >= max(1, settings.failures)
                        || (isFull && Double(failures) >= settings.share * Double(contents.outcomes.count))
                else { return false }
            }
            (contents.state, contents.opened, contents.reason) = (.open, .now, reason)
            contents.opening += 1
            return true
        }
        if opens { changed(.open, reason) }
    }

    /// Notes that a call ended without showing whether the other host answers. If it was the probe, another one is
    /// sent.
    ///
    /// - Parameter opening: What ``admit()`` has returned.
    func abandon(_ opening: Int) {
        let reopens = contents.withLock { contents in
            guard opening == contents.opening, contents.state == .halfOpen else { return false }
            // The pause is already over.
            contents.state = .open
            return true
        }
        if reopens { changed(.open, reason) }
    }

    private func add(_ isFailure: Bool, to contents: inout Contents) {
        contents.outcomes.append(isFailure)
        if contents.outcomes.count > max(1, settings.window) { contents.outcomes.removeFirst() }
    }
}
