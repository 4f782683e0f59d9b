/// One repetition of a piece of work.
public struct Sample: Sendable {
    /// The time of one call, in nanoseconds.
    public let time: Double
    let before: Reference
    let after: Reference

    public init(time: Double, before: Reference, after: Reference) {
        (self.time, self.before, self.after) = (time, before, after)
    }

    /// Whether the machine kept its speed.
    public var isSteady: Bool { before.isClose(to: after) }
    /// The time in steps of the reference's arithmetic.
    var steps: Double { 2 * time / (before.arithmetic + after.arithmetic) }
}

/// The repetitions of one piece of work.
public struct Figure: Sendable {
    public let samples: [Sample]

    public init(_ samples: [Sample]) { self.samples = samples }

    /// The median time of one call, in nanoseconds.
    public var median: Double { samples.map(\.time).median }
    var least: Double { samples.map(\.time).min() ?? 0 }
    /// The lower quartile in steps of the reference, of the steady repetitions if there are any.
    public var steps: Double {
        let steady = samples.filter(\.isSteady)
        return (steady.isEmpty ? samples : steady).map(\.steps).low
    }
    /// Whether more than half of the planned number of repetitions are steady.
    public func isSteady(of repetitions: Int) -> Bool { samples.count(where: \.isSteady) > repetitions / 2 }
}

extension Collection<Double> {
    /// The smallest element that is not exceeded by this part of all elements. The collection must not be empty.
    public func quantile(_ part: Double) -> Double {
        sorted()[Swift.max(0, Int((Double(count) * part).rounded(.up)) - 1)]
    }

    public var median: Double { quantile(0.5) }
    /// The lower quartile, which verdicts and ratios use: disturbances only add time, so that it varies less than the
    /// median.
    public var low: Double { quantile(0.25) }
}
