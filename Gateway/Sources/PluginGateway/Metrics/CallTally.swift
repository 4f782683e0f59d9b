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

    mutating func add(_ duration: Duration, isError: Bool) {
        calls += 1
        if isError { errors += 1 }
        buckets[Self.bucket(duration)] += 1
    }

    mutating func leave(_ duration: Duration) { left[Self.bucket(duration)] += 1 }

    fileprivate func with(_ running: [ContinuousClock.Instant]) -> CallTally {
        var tally = self
        tally.running = running
        return tally
    }

    private static func bucket(_ duration: Duration) -> Int {
        min(bucketCount - 1, Int(log2(max(1, duration / .microseconds(1))) * 4))
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
        for start in running where now - start > duration { tally.add(now - start, isError: true) }
        tally.running.removeAll { now - $0 > duration }
        for place in left.indices where place > Self.bucket(duration) {
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

    private let tallies = Mutex<[String: CallTally]>([:])
    /// The times at which the running calls began, by module and number. There are as many as the gateway lets in.
    private let running = Mutex<(next: UInt64, calls: [String: [UInt64: ContinuousClock.Instant]])>((0, [:]))

    /// Notes a call that begins, and returns its number.
    func begin(_ module: String, _ start: ContinuousClock.Instant) -> UInt64 {
        running.withLock { running in
            running.next += 1
            running.calls[module, default: [:]][running.next] = start
            return running.next
        }
    }

    /// Forgets a call that is over.
    func end(_ module: String, _ number: UInt64) {
        running.withLock { running in
            running.calls[module]?[number] = nil
            if running.calls[module]?.isEmpty == true { running.calls[module] = nil }
        }
    }

    /// Adds a call that is over.
    func add(_ module: String, _ problem: Problem?, _ duration: Duration) {
        let isLeft = problem?.error.code == .cancelled
        if let problem, !isLeft, Self.unmade.contains(problem.error.code) { return }
        let isError = problem.map { $0.error.source != nil || $0.status.code >= 500 } ?? false
        tallies.withLock { tallies in
            guard tallies.count < Self.limit || tallies[module] != nil else { return }
            if isLeft {
                tallies[module, default: CallTally()].leave(duration)
            } else {
                tallies[module, default: CallTally()].add(duration, isError: isError)
            }
        }
    }

    subscript(module: String) -> CallTally {
        let running = running.withLock { $0.calls[module].map { Array($0.values) } ?? [] }
        return tallies.withLock { $0[module] ?? CallTally() }.with(running)
    }

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
