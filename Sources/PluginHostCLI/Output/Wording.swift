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

/// Returns a number with one digit after the point.
func inTenths(_ number: Double) -> String {
    let tenths = Int((number * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
}

/// Returns a time of a record in the local time zone; the text itself if it is not a time.
func inLocalTime(_ text: String) -> String { (try? Date(text, strategy: .iso8601))?.localTime ?? text }

extension Date {
    /// The time of day in the local time zone, with the zone: `17:04:59+02`.
    var timeOfDay: String {
        let parts = localParts
        return Self.time(parts) + Self.zone(parts)
    }

    /// Date and time in the local time zone, with the zone: `2026-03-01 17:04:59+02`.
    var localTime: String {
        let parts = localParts
        return "\(Int(parts.tm_year) + 1900)-\(Self.two(parts.tm_mon + 1))-\(Self.two(parts.tm_mday)) "
            + Self.time(parts) + Self.zone(parts)
    }

    private var localParts: tm {
        var seconds = time_t(timeIntervalSince1970)
        var parts = tm()
        localtime_r(&seconds, &parts)
        return parts
    }

    private static func time(_ parts: tm) -> String {
        [parts.tm_hour, parts.tm_min, parts.tm_sec].map(two).joined(separator: ":")
    }

    /// Returns the distance of the zone from UTC in hours, and minutes if there are any.
    private static func zone(_ parts: tm) -> String {
        if parts.tm_gmtoff == 0 { return "Z" }
        let minutes = CInt(clamping: abs(parts.tm_gmtoff) / 60)
        let rest = minutes % 60 == 0 ? "" : ":\(two(minutes % 60))"
        return (parts.tm_gmtoff < 0 ? "-" : "+") + two(minutes / 60) + rest
    }

    private static func two(_ number: CInt) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
