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
    }

    /// The name of the check.
    let check: String
    /// A description of what was done; shown if there are no findings.
    var summary = ""
    var findings: [Finding] = []
    var isSkipped = false

    var outcome: Outcome {
        if isSkipped { return .skipped }
        if findings.contains(where: \.isFailure) { return .failure }
        return findings.isEmpty ? .pass : .warning
    }

    mutating func fail(_ message: String) { add(Finding(isFailure: true, message: message)) }
    mutating func warn(_ message: String) { add(Finding(isFailure: false, message: message)) }

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
        let messages = findings.isEmpty ? [summary] : sorted.prefix(Self.lineLimit).map(\.message)
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
            "summary": .string(outcome == .failure ? sorted.first?.message ?? summary : summary),
            "findings": .list(
                sorted.map { ["failure": .bool($0.isFailure), "message": .string($0.message)] }),
        ]
    }
}

extension CheckResult {
    /// Reads the result that the child process has reported.
    init(_ check: String, told: Value) {
        self.check = check
        summary = told.text("summary")
        findings = told.list("findings").map {
            Finding(isFailure: $0["failure"] == true, message: $0.text("message"))
        }
    }
}
