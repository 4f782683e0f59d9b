internal import PluginABI
internal import PluginFile

/// The description of a module as a list of signatures, for people.
struct ManifestListing {
    /// The column at which marks and summaries begin, unless what precedes them is longer.
    private static let column = 50

    private let report: Value
    private let manifest: Value

    /// - Parameter report: The result of `inspect`.
    init(_ report: Value) { (self.report, manifest) = (report, report["manifest"] ?? [:]) }

    var text: String {
        let sections = [
            head,
            manifest.list("targets").map { target in
                group("TARGET \(target.text("name"))", note(target), target.list("actions"))
            }.joined(separator: [""]).map(\.self),
            manifest.list("types").map { type in
                group("TYPE \(type.text("name"))", note(type), type.list("actions"))
            }.joined(separator: [""]).map(\.self),
            section("SERVICES", manifest.list("services").map(service)),
            section("ROUTES", manifest.list("routes").map(route)),
            section("SUBSCRIPTIONS", manifest.list("events").map(signature)),
            section("INTERCEPTORS", manifest.list("interceptors").map { aside($0.text("name"), $0.text("summary")) }),
            section("REQUIRES", manifest.list("requires").map(requirement)),
            section("PERMISSIONS", manifest.list("permissions").map(\.readable)),
            line("HOOKS", manifest.list("hooks").map { $0.string ?? $0.text("name") }),
        ]
        let lines = sections.filter { !$0.isEmpty }.joined(separator: [""])
        return lines.map(\.printable).joined(separator: "\n")
    }

    private var head: [String] {
        let size = report["elf"]?["size"]?.int.map { ", \($0.inBytes)" } ?? ""
        let machine = report["elf"]?["machine"]?.string.map { ", for \($0)" } ?? ""
        let abi = report["abi"].map { ", interface \($0.number("major")).\($0.number("minor"))" } ?? ""
        let traits = ["concurrency", "level", "isolation", "start"].compactMap { key in
            manifest[key]?.string.map { "\(key) \($0)" }
        }
        let more = traits + ["exclusive", "stateless"].filter { manifest[$0] == true }
        let first = aside("\(manifest.text("name")) \(manifest.text("version"))", manifest.text("summary"))
        return [
            first.trimmed,
            "\(report.text("file")) (\(report["toolchain"]?.string ?? "no Swift runtime")\(abi)\(size)\(machine))",
        ] + (more.isEmpty ? [] : [more.joined(separator: ", ")])
    }

    private func note(_ group: Value) -> String {
        let instance = group["instance"]?.string.map { "instance \($0)" }
        let concurrency = group["concurrency"]?.string
        let summary = group.text("summary")
        let words = [instance, concurrency].compactMap(\.self) + (summary.isEmpty ? [] : [summary])
        return words.joined(separator: ", ")
    }

    private func group(_ title: String, _ note: String, _ actions: [Value]) -> [String] {
        [note.isEmpty ? title : "\(title): \(note)"]
            + actions.flatMap { action in
                let marks =
                    ["remote", "idempotent"].filter { action[$0] == true }
                    + action.texts("demands").map { "demands \($0)" }
                let summary = action.text("summary")
                let line = "  " + aside(signature(action), marks.joined(separator: ", "))
                return [line.trimmed] + (summary.isEmpty ? [] : ["      \(summary)"])
            }
    }

    /// Returns the signature of an action: `price(key: string, page: int = 1) async -> string`.
    private func signature(_ action: Value) -> String {
        var parameters = action.list("parameters").map { parameter in
            let isRequired = parameter["required"] == true
            let fallback = parameter["default"].map { " = \($0.json)" } ?? ""
            let mark = isRequired || !fallback.isEmpty ? "" : "?"
            return "\(parameter.text("name")): \(type(parameter["type"]))\(mark)\(fallback)"
        }
        if action["rest"] == true { parameters.append("...") }
        let result = action["result"].map(type)
        let arrow = result.map { $0 == "null" ? "" : " -> \($0)" } ?? " -> any"
        return "\(action.text("name"))(\(parameters.joined(separator: ", ")))"
            + (action["async"] == true ? " async" : "") + arrow
    }

    private func type(_ type: Value?) -> String { type.map { $0.string ?? $0.json } ?? "any" }

    private func service(_ service: Value) -> String {
        let singleton = service["singleton"] == true ? ", singleton" : ""
        let name = "\(service.text("name")) \(service.text("version")) by \(service.text("target"))\(singleton)"
        return aside(name, service.text("summary"))
    }

    private func route(_ route: Value) -> String {
        let defaults = (route["defaults"]?.map ?? [:]).sorted { $0.key < $1.key }.map { "\($0)=\($1.readable)" }
        let action = ([route.text("action")] + defaults).joined(separator: " ")
        let method = route["method"]?.string.map { "\($0) " } ?? ""
        return aside("\(method)\(route.text("pattern")) -> \(action)", route.text("summary"))
    }

    private func requirement(_ requirement: Value) -> String {
        let subject =
            requirement["module"]?.string.map { "module \($0)" } ?? "service \(requirement.text("service"))"
        let version = requirement["version"]?.string.map { " \($0)" } ?? ""
        return subject + version + (requirement["optional"] == true ? ", optional" : "")
    }

    private func section(_ title: String, _ lines: [String]) -> [String] {
        lines.isEmpty ? [] : [title] + lines.map { "  \($0)".trimmed }
    }

    private func line(_ title: String, _ words: [String]) -> [String] {
        words.isEmpty ? [] : ["\(title): \(words.joined(separator: ", "))"]
    }

    /// Returns a text with a remark to its right.
    private func aside(_ text: String, _ remark: String) -> String {
        if remark.isEmpty { return text }
        return text + String(repeating: " ", count: max(2, Self.column - text.count)) + remark
    }
}

extension String {
    /// The text without spaces at its end.
    fileprivate var trimmed: String { String(reversed().drop { $0 == " " }.reversed()) }
}
