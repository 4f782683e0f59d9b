internal import PluginABI
internal import PluginHost

/// Where the time has gone, for people.
struct ProfileTable {
    let text: String

    init(profile: HostProfile, console: Console) {
        var table = TextTable(
            titles: ["PHASE", "START MS", "TIME MS", "MODULE", "NAME"], style: console.outputStyle,
            width: console.width)
        for entry in profile.entries.sorted(by: { $0.start < $1.start }) {
            table.add([
                entry.phase.rawValue, Self.milliseconds(entry.start), Self.milliseconds(entry.duration),
                entry.module ?? "", entry.name,
            ])
        }
        if profile.dropped > 0 { table.addNote("and \(profile.dropped) more") }
        text = table.text
    }

    /// With three digits behind the point.
    private static func milliseconds(_ duration: Duration) -> String {
        let microseconds = Int(duration / .microseconds(1))
        let rest = String(microseconds % 1000)
        return "\(microseconds / 1000)." + String(repeating: "0", count: 3 - rest.count) + rest
    }
}

extension HostProfile {
    var record: Value {
        let entries = entries.map { entry -> Value in
            [
                "phase": .string(entry.phase.rawValue), "name": .string(entry.name),
                "module": entry.module.map { .string($0) } ?? .null, "start": .double(entry.start / .seconds(1)),
                "duration": .double(entry.duration / .seconds(1)),
            ]
        }
        return ["event": "profile", "entries": .list(entries), "dropped": .int(dropped)]
    }
}
