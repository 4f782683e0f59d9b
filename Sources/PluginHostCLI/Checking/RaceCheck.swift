internal import Glibc
internal import PluginABI
internal import PluginHost
internal import Synchronization

/// Compares the replies that several threads get with those that one thread gets.
///
/// One thread goes first, with as many calls as all threads together make afterwards; then the threads take turns. An
/// action whose replies differ in either of these phases depends on time, chance, earlier calls or the thread: the
/// threads call it, too, but its replies are not compared.
struct RaceCheck: Sendable {
    static let threads = 4
    /// The maximum number of calls of one action in each of the phases.
    private static let calls = 20_000
    /// The number of calls of an action that is not compared. An action that is called less often in its time is slow,
    /// and is not mixed with others.
    private static let fewCalls = 200
    /// An action that is called at least this often in its time is quick.
    private static let quickCalls = 3000
    /// The maximum number of combinations of parameters for one action.
    private static let variations = 8

    /// Performs a call and returns its outcome.
    let perform: @Sendable (CheckedCall, Parameters) async -> Result<Value, PluginError>
    /// Called with a description of each action or phase that begins.
    let progress: @Sendable (String) -> Void
    /// The time of one phase with one action.
    let share: Duration
    /// The time of one phase with an action that is quick, so that it is called often on a busy machine, too.
    let longShare: Duration

    /// An action with the replies to the calls of one thread.
    final class Trial: Sendable {
        let call: CheckedCall
        let parameters: [Parameters]
        let shown: [Value]
        let replies: [Result<Value, PluginError>]
        /// The number of calls that one thread made in its time.
        let count = Atomic<Int>(0)
        /// Whether replies differed although there was one call at a time.
        let isUnsteady: Atomic<Bool>
        /// The first reply that differed on several threads.
        let difference = Mutex<(variation: Int, reply: Result<Value, PluginError>)?>(nil)

        fileprivate var isDifferent: Bool { difference.withLock { $0 != nil } }

        fileprivate init(
            _ call: CheckedCall, _ parameters: [Parameters], _ shown: [Value], _ replies: [Result<Value, PluginError>],
            isUnsteady: Bool
        ) {
            (self.call, self.parameters, self.shown, self.replies) = (call, parameters, shown, replies)
            self.isUnsteady = Atomic(isUnsteady)
        }
    }

    /// Calls all actions on one thread, then on several, and returns what was found.
    ///
    /// - Parameter values: Makes parameters of an action.
    func run(
        _ calls: [CheckedCall], values: (CheckedManifest.Action) -> [String: Value]
    ) async -> [Trial] {
        var trials: [Trial] = []
        for call in calls { trials.append(await trial(call, values)) }
        for trial in trials { await alone(trial) }
        let mixed = trials.filter { $0.count.load(ordering: .relaxed) >= Self.fewCalls }
        await mix(mixed, onThreads: 1)
        for trial in trials { await together(trial) }
        await mix(mixed, onThreads: Self.threads)
        return trials
    }

    // MARK: One thread

    /// Calls an action once with each of its combinations of parameters; with fewer if it is slow.
    private func trial(_ call: CheckedCall, _ values: (CheckedManifest.Action) -> [String: Value]) async -> Trial {
        var (shown, replies): ([Value], [Result<Value, PluginError>]) = ([], [])
        var parameters: [Parameters] = []
        let hasVariations = !call.action.parameters.isEmpty || call.action.hasRest
        let start = ContinuousClock.now
        repeat {
            let next = values(call.action)
            progress("\(call.title) with \(Value.map(next).json.prefix(300))")
            shown.append(.map(next))
            parameters.append(Parameters(next))
            replies.append(await perform(call, parameters.last!))
        } while hasVariations && replies.count < Self.variations && ContinuousClock.now - start < share / 4
        return Trial(call, parameters, shown, replies, isUnsteady: replies.contains(where: \.isIncomparable))
    }

    /// Calls an action again and again on this thread.
    private func alone(_ trial: Trial) async {
        let start = ContinuousClock.now
        var end = start + share
        for count in 0..<(trial.replies.contains(where: \.isOverdue) ? 0 : Self.calls) {
            if ContinuousClock.now >= end {
                if count >= Self.quickCalls { end = start + longShare }
                guard ContinuousClock.now < end || count < trial.replies.count else { break }
            }
            await compare(trial, count % trial.replies.count, isAlone: true)
            trial.count.store(count + 1, ordering: .relaxed)
            if trial.isUnsteady.load(ordering: .relaxed), count >= Self.fewCalls { break }
        }
        if trial.count.load(ordering: .relaxed) > 0 { await inTurn(trial) }
    }

    /// Calls an action on several threads, one after the other: a reply may depend on the thread.
    private func inTurn(_ trial: Trial) async {
        let turns = min(trial.count.load(ordering: .relaxed), Self.fewCalls)
        let turn = Atomic(0)
        await onThreads(Self.threads) { thread, end in
            while ContinuousClock.now < end {
                let number = turn.load(ordering: .acquiring)
                guard number < turns else { return }
                guard number % Self.threads == thread else {
                    sched_yield()
                    continue
                }
                await compare(trial, number / Self.threads % trial.replies.count, isAlone: true)
                turn.store(number + 1, ordering: .releasing)
            }
        }
    }

    // MARK: Several threads

    private func together(_ trial: Trial) async {
        progress("\(trial.call.title) on \(Self.threads) threads at once")
        let count = trial.count.load(ordering: .relaxed)
        let most = max(1, count / Self.threads)
        await onThreads(Self.threads, isLong: count >= Self.quickCalls) { thread, end in
            for count in 0..<most where count == 0 || (ContinuousClock.now < end && !trial.isDifferent) {
                await compare(trial, (count + thread) % trial.replies.count, isAlone: false)
            }
        }
    }

    /// Calls all actions in orders that differ from thread to thread.
    private func mix(_ trials: [Trial], onThreads threads: Int) async {
        guard trials.count > 1 else { return }
        progress("all actions, on \(threads == 1 ? "one thread" : "\(threads) threads at once")")
        let count = Self.calls / threads
        await onThreads(threads) { thread, end in
            var random = SeededValues(seed: UInt64(thread))
            for _ in 0..<count where ContinuousClock.now < end {
                let trial = trials[random.index(below: trials.count)]
                await compare(trial, random.index(below: trial.replies.count), isAlone: threads == 1)
            }
        }
    }

    /// Runs a function on several threads. It gets the number of its thread, and the time at which it must end.
    private func onThreads(
        _ count: Int, isLong: Bool = false, _ body: @escaping @Sendable (Int, ContinuousClock.Instant) async -> Void
    ) async {
        let end = ContinuousClock.now + (isLong ? longShare : share)
        let waiting = Waiting(count)
        await withTaskGroup { group in
            for thread in 0..<count {
                group.addTask {
                    waiting.wait(until: end)
                    await body(thread, end)
                }
            }
        }
    }

    private func compare(_ trial: Trial, _ variation: Int, isAlone: Bool) async {
        let reply = await perform(trial.call, trial.parameters[variation])
        guard !trial.isUnsteady.load(ordering: .relaxed), !reply.isSame(as: trial.replies[variation]) else { return }
        if isAlone {
            trial.isUnsteady.store(true, ordering: .relaxed)
        } else if !reply.isIncomparable {
            trial.difference.withLock { $0 = $0 ?? (variation, reply) }
        }
    }
}

/// Lets threads begin at the same time.
private final class Waiting: Sendable {
    private let missing: Atomic<Int>
    init(_ count: Int) { missing = Atomic(count) }

    func wait(until end: ContinuousClock.Instant) {
        missing.subtract(1, ordering: .relaxed)
        while missing.load(ordering: .relaxed) > 0, ContinuousClock.now < end { sched_yield() }
    }
}

extension RaceCheck {
    /// Adds the findings, and the names of the actions that were not compared.
    static func examine(_ trials: [Trial], of manifest: CheckedManifest, _ result: inout CheckResult) {
        for trial in trials {
            guard let (variation, reply) = trial.difference.withLock({ $0 }) else { continue }
            let expected = trial.replies[variation]
            let message =
                "\(trial.call.title) \(expected.shown) on one thread, but \(reply.shown) when \(threads) threads "
                + "called actions at once, with \(trial.shown[variation].json.brief)."
            // An action may refuse calls while it is busy.
            if case .failure(let error) = reply, case .success = expected, error.source == manifest.name,
                ![.invalidResult, .noReply].contains(error.code)
            {
                result.warn(message, advice: CheckStep.concurrent.advice, about: trial.call)
            } else {
                result.fail(message, advice: CheckStep.concurrent.advice, about: trial.call)
            }
        }
        result.summary = "all actions on \(threads) threads at once, with the replies of one thread"
        let unsteady = trials.filter { $0.isUnsteady.load(ordering: .relaxed) }.map(\.call.title)
        guard !unsteady.isEmpty else { return }
        result.notes.append(
            "Not compared, because the replies differ from call to call: \(unsteady.joined(separator: ", ")).")
    }
}

extension Result<Value, PluginError> {
    /// Whether the call got no reply in time.
    fileprivate var isOverdue: Bool {
        if case .failure(let error) = self { error.source == nil && error.code == .deadlineExceeded } else { false }
    }

    /// Whether the outcome depends on what else happens in the host, not on the action.
    fileprivate var isIncomparable: Bool {
        guard case .failure(let error) = self, error.source == nil else { return false }
        return [.deadlineExceeded, .overloaded, .cancelled, .outOfResources].contains(error.code)
    }

    /// Returns whether two outcomes are equal. Objects are equal if they are in the same places.
    fileprivate func isSame(as other: Self) -> Bool {
        switch (self, other) {
        case (.success(let value), .success(let other)): value == other || value.plain == other.plain
        case (.failure(let error), .failure(let other)):
            error.code == other.code && error.message == other.message && error.source == other.source
        default: false
        }
    }

    fileprivate var shown: String {
        switch self {
        case .success(let value): "replies \(value.json.brief)"
        case .failure(let error): "fails (“\(error.message.brief)”)"
        }
    }
}

extension Value {
    /// The value with a fixed text instead of each object, and of each number that may be an address, for comparisons.
    fileprivate var plain: Value {
        switch self {
        case .object: .string("object")
        case .list(let values): .list(values.map(\.plain))
        case .map(let values): .map(values.mapValues(\.plain))
        case .double(let number): .int(Int(bitPattern: UInt(number.bitPattern)))
        case .int(let number) where (1 << 40..<1 << 47).contains(number): .string("address")
        default: self
        }
    }
}

extension String {
    /// The beginning, for a message that shows several values.
    fileprivate var brief: String { count > 60 ? prefix(60) + "…" : self }
}
