import CPluginHost
import PluginABI
import Synchronization

/// What calls have made of an action so far, in all generations of its module, those that are retired included.
public struct ActionStatistics: Sendable {
    /// The name of the module.
    public let module: String
    /// Target and action (`A/fetchDetail`), type and action (`Cursor#next`), the event of a subscriber (`!shop.sold`), a
    /// hook (`@setUp`) or an interceptor (`~limit`).
    public let action: String
    /// How many calls there were, exactly: those that run, and those that were refused for their parameters, included.
    public let calls: Int
    /// How many of them ended with an error, exactly: whoever's error it was, the deadline's included.
    public let errors: Int
    /// How many were measured: the first one on each thread, and every sixty-fourth there.
    public let measured: Int
    /// What half of the measured calls did not exceed, at most an eighth too large; nil where none was measured. A call
    /// lasts from its beginning to its reply, the time that it waits for a serial module included.
    public let median: Duration?
    /// What 99 of 100 measured calls did not exceed, at most an eighth too large.
    public let percentile99: Duration?
    /// The longest of the measured calls.
    public let maximum: Duration?
}

/// The endpoints whose calls are shown.
final class Statistics: Sendable {
    private let endpoints = Mutex<[Endpoint]>([])

    /// Endpoints are never freed, so keeping them costs nothing more.
    func add(_ endpoint: Endpoint) { endpoints.withLock { $0.append(endpoint) } }

    var all: [ActionStatistics] {
        struct Name: Hashable { let module, action: String }
        typealias Sum = (calls: UInt64, errors: UInt64, durations: Durations.Measured)
        var sums: [Name: Sum] = [:]
        for endpoint in endpoints.withLock({ $0 }) {
            let tally = plugin_host_tally_sum(endpoint.number)
            guard tally.calls > 0 else { continue }
            let name = Name(module: endpoint.generation.name, action: endpoint.name)
            var sum: Sum = sums[name] ?? (0, 0, Durations.Measured(counts: [], longest: 0))
            sum.calls += tally.calls
            sum.errors += tally.errors
            sum.durations += endpoint.durations.measured
            sums[name] = sum
        }
        return sums.sorted { ($0.key.module, $0.key.action) < ($1.key.module, $1.key.action) }.map { name, sum in
            let total = sum.durations.total
            return ActionStatistics(
                module: name.module, action: name.action, calls: Int(sum.calls), errors: Int(sum.errors),
                measured: total, median: sum.durations.quantile(0.5), percentile99: sum.durations.quantile(0.99),
                maximum: total > 0 ? .nanoseconds(sum.durations.longest) : nil)
        }
    }
}
