internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginHost

/// Prints the changes of a running host: for people as lines of text with the time, for programs as JSON objects.
struct Announcer: Sendable {
    let console: Console
    let asJSON: Bool

    func started(_ modules: [ModuleStatus]) {
        let records = Value.list(modules.map(\.record))
        if asJSON {
            announce(["event": "started", "modules": records], "")
        } else {
            console.print(.modules, of: records)
        }
    }

    func watching(_ folders: [String]) {
        let names = folders.map(\.printable).joined(separator: ", ")
        announce(["event": "watching", "folders": .texts(folders)], "Watching \(names)")
    }

    func listening(_ path: String) {
        announce(["event": "listening", "socket": .string(path)], "Listening on \(path.printable)")
    }

    func changed(_ change: HostChange) { announce(change.record, change.description.printable) }

    func stopping() { announce(["event": "stopping"], "Stopping") }

    /// Prints a change from the ``EventLog`` of a host.
    func remembered(_ event: Value) {
        guard !asJSON else { return console.print(event.json) }
        let time = (event["time"]?.string).flatMap { try? Date($0, strategy: .iso8601) }
        printLine(event.text("text").printable, time ?? .now)
    }

    func missed(_ count: Int) {
        let record: Value = ["event": "missed", "count": .int(count)]
        console.print(asJSON ? record.json : "\(count) changes were missed: they happened faster than they were read.")
    }

    private func announce(_ record: Value, _ text: String) {
        guard asJSON, case .map(var entries) = record else { return printLine(text, .now) }
        entries["time"] = .time(.now)
        console.print(Value.map(entries).json)
    }

    private func printLine(_ text: String, _ time: Date) {
        // A terminal shows what happens now; a file is read later.
        let shown = isatty(1) == 1 ? time.timeOfDay : time.localTime
        console.print(console.outputStyle(shown, .dim) + "  " + text)
    }
}
