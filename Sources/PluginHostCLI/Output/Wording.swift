internal import FoundationEssentials
internal import Glibc

// Counts, sizes and times as text for people.

/// Returns a count with its noun: "1 call", "2 calls".
func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }

/// Returns a duration in seconds: "8 s", "0.5 s".
func inSeconds(_ duration: Duration) -> String {
    let seconds = duration / .seconds(1)
    return seconds == seconds.rounded() ? "\(Int(seconds)) s" : "\(seconds) s"
}

/// Returns seconds with a unit that leaves one to three digits before the point.
func inShort(seconds: Double) -> String {
    for (unit, scale) in [("s", 1.0), ("ms", 1e3), ("µs", 1e6)] where seconds * scale >= 1 {
        let tenths = Int((seconds * scale * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) \(unit)"
    }
    return "\(Int((seconds * 1e9).rounded())) ns"
}

/// Returns seconds as milliseconds with three digits after the point.
func inMilliseconds(seconds: Double) -> String {
    let microseconds = Int((seconds * 1e6).rounded())
    let rest = String(microseconds % 1000)
    return "\(microseconds / 1000)." + String(repeating: "0", count: 3 - rest.count) + rest
}

extension Int {
    /// The number as a size in bytes: `1.4 MiB`.
    var inBytes: String {
        var (size, unit) = (Double(self), 0)
        let units = ["B", "KiB", "MiB", "GiB", "TiB"]
        while size >= 1024, unit + 1 < units.count { (size, unit) = (size / 1024, unit + 1) }
        let tenths = Int((size * 10).rounded())
        return unit == 0 || tenths >= 1000
            ? "\(tenths / 10) \(units[unit])" : "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }
}

extension Date {
    /// The time of day in the local time zone: `17:04:59`.
    var timeOfDay: String {
        var seconds = time_t(timeIntervalSince1970)
        var parts = tm()
        localtime_r(&seconds, &parts)
        return [parts.tm_hour, parts.tm_min, parts.tm_sec].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
    }
}
