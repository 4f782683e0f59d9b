internal import PluginABI

extension RecordTable {
    /// The table of generations, for the records of `list --all`.
    static let generations = RecordTable(
        whenEmpty: "No modules.",
        columns: [
            .number("GENERATION", "generation"), .text("MODULE", "name", absent: "-"),
            .text("VERSION", "version", absent: "-"), .state, .time("SINCE", "since"),
            Column(title: "CALLS") { "\($0["calls"]?.list?.count ?? 0)" }, .number("OBJECTS", "objects"),
            .size("MAPPED", "mappedBytes"), .text("FILE", "file", absent: "-"),
        ],
        notes: { generation in
            let process = text(ofProcess: generation).map { [Note(text: $0, colour: .dim)] } ?? []
            let calls = generation.list("calls").map { Note(text: text(of: $0), colour: .dim) }
            let notes = process + missingProtections(generation) + crash(of: generation) + calls
            guard generation["state"] == "draining", let reason = generation["reason"]?.string else { return notes }
            return notes + [Note(text: reason, colour: .yellow)]
        })

    /// Returns a note about the parts of the sandbox that the system lacks.
    private static func missingProtections(_ generation: Value) -> [Note] {
        let parts = generation.texts("missingProtections")
        return parts.isEmpty ? [] : [Note(text: "sandbox without " + parts.joined(separator: ", "), colour: .yellow)]
    }

    /// Returns notes about how a process has crashed.
    private static func crash(of generation: Value) -> [Note] {
        guard let crash = generation["crash"]?.string else { return [] }
        let words = generation.texts("lastWords")
        let title = words.isEmpty ? crash : "\(crash) Its last words:"
        return ([title] + words.map { "  \($0)" }).map { Note(text: $0, colour: .red) }
    }

    private static func text(of call: Value) -> String {
        var text = "runs \(call.text("action"))"
        if let caller = call["caller"]?.string { text += " for \(caller)" }
        if let since = call["since"]?.string { text += " since \(inLocalTime(since))" }
        return text
    }
}

extension Console {
    /// Prints the result of `list --all`: the generations, and the memory of all retired ones.
    func printGenerations(_ answer: Value) {
        let table = text(of: .generations, answer["generations"] ?? [])
        guard answer["generations"]?.list?.isEmpty == false, let retired = answer["retired"] else {
            return print(table)
        }
        let count = counted(retired.number("count"), "generation")
        print("\(table)\n\(count) retired, \(retired.number("mappedBytes").inBytes) mapped")
    }
}
