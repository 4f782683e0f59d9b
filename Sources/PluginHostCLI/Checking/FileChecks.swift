internal import Glibc
internal import PluginABI
internal import PluginFile
internal import PluginHost

/// The checks of a file and its manifest that run no code of the module.
enum FileChecks {
    /// Returns the results of these checks, given the output of `inspect` for a file.
    static func all(_ report: Value, file: String) -> [CheckResult] {
        let elf = report["elf"] ?? nil
        let ofELF =
            if let machine = elf["machine"]?.string {
                ["libraries", "symbols"].map {
                    CheckResult(check: $0, summary: "not tried: the file is for \(machine)", isSkipped: true)
                }
            } else {
                [libraries(elf, file), symbols(elf, file)]
            }
        let manifest = report["manifest"] ?? nil
        return ofELF + [names(CheckedManifest(manifest), file), routes(manifest)]
    }

    // MARK: Libraries

    private static let systemFolders = [
        "/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib", "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
    ]

    /// The library of the Swift runtime that only code without optimization needs.
    private static let debugLibrary = "libswiftSwiftOnoneSupport.so"

    private static func libraries(_ elf: Value, _ file: String) -> CheckResult {
        let needed = elf.texts("needed")
        var result = CheckResult(check: "libraries", summary: "finds the \(needed.count) that it needs")
        if needed.contains(debugLibrary) {
            let message = "\(debugLibrary) belongs to a debug build"
            if isInProgram(debugLibrary) {
                result.summary += "; \(message)"
            } else {
                result.warn(
                    "\(message), and may be missing on other machines.", advice: "Ship 'swift build -c release'.")
            }
        }
        let folder = file.contains("/") ? String(file[..<file.lastIndex(of: "/")!]) : "."
        let besides = elf.texts("staged").map { $0.split(separator: "/").last.map(String.init) ?? $0 }
        for library in needed where library != debugLibrary && !besides.contains(library) && !isInProgram(library) {
            if systemFolders.contains(where: { access("\($0)/\(library)", R_OK) == 0 }) { continue }
            let runpath = elf.texts("runpath").filter { !$0.hasPrefix("$ORIGIN") }
            let location = runpath.first { access("\($0)/\(library)", R_OK) == 0 }.map { "in \($0)" } ?? "by chance"
            result.warn(
                "\(library) is found \(location), and may be missing on other machines. Put it "
                    + "next to the module (\(folder)), and link with -Wl,-rpath,'$ORIGIN'.")
        }
        return result
    }

    /// Returns whether the program has loaded a library, so that every module finds it.
    private static func isInProgram(_ library: String) -> Bool {
        guard let handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD) else { return false }
        dlclose(handle)
        return true
    }

    /// Returns whether a module could not be opened because a library is missing.
    static func isMissingLibrary(_ error: PluginError) -> Bool {
        error.code == .openFailed && error.message.contains("cannot open shared object file")
    }

    // MARK: Symbols

    private static func symbols(_ elf: Value, _ file: String) -> CheckResult {
        let exports = elf.texts("exports")
        let swiftCount = elf["swiftExports"]?.int ?? 0
        let summary =
            swiftCount > 0
            ? "exports the entry function and \(counted(swiftCount, "Swift name")), which hosts keep apart by file"
            : "exports only the entry function"
        var result = CheckResult(check: "symbols", summary: summary)
        let advice = "Make them static, or compile with -fvisibility=hidden."
        let clashing = exports.filter { dlsym(nil, $0) != nil }
        if !clashing.isEmpty {
            result.fail(
                "It exports \(listed(clashing, file)), and so does the program: the module's calls would reach the program's "
                    + "functions.",
                advice: advice)
        }
        let others = exports.filter { !clashing.contains($0) }
        if !others.isEmpty {
            result.warn(
                "It exports \(listed(others, file)), which can clash when several modules are linked into one program.",
                advice: advice)
        }
        return result
    }

    private static func listed(_ names: [String], _ file: String) -> String {
        let more = names.count > 5 ? " and \(names.count - 5) more" : ""
        return Symbolizer().located(Array(names.prefix(5)), in: file).joined(separator: ", ") + more
    }

    // MARK: Routes

    private static func routes(_ manifest: Value) -> CheckResult {
        let count = manifest.list("routes").count
        var result = CheckResult(check: "routes", summary: "\(counted(count, "route")), none of them dead")
        do throws(PluginError) {
            let parsed = try Bytes(manifest.json.utf8).withUnsafeBytes { (text) throws(PluginError) in
                try ModuleManifest(parsing: text, abiMinor: .max)
            }
            for dead in try parsed.deadRoutes() { result.fail(dead) }
        } catch {
            result.fail(error.message)
        }
        return result
    }

    // MARK: Names

    private static func names(_ manifest: CheckedManifest, _ file: String) -> CheckResult {
        var result = CheckResult(check: "names", summary: "all are usable in URLs, on command lines and in Swift")
        let fileName = file.split(separator: "/").last.map(String.init) ?? file
        if !fileName.hasSuffix(".so") || fileName.hasPrefix(".") {
            result.fail(
                "Hosts ignore '\(fileName.shortened)': they load only files that end in '.so' and are not hidden. Rename it."
            )
        }
        compare(manifest.targets.map(\.name), "targets", &result)
        for group in manifest.targets + manifest.types {
            compare(group.actions.map(\.name), "actions of \(group.name)", &result)
            for action in group.actions {
                compare(action.parameters.map(\.name), "parameters of \(group.name)/\(action.name)", &result)
            }
        }
        for target in manifest.targets where target.actions.contains(where: \.isRemote) && !isHostName(target.name) {
            result.warn(
                "The target \(target.name) has remote actions, but not every tool accepts its name as the host of a URL. "
                    + "Use at most 63 letters, digits and '-'.")
        }
        return result
    }

    /// Returns whether a name is that of an action that sets a page's property, or handles an event of the chain.
    private static func isConventional(_ name: String) -> Bool { name.hasPrefix("set.") || name.hasPrefix("handle.") }

    /// Adds warnings about names of one scope that some tools cannot express or cannot tell apart, because these tools
    /// ignore case or know only letters and digits.
    private static func compare(_ names: [String], _ what: String, _ result: inout CheckResult) {
        var seen: [String: String] = [:]
        for name in names {
            let plain = name.lowercased().filter { !"-._".contains($0) }
            if let other = seen.updateValue(name, forKey: plain) {
                result.warn(
                    "The \(what) “\(other.shortened)” and “\(name.shortened)” differ only in case or in '-', '.', '_': some "
                        + "tools cannot tell them apart. Rename one.")
            } else if !isConventional(name), name.contains(where: { "-.".contains($0) }) {
                result.warn(
                    "“\(name.shortened)”, one of the \(what), is not an identifier: façades spell it differently. Use "
                        + "letters, digits and _.")
            } else if name.count > 63 {
                result.warn("Among the \(what), “\(name.prefix(20))…” is longer than 63 letters. Shorten it.")
            }
        }
    }

    private static func isHostName(_ name: String) -> Bool {
        name.count <= 63 && name.allSatisfy { $0.isPlainLetter || $0.isPlainDigit || $0 == "-" }
            && !name.hasSuffix("-")
    }
}
