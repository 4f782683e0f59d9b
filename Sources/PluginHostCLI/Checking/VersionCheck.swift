internal import FoundationEssentials
internal import PluginABI
internal import PluginFacades
internal import PluginFile

/// Compares a module with existing files: its last version, and a façade that was generated from it.
enum VersionCheck {
    /// Returns whether the version of a module says what has changed since another version.
    ///
    /// - Parameters:
    ///   - old: The manifest of the other version.
    ///   - manifest: The manifest of the module.
    static func against(_ old: Value, _ manifest: Value) -> CheckResult {
        var result = CheckResult(check: "version")
        do throws(PluginError) {
            let comparison = try ManifestComparison(from: old.parsedManifest(), to: manifest.parsedManifest())
            result.summary = "\(comparison.new) after \(comparison.old): \(comparison.summary)"
            for problem in comparison.problems { result.fail(problem) }
            result.notes = comparison.changes.map(\.description)
        } catch {
            result.fail(error.message)
        }
        return result
    }

    /// Returns whether a façade in a file is the one that would be generated now.
    static func facade(_ file: String, _ manifest: Value) -> CheckResult {
        var result = CheckResult(check: "facade", summary: "\(file) is up to date")
        guard let data = FileManager.default.contents(atPath: file) else {
            result.fail(
                "There is no readable file \(file.shortened). Pass the façade that 'pluginhost facade' has printed.")
            return result
        }
        let text = String(decoding: data, as: UTF8.self)
        guard let (name, isPublic) = Facade.declaration(in: text) else {
            result.fail("\(file) is not a façade. Pass a file that 'pluginhost facade' has printed.")
            return result
        }
        do throws(PluginError) {
            let current = try Facade(manifest: manifest.json, name: name, isPublic: isPublic).text
            if text != current {
                result.fail(
                    "\(file) is out of date: \(firstDifference(text, current)) Generate it again: pluginhost facade FILE "
                        + "--name \(name)\(isPublic ? " --public" : "") > \(file)")
            }
        } catch {
            result.fail(error.message)
        }
        return result
    }

    private static func firstDifference(_ text: String, _ current: String) -> String {
        let (lines, new) = (
            text.split(separator: "\n", omittingEmptySubsequences: false),
            current.split(separator: "\n", omittingEmptySubsequences: false)
        )
        let line = zip(lines, new).enumerated().first { $1.0 != $1.1 }?.offset ?? min(lines.count, new.count)
        func shown(_ lines: [Substring]) -> String {
            line < lines.count ? "“\(String(lines[line]).trimmed.shortened)”" : "the end"
        }
        return "line \(line + 1) is \(shown(lines)), not \(shown(new))."
    }
}

extension ManifestComparison {
    /// The number of changes of each weight: `1 breaking change, 2 additions`.
    var summary: String {
        let breaking = changes.count { $0.weight == .breaking }
        let additions = changes.count { $0.weight == .addition }
        let parts = [
            breaking > 0 ? counted(breaking, "breaking change") : nil,
            additions > 0 ? counted(additions, "addition") : nil,
            changes.count > breaking + additions ? counted(changes.count - breaking - additions, "other change") : nil,
        ].compactMap(\.self)
        return parts.isEmpty ? "no changes" : parts.joined(separator: ", ")
    }

    /// The reasons why the versions of the module and its services do not say what has changed.
    var problems: [String] { (problem.map { [$0] } ?? []) + serviceProblems }
}

extension Value {
    /// Reads a manifest that a host has accepted.
    func parsedManifest() throws(PluginError) -> ModuleManifest {
        try Bytes(json.utf8).withUnsafeBytes { (text) throws(PluginError) in
            try ModuleManifest(parsing: text, abiMinor: .max)
        }
    }
}

extension Facade {
    /// Returns the name and the access level of a façade, from its text; `nil` if the text is not a façade.
    static func declaration(in text: String) -> (name: String, isPublic: Bool)? {
        for line in text.split(separator: "\n") where line.hasSuffix(" {") {
            let words = line.split(separator: " ")
            let isPublic = words.first == "public"
            guard words.dropFirst(isPublic ? 1 : 0).first == "enum", words.count == (isPublic ? 4 : 3) else { continue }
            return (String(words[isPublic ? 2 : 1]).replacing("`", with: ""), isPublic)
        }
        return nil
    }
}

extension String {
    fileprivate var trimmed: String { String(drop { $0 == " " }) }
}
