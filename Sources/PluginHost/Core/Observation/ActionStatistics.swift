import CPluginHost
import Synchronization

/// The statistics of the calls of an action, across all generations of its module, including retired ones.
public struct ActionStatistics: Sendable {
    /// The name of the module.
    public let module: String
    /// Target and action (`A/fetchDetail`), type and action (`Cursor#next`), the event of a subscriber (`!shop.sold`),
    /// a hook (`@setUp`) or an interceptor (`~limit`).
    public let action: String
    /// The exact number of calls, including those that are running and those that were refused because of their
    /// parameters.
    public let calls: Int
    /// The exact number of calls that ended with an error, whatever its origin, including those past their deadline.
    public let errors: Int
    /// The number of measured calls: on each thread the first one and every sixty-fourth.
    public let measured: Int
    /// The duration that half of the measured calls did not exceed; `nil` if none was measured. It may be up to an
    /// eighth too large, because durations are counted in buckets. A call lasts from its beginning to its reply,
    /// including the time that it waits for a serial module.
    public let median: Duration?
    /// The duration that 99 of 100 measured calls did not exceed. It may be up to an eighth too large, like ``median``.
    public let percentile99: Duration?
    /// The duration of the longest measured call.
    public let maximum: Duration?
}

/// The endpoints that have statistics.
final class Statistics: Sendable {
    private let endpoints = Mutex<[Endpoint]>([])

    /// Adds an endpoint. Endpoints are never freed, so keeping a reference costs nothing.
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
