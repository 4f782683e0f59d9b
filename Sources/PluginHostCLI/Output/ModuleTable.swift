internal import PluginABI

extension RecordTable {
    /// The table of modules, for the records of `list`.
    static let modules = RecordTable(
        whenEmpty: "No modules.",
        columns: [
            .text("MODULE", "name", absent: "-"), .text("VERSION", "version", absent: "-"), .state,
            Column(title: "TARGETS") { module in
                let targets = module.texts("targets")
                return targets.isEmpty ? "-" : targets.joined(separator: ", ")
            },
            .text("FILE", "file", absent: "-"),
        ],
        notes: { module in
            let interceptors = module.list("interceptors").map(note)
            let error = module["error"]?["message"]?.string.map { Note(text: $0, colour: .red) }
            let problems = module.list("problems").compactMap { problem in
                problem["message"]?.string.map { Note(text: $0, colour: .yellow) }
            }
            return interceptors + [process(module), error].compactMap(\.self) + problems
        })

    /// Returns a note about the process of an isolated module; `nil` if it has none and never crashed.
    private static func process(_ module: Value) -> Note? {
        let restarts = module["restarts"]?.int.map { "restarted \(counted($0, "time"))" }
        let parts = [text(ofProcess: module), restarts].compactMap(\.self)
        return parts.isEmpty ? nil : Note(text: parts.joined(separator: ", "), colour: .dim)
    }

    /// Returns the process in a record, with what it uses; `nil` if there is none.
    static func text(ofProcess record: Value) -> String? {
        guard let process = record["process"]?.int else { return nil }
        let memory = record["residentBytes"]?.int.map(\.inBytes)
        let time = record["processorTime"]?.double.map { "\(inShort(seconds: $0)) of processor time" }
        return (["process \(process)"] + [memory, time].compactMap(\.self)).joined(separator: ", ")
    }

    /// Returns a note about the calls that an interceptor intercepts, and whether it has run past deadlines.
    private static func note(of interceptor: Value) -> Note {
        let (scopes, overdue) = (interceptor.texts("scopes"), interceptor.texts("overdue"))
        var text = "interceptor \(interceptor.text("name"))"
        text += scopes.isEmpty ? ", not in effect" : " " + scopes.joined(separator: ", ")
        if !overdue.isEmpty { text += "; past the deadline of \(overdue.joined(separator: ", ")) now" }
        if let count = interceptor["overruns"]?.int, count > 0 {
            text += "; ran past \(counted(count, "deadline"))"
            text += interceptor["lastOverrun"]?.string.map { ", the last in \($0)" } ?? ""
        }
        return Note(text: text, colour: overdue.isEmpty ? .dim : .red)
    }
}
