internal import PluginABI

// Further tables, for the records of the host's methods.
extension RecordTable {
    static let routes = RecordTable(
        whenEmpty: "No routes.",
        columns: [
            .text("PATTERN", "pattern"), .text("ACTION", "action"), .text("OWNER", "owner"),
            .text("SUMMARY", "summary"),
        ],
        notes: { route in
            let overlaps = route.texts("overlaps").joined(separator: ", ")
            var notes = overlaps.isEmpty ? [] : [Note(text: "overlaps \(overlaps)", colour: .yellow)]
            if let problem = route["problem"]?["message"]?.string { notes.append(Note(text: problem, colour: .red)) }
            if route["overlapsComplete"] == false {
                notes.append(
                    Note(text: "may overlap others: too large to be compared with all of them", colour: .yellow))
            }
            if let method = route["method"]?.string { notes.append(Note(text: "answers \(method) only", colour: .dim)) }
            if let transition = route["transition"]?.string {
                notes.append(Note(text: "a URL from outside shows its page by \(transition)", colour: .dim))
            }
            return notes
        })

    static let services = RecordTable(
        whenEmpty: "No services.",
        columns: [
            .text("SERVICE", "name"), .text("VERSION", "version"), .text("MODULE", "module"),
            .text("TARGET", "target"), .number("PRIORITY", "priority"),
            Column(title: "SUMMARY") { service in
                let kind = service["singleton"] == true ? "singleton" : ""
                let file = service["file"]?.string.map { "from \($0)" } ?? ""
                return [kind, file, service.text("summary")].filter { !$0.isEmpty }.joined(separator: ", ")
            },
        ])

    static let statistics = RecordTable(
        whenEmpty: "No calls yet.",
        columns: [
            .text("MODULE", "module"), .number("CALLS", "calls"), .number("ERRORS", "errors"),
            .duration("MEDIAN", "median"), .duration("99 %", "percentile99"), .duration("MAXIMUM", "maximum"),
            .text("ACTION", "action"),
        ])

    /// The table of `top`.
    static let rates = RecordTable(
        whenEmpty: "No calls yet.",
        columns: [
            .text("MODULE", "module"), .rate("CALLS/S", "callsPerSecond"), .rate("ERRORS/S", "errorsPerSecond"),
            .number("CALLS", "calls"), .number("ERRORS", "errors"), .duration("MEDIAN", "median"),
            .duration("99 %", "percentile99"), .duration("MAXIMUM", "maximum"), .text("ACTION", "action"),
        ])

    /// The table of the processes of isolated modules.
    static let processes = RecordTable(
        whenEmpty: "No processes.",
        columns: [
            .number("PROCESS", "process"), .size("MEMORY", "residentBytes"), .duration("TIME", "processorTime"),
            .number("RESTARTS", "restarts"), .text("MODULE", "name", absent: "-"),
        ])

    /// The table of a module's kept versions.
    static let versions = RecordTable(columns: [
        .text("VERSION", "version"), .time("KEPT", "kept"), .size("SIZE", "bytes"),
        Column(title: "NOTE") { $0["serving"] == true ? "serves" : "-" }, .text("FILE", "file"),
    ])

    /// The table of a profile, which shows how time was spent.
    static let profile = RecordTable(columns: [
        .text("PHASE", "phase"), .milliseconds("START MS", "start"), .milliseconds("TIME MS", "duration"),
        .text("MODULE", "module"), .text("NAME", "name"),
    ])
}

extension Console {
    /// Prints the record of a profile.
    func printProfile(_ record: Value, asJSON: Bool) {
        if asJSON { return print(record.json) }
        let entries = record.list("entries").sorted { ($0["start"]?.double ?? 0) < ($1["start"]?.double ?? 0) }
        let dropped = record.number("dropped")
        print(text(of: .profile, .list(entries)) + (dropped > 0 ? "\n  and \(dropped) more" : ""))
    }
}
