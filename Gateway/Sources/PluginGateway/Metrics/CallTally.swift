import Foundation
import HTTPTypes
import PluginABI
import Synchronization

/// The calls of a module by HTTP, counted since the gateway was made. Calls that did not reach the module, because of a
/// limit or because the gateway ends, are not counted, nor are those whose clients have left.
public struct CallTally: Sendable {
    /// The number of calls that are over.
    public private(set) var calls = 0
    /// How many of them failed because of the module: its own errors, crashes, and calls that took too long.
    public private(set) var errors = 0
    /// The number of calls for each duration: a bucket is a fifth longer than the one before.
    private var buckets = [Int](repeating: 0, count: CallTally.bucketCount)

    private static let bucketCount = 120

    init() {}

    mutating func add(_ duration: Duration, isError: Bool) {
        calls += 1
        if isError { errors += 1 }
        let bucket = log2(max(1, duration / .microseconds(1))) * 4
        buckets[min(Self.bucketCount - 1, Int(bucket))] += 1
    }

    /// Returns what has been counted since an earlier tally of the same module.
    ///
    /// - Parameter earlier: The earlier tally.
    public func since(_ earlier: CallTally) -> CallTally {
        var tally = self
        tally.calls -= earlier.calls
        tally.errors -= earlier.errors
        for place in buckets.indices { tally.buckets[place] -= earlier.buckets[place] }
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

    /// Adds a call that is over.
    func add(_ module: String, _ problem: Problem?, _ duration: Duration) {
        if let problem, Self.unmade.contains(problem.error.code) { return }
        let isError = problem.map { $0.error.source != nil || $0.status.code >= 500 } ?? false
        tallies.withLock { tallies in
            guard tallies.count < Self.limit || tallies[module] != nil else { return }
            tallies[module, default: CallTally()].add(duration, isError: isError)
        }
    }

    subscript(module: String) -> CallTally { tallies.withLock { $0[module] ?? CallTally() } }

    /// The codes of calls that were not made, or that nobody waited for.
    private static let unmade: Set<PluginError.Code> = [
        .moduleBusy, .overloaded, .hostStarting, .hostStopping, .hostStopped, .cancelled, .outOfResources,
    ]
}

extension PluginGateway {
    /// Returns the calls of a module by HTTP since this gateway was made, whatever its version was.
    ///
    /// - Parameter module: The name of the module.
    public func tally(of module: String) -> CallTally { tallies[module] }
}
