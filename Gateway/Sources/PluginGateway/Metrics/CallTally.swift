import Foundation
import HTTPTypes
import PluginABI
import Synchronization

/// The calls of a module by HTTP, counted since the gateway was made. Calls that did not reach the module, because of a
/// limit or because the gateway ends, are not counted. Running calls, and calls whose clients have left, are counted
/// separately.
public struct CallTally: Sendable {
    /// The number of calls that are over.
    public private(set) var calls = 0
    /// The number of calls that failed because of the module: its own errors, crashes, and calls that took too long.
    public private(set) var errors = 0
    /// The number of calls for each duration: a bucket is a fifth longer than the one before.
    private var buckets = [Int](repeating: 0, count: CallTally.bucketCount)

    /// The number of calls for each duration after which their clients left, before the calls were over.
    private var left = [Int](repeating: 0, count: CallTally.bucketCount)
    /// The times at which the running calls began.
    public private(set) var running: [ContinuousClock.Instant] = []

    private static let bucketCount = 120

    init() {}

    mutating func add(_ nanoseconds: Int64, isError: Bool) {
        calls += 1
        if isError { errors += 1 }
        buckets[Self.bucket(nanoseconds)] += 1
    }

    mutating func leave(_ nanoseconds: Int64) { left[Self.bucket(nanoseconds)] += 1 }

    fileprivate func with(_ running: [ContinuousClock.Instant]) -> CallTally {
        var tally = self
        tally.running = running
        return tally
    }

    private static func bucket(_ nanoseconds: Int64) -> Int {
        min(bucketCount - 1, Int(log2(max(1, Double(nanoseconds) / 1000)) * 4))
    }

    /// How many calls have begun: those that are over, those that run, and those whose clients have left.
    public var begun: Int { calls + running.count + left.reduce(0, +) }

    /// Returns a tally in which the calls that have run for longer than a duration, or whose clients left after it,
    /// count as failed.
    ///
    /// - Parameter duration: The duration, which may be taken as up to a fifth longer for calls that were left.
    public func failing(after duration: Duration) -> CallTally {
        var tally = self
        let now = ContinuousClock.now
        for start in running where now - start > duration {
            tally.add((now - start).nanoseconds, isError: true)
        }
        tally.running.removeAll { now - $0 > duration }
        for place in left.indices where place > Self.bucket(duration.nanoseconds) {
            tally.calls += left[place]
            tally.errors += left[place]
            tally.buckets[place] += left[place]
            tally.left[place] = 0
        }
        return tally
    }

    /// Returns what has been counted since an earlier tally of the same module, without the calls that ran then.
    ///
    /// - Parameter earlier: The earlier tally.
    public func since(_ earlier: CallTally) -> CallTally {
        var tally = self
        tally.calls -= earlier.calls
        tally.errors -= earlier.errors
        for place in buckets.indices {
            tally.buckets[place] -= earlier.buckets[place]
            tally.left[place] -= earlier.left[place]
        }
        let before = Set(earlier.running)
        tally.running.removeAll { before.contains($0) }
        return tally
    }

    /// Returns the duration that a share of the calls did not exceed; `nil` if there were none. It may be up to a fifth
    /// too large.
    ///
    /// - Parameter share: The share, 0 to 1: 0.99 for the 99th percentile.
    public func percentile(_ share: Double) -> Duration? {
        guard calls > 0 else { return nil }
        var left = Int((Double(calls) * share).rounded(.up))
        for (place, count) in buckets.enumerated() {
            left -= count
            if left <= 0 { return .microseconds(Int(exp2(Double(place + 1) / 4).rounded(.up))) }
        }
        return nil
    }
}

/// The tallies of all modules.
final class CallTallies: Sendable {
    /// How many modules are counted.
    private static let limit = 5000

    private let modules = Mutex<[String: Module]>([:])

    /// The tally of one module.
    final class Module: Sendable {
        private struct State {
            var tally = CallTally()
            /// The times at which the running calls began, by number. Numbers are used again.
            var running: [ContinuousClock.Instant?] = []
            var free: [Int] = []
        }

        private let state = Mutex(State())

        /// Notes a call that begins, and returns its number.
        func begin(_ start: ContinuousClock.Instant) -> Int {
            state.withLock { state in
                guard let number = state.free.popLast() else {
                    state.running.append(start)
                    return state.running.count - 1
                }
                state.running[number] = start
                return number
            }
        }

        /// Adds a call that is over.
        func end(_ number: Int, _ problem: Problem?, _ nanoseconds: Int64) {
            let isLeft = problem?.error.code == .cancelled
            let isUnmade = !isLeft && problem.map { CallTallies.unmade.contains($0.error.code) } ?? false
            let isError = problem.map { $0.error.source != nil || $0.status.code >= 500 } ?? false
            state.withLock { state in
                state.running[number] = nil
                state.free.append(number)
                if isLeft {
                    state.tally.leave(nanoseconds)
                } else if !isUnmade {
                    state.tally.add(nanoseconds, isError: isError)
                }
            }
        }

        fileprivate var tally: CallTally { state.withLock { $0.tally.with($0.running.compactMap(\.self)) } }
    }

    /// Returns the tally of a module, to count in; `nil` if too many are counted.
    func module(_ name: String) -> Module? {
        modules.withLock { modules in
            if let module = modules[name] { return module }
            guard modules.count < Self.limit else { return nil }
            let module = Module()
            modules[name] = module
            return module
        }
    }

    subscript(module: String) -> CallTally { modules.withLock { $0[module] }?.tally ?? CallTally() }

    /// The codes of calls that were not made.
    private static let unmade: Set<PluginError.Code> = [
        .moduleBusy, .overloaded, .hostStarting, .hostStopping, .hostStopped, .outOfResources,
    ]
}

extension PluginGateway {
    /// Returns the calls of a module over HTTP since this gateway was created, in all versions of the module.
    ///
    /// - Parameter module: The name of the module.
    public func tally(of module: String) -> CallTally { tallies[module] }
}

extension Duration {
    /// The duration in nanoseconds, at most some 292 years.
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, isLong) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return isLong ? .max : product + attoseconds / 1_000_000_000
    }
}
