internal import PluginABI

/// The services as a table for people, from the records that `services` gives.
struct ServiceTable: Sendable {
    let services: [Value]
    var style: Style = .plain
    /// Where longer lines are cut; nil for never.
    var width: Int? = nil

    var text: String {
        if services.isEmpty { return "No services." }
        var table = TextTable(
            titles: ["SERVICE", "VERSION", "MODULE", "TARGET", "PRIORITY", "SUMMARY"], style: style, width: width)
        for service in services {
            let words = ["name", "version", "module", "target"].map { service[$0]?.string ?? "" }
            let kind = service["singleton"] == true ? "singleton" : ""
            let file = service["file"]?.string.map { "from \($0)" } ?? ""
            let rest = [kind, file, service["summary"]?.string ?? ""].filter { !$0.isEmpty }.joined(separator: ", ")
            table.add(words + ["\(service["priority"]?.int ?? 0)", rest])
        }
        return table.text
    }
}
