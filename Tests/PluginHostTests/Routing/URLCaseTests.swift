import PluginABI
import PluginHost
import Testing

/// One line of a table of cases.
struct URLCase {
    let topic: String
    let pattern: String
    let url: String
    let expected: String

    static func read(_ table: String) -> [URLCase] {
        var topic = ""
        var cases: [URLCase] = []
        for line in table.split(separator: "\n") {
            if line.hasPrefix("--") {
                topic = String(line.dropFirst(3))
                continue
            }
            let fields = line.split(separator: "  ").map { $0 == "\"\"" ? "" : String($0) }
            cases.append(URLCase(topic: topic, pattern: fields[0], url: fields[1], expected: fields[2]))
        }
        return cases
    }

    /// The result of the library, in the notation of the table.
    ///
    /// - Parameter scheme: The first scheme of the program, if it has one.
    func outcome(_ scheme: String?) -> String {
        do throws(PluginError) {
            guard let taken = try URLPattern(pattern, scheme: scheme).match(url) else { return "-" }
            return taken.isEmpty ? "=" : Self.describe(taken.mapValues { $0.string ?? "∅" })
        } catch {
            if error.code == .invalidURL { return "?" }
            let position = error.message.split(separator: "at position ").last?.prefix { $0.isNumber }
            return error.code == .invalidPattern ? "!\(position ?? "")" : "\(error)"
        }
    }

    /// The expected result in the order of `outcome`, with invisible characters of values as escapes.
    var normalized: String {
        guard expected.contains("="), expected != "=" else { return expected }
        var taken: [String: String] = [:]
        for group in expected.split(separator: " ; ") {
            let parts = group.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            taken[String(parts[0])] = String(
                parts[1].replacing("%20", with: " ").replacing("%0A", with: "\n").replacing("%25", with: "%"))
        }
        return Self.describe(taken)
    }

    private static func describe(_ taken: [String: String]) -> String {
        taken.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: " ; ")
    }
}

/// Tables of patterns and URLs. The WHATWG standard compares escapes as they are written, but here they are decoded.
/// The tables of paths differ from the standard only in this.
@Suite struct URLCaseTests {
    private func check(_ table: String, scheme: String? = nil) {
        for each in URLCase.read(table) {
            #expect(each.outcome(scheme) == each.normalized, "\(each.topic): \(each.pattern) on \(each.url)")
        }
    }

    @Test func `A pattern matches paths as the table says`() { check(PathCases.text) }

    @Test func `A pattern matches URLs as the table says`() { check(URLCases.text) }

    @Test func `A text without a scheme is what the table says where the program has a first scheme`() {
        check(URLCases.withScheme, scheme: "App")
    }

    @Test func `The tables are read completely`() {
        #expect(URLCase.read(PathCases.text).count > 300 && URLCase.read(URLCases.text).count > 100)
    }
}
