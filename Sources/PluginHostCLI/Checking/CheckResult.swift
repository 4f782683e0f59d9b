internal import PluginABI

/// The result of one check.
struct CheckResult: Sendable {
    enum Outcome: String, Sendable {
        case pass, warning, failure, skipped
    }

    /// A problem, and what to do about it.
    struct Finding: Sendable, Hashable {
        var isFailure: Bool
        var message: String
        /// The advice, as a sentence. It is shown once for several findings with the same advice.
        var advice = ""
        /// The action that the finding is about: `Target/action` or `Type#action`.
        var action: String? = nil
        /// The address of the code that the finding is about.
        var address: CodeAddress? = nil
        var location: CodeLocation? = nil

        /// How the message of a crash begins.
        static let crashes = "It crashes the process"
        var isCrash: Bool { message.hasPrefix(Self.crashes) }

        /// The message and the location.
        var statement: String { location.map { "\(message) In \($0.description)." } ?? message }
        /// The message, the location and the advice.
        var text: String { advice.isEmpty ? statement : "\(statement) \(advice)" }

        var record: Value {
            .entries([
                "failure": .bool(isFailure), "message": .string(text), "advice": .string(advice),
                "action": action.map(Value.string), "address": address?.record, "location": location?.record,
            ])
        }
    }

    /// The name of the check.
    let check: String
    /// A description of what was done; shown if there are no findings.
    var summary = ""
    var findings: [Finding] = []
    /// Further information for people, each a sentence.
    var notes: [String] = []
    var isSkipped = false

    var outcome: Outcome {
        if isSkipped { return .skipped }
        if findings.contains(where: \.isFailure) { return .failure }
        return findings.isEmpty ? .pass : .warning
    }

    /// - Parameters:
    ///   - advice: What to do about it.
    ///   - call: The call that the finding is about.
    mutating func fail(_ message: String, advice: String = "", about call: CheckedCall? = nil) {
        add(Finding(isFailure: true, message: message, advice: advice, action: call?.title))
    }

    mutating func warn(_ message: String, advice: String = "", about call: CheckedCall? = nil) {
        add(Finding(isFailure: false, message: message, advice: advice, action: call?.title))
    }

    /// Sets the addresses of the actions that findings are about. Called in the process of the check.
    ///
    /// - Parameter function: Returns the function of an action.
    mutating func setAddresses(_ function: (String) -> UnsafeRawPointer?) {
        for index in findings.indices {
            findings[index].address = findings[index].action.flatMap(function).flatMap(CodeAddress.init(of:))
        }
    }

    /// Sets the locations of the findings that have addresses. The functions of actions in Swift are those of `PluginABI`,
    /// and are not shown.
    mutating func setLocations(_ symbolizer: Symbolizer) {
        let locations = symbolizer.locations(of: findings.compactMap(\.address))
        for index in findings.indices {
            guard let location = locations.first(where: { $0.address == findings[index].address }) else { continue }
            findings[index].address = nil
            if location.function != nil, !location.isOfInterface { findings[index].location = location }
        }
    }

    private mutating func add(_ finding: Finding) {
        if !findings.contains(finding) { findings.append(finding) }
    }

    /// The findings, failures first.
    private var sorted: [Finding] { findings.filter(\.isFailure) + findings.filter { !$0.isFailure } }

    /// Returns the result as text for people.
    func line(_ style: Style) -> String {
        let word =
            switch outcome {
            case .pass: style("pass   ", .dim)
            case .skipped: style("skipped", .dim)
            case .warning: style("warning", .yellow)
            case .failure: style("FAILURE", .red)
            }
        let name = check + String(repeating: " ", count: max(1, 12 - check.count))
        let shown = Array(sorted.prefix(Self.lineLimit))
        var messages = findings.isEmpty ? [summary] : []
        for (index, finding) in shown.enumerated() {
            let isRepeated = index + 1 < shown.count && shown[index + 1].advice == finding.advice
            messages.append(isRepeated ? finding.statement : finding.text)
        }
        if !isSkipped { messages += notes }
        // Further findings are indented below the first.
        let indent = "\n" + String(repeating: " ", count: 9 + name.count + 1)
        let rest =
            findings.count > Self.lineLimit ? "\(indent)and \(findings.count - Self.lineLimit) more: see --json" : ""
        return "\(word)  \(name) \(messages.map(\.printable).joined(separator: indent))\(rest)"
    }

    /// The number of findings of one check that are shown as text.
    private static let lineLimit = 5

    var record: Value {
        [
            "check": .string(check), "outcome": .string(outcome.rawValue),
            "summary": .string(outcome == .failure ? sorted.first?.text ?? summary : summary),
            "findings": .list(sorted.map(\.record)),
            "notes": .list(notes.map(Value.string)),
        ]
    }
}

extension CheckResult {
    /// Reads the result that the child process has reported.
    init(_ check: String, told: Value) {
        self.check = check
        summary = told.text("summary")
        notes = told.texts("notes")
        findings = told.list("findings").map {
            let (text, advice) = ($0.text("message"), $0.text("advice"))
            let message = advice.isEmpty ? text : String(text.dropLast(advice.count + 1))
            return Finding(
                isFailure: $0["failure"] == true, message: message, advice: advice, action: $0["action"]?.string,
                address: CodeAddress($0["address"]))
        }
    }
}
