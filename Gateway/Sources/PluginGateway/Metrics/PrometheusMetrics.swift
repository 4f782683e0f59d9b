public import CoreMetrics
import Synchronization

/// A registry of metrics that writes them in the text format of Prometheus.
///
/// A program that wants all of its metrics in it bootstraps swift-metrics with it: `MetricsSystem.bootstrap(metrics)`.
/// The number of series is bounded; further ones are not counted, and `metrics_series_dropped_total` states their
/// number.
public final class PrometheusMetrics: MetricsFactory, Sendable {
    private struct State {
        var series: [Key: any Series] = [:]
        var kinds: [String: Kind] = [:]
        var dropped = 0
    }

    private struct Key: Hashable {
        let name: String
        let labels: String
    }

    enum Kind: String {
        case counter, gauge, histogram
    }

    let limit: Int
    private let state = Mutex(State())

    /// Makes a registry.
    ///
    /// - Parameter limit: The largest number of series, that is, of names with their labels.
    public init(limit: Int = 5000) { self.limit = limit }

    // MARK: Making handlers

    public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        make(label, dimensions, .counter) { CounterSeries() } ?? CounterSeries()
    }

    public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        make(label, dimensions, .gauge) { GaugeSeries() } ?? GaugeSeries()
    }

    public func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        guard aggregate else { return make(label, dimensions, .gauge) { GaugeSeries() } ?? GaugeSeries() }
        return make(label, dimensions, .histogram) { HistogramSeries(.values) } ?? HistogramSeries(.values)
    }

    public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        make(label, dimensions, .histogram) { HistogramSeries(.seconds) } ?? HistogramSeries(.seconds)
    }

    // The series of a name remain, so that a scrape sees them after the code that counted has ended.
    public func destroyCounter(_ handler: any CounterHandler) {}
    public func destroyMeter(_ handler: any MeterHandler) {}
    public func destroyRecorder(_ handler: any RecorderHandler) {}
    public func destroyTimer(_ handler: any TimerHandler) {}

    /// Returns a series; `nil` if there are too many, or if the name is that of another kind of metric.
    private func make<Made: Series>(
        _ label: String, _ dimensions: [(String, String)], _ kind: Kind, _ new: () -> Made
    ) -> Made? {
        let key = Key(name: Self.name(label), labels: Self.labels(dimensions))
        return state.withLock { state in
            if let known = state.series[key] { return known as? Made }
            guard state.series.count < limit, state.kinds[key.name] ?? kind == kind else {
                state.dropped += 1
                return nil
            }
            let made = new()
            state.series[key] = made
            state.kinds[key.name] = kind
            return made
        }
    }

    private static func name(_ label: String) -> String {
        let text = String(
            label.unicodeScalars.map { scalar in
                let isLetter = scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
                return isLetter || scalar == "_" || scalar == ":" ? Character(scalar) : "_"
            })
        return text.first?.isNumber == true ? "_" + text : text
    }

    private static func labels(_ dimensions: [(String, String)]) -> String {
        dimensions.map { name, value in
            let value = value.prefix(200).replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
                .replacing("\n", with: "\\n")
            return "\(Self.name(name))=\"\(value)\""
        }.joined(separator: ",")
    }

    // MARK: Writing

    /// All metrics in the text format of Prometheus, version 0.0.4.
    public var text: String {
        let (all, kinds, dropped) = state.withLock { ($0.series, $0.kinds, $0.dropped) }
        var text = ""
        let names = Dictionary(grouping: all) { $0.key.name }
        for (name, series) in names.sorted(by: { $0.key < $1.key }) {
            text += "# TYPE \(name) \(kinds[name]?.rawValue ?? "untyped")\n"
            for (key, one) in series.sorted(by: { $0.key.labels < $1.key.labels }) {
                one.write(key.name, key.labels, to: &text)
            }
        }
        return text + "# TYPE metrics_series_dropped_total counter\nmetrics_series_dropped_total \(dropped)\n"
    }
}

/// A name with its labels, and what was counted under it.
protocol Series: AnyObject, Sendable {
    func write(_ name: String, _ labels: String, to text: inout String)
}

extension Series {
    /// Writes one line.
    func write(_ name: String, _ labels: String, _ value: String, to text: inout String) {
        text += labels.isEmpty ? "\(name) \(value)\n" : "\(name){\(labels)} \(value)\n"
    }
}

private final class CounterSeries: CounterHandler, Series {
    private let value = Mutex<Int64>(0)

    func increment(by amount: Int64) { value.withLock { $0 &+= amount } }
    func reset() { value.withLock { $0 = 0 } }

    func write(_ name: String, _ labels: String, to text: inout String) {
        write(name, labels, "\(value.withLock { $0 })", to: &text)
    }
}

private final class GaugeSeries: MeterHandler, RecorderHandler, Series {
    private let value = Mutex(0.0)

    func set(_ new: Int64) { set(Double(new)) }
    func set(_ new: Double) { value.withLock { $0 = new } }
    func increment(by amount: Double) { value.withLock { $0 += amount } }
    func decrement(by amount: Double) { value.withLock { $0 -= amount } }
    func record(_ new: Int64) { set(new) }
    func record(_ new: Double) { set(new) }

    func write(_ name: String, _ labels: String, to text: inout String) {
        write(name, labels, "\(value.withLock { $0 })", to: &text)
    }
}

private final class HistogramSeries: TimerHandler, RecorderHandler, Series {
    enum Scale {
        case seconds, values

        var bounds: [Double] {
            switch self {
            case .seconds: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
            case .values: [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000]
            }
        }
    }

    private struct State {
        var counts: [Int]
        var sum = 0.0
    }

    private let bounds: [Double]
    private let state: Mutex<State>

    init(_ scale: Scale) {
        bounds = scale.bounds
        state = Mutex(State(counts: Array(repeating: 0, count: scale.bounds.count + 1)))
    }

    func record(_ value: Int64) { record(Double(value)) }
    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }

    func record(_ value: Double) {
        let place = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock { state in
            state.counts[place] += 1
            state.sum += value
        }
    }

    func write(_ name: String, _ labels: String, to text: inout String) {
        let (counts, sum) = state.withLock { ($0.counts, $0.sum) }
        let prefix = labels.isEmpty ? "" : labels + ","
        var total = 0
        for (bound, count) in zip(bounds.map { "\($0)" } + ["+Inf"], counts) {
            total += count
            write("\(name)_bucket", "\(prefix)le=\"\(bound)\"", "\(total)", to: &text)
        }
        write("\(name)_sum", labels, "\(sum)", to: &text)
        write("\(name)_count", labels, "\(total)", to: &text)
    }
}
