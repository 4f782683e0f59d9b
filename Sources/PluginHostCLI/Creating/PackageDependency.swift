internal import FoundationEssentials
internal import PluginABI

/// The dependency of a new module on this project, at a path or a URL.
enum PackageDependency: Sendable {
    /// The absolute path of a clone, or of a package like it.
    case path(String)
    case url(String)
    /// The prefix below which `scripts/install` has installed this program and a package for modules.
    case installed(prefix: String)

    /// The package of an installation, below its prefix.
    private static let installedPackage = "share/pluginhost/package"

    /// - Throws: `fileNotFound` if there is no package at the path; `usage` if neither a path nor a URL is given, and
    ///   the program is neither in a clone nor installed.
    init(_ text: String?) throws(PluginError) {
        if let text, text.contains("://") || text.hasPrefix("git@") {
            self = .url(text)
            return
        }
        guard let text else {
            guard let found = Self.ofThisProgram else {
                throw .usage(
                    "This program is not in a clone of PluginHost, and not installed by scripts/install: it has no "
                        + "\(Self.installedPackage) beside its folder. Pass '--dependency PATH' for a clone or, for "
                        + "a module in Swift, '--dependency URL'.")
            }
            self = found
            return
        }
        let path = URL(filePath: text).standardizedFileURL.path
        guard FileManager.default.fileExists(atPath: path + "/Package.swift") else {
            throw PluginError(.fileNotFound, "There is no package in \(path): it has no Package.swift.")
        }
        self = .path(path)
    }

    /// The clone whose `.build` contains this program, or the installation that it belongs to.
    private static var ofThisProgram: PackageDependency? {
        let program = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        var folder = program
        while folder.path != "/" {
            folder = folder.deletingLastPathComponent()
            let header = folder.appending(path: "Sources/CPluginABI/include/plugin_abi.h").path
            if FileManager.default.fileExists(atPath: header) { return .path(folder.path) }
        }
        let prefix = program.deletingLastPathComponent().deletingLastPathComponent()
        let package = prefix.appending(path: "\(installedPackage)/Package.swift").path
        return FileManager.default.fileExists(atPath: package) ? .installed(prefix: prefix.path) : nil
    }

    // MARK: For packages in Swift

    /// Returns the entry for a `Package.swift` in `folder`.
    func declaration(in folder: String) -> String {
        switch self {
        case .path(let path): ".package(name: \"PluginHost\", path: \(quoted(Self.relative(path, to: folder))))"
        case .url(let url): ".package(url: \(quoted(url)), branch: \"main\")"
        case .installed(let prefix):
            ".package(name: \"PluginHost\", path: \(quoted("\(prefix)/\(Self.installedPackage)")))"
        }
    }

    /// The name of the package in references to its products.
    var identity: String {
        switch self {
        case .path, .installed: return "PluginHost"
        case .url(let url):
            let last = url.split { "/:".contains($0) }.last.map(String.init) ?? "PluginHost"
            return last.hasSuffix(".git") ? String(last.dropLast(4)) : last
        }
    }

    private func quoted(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }

    // MARK: For other languages

    /// Returns the options with which compilers find the header, as the value of a variable in a makefile in `folder`.
    ///
    /// - Throws: `usage` for a URL; `fileNotFound` if there is no header.
    func headers(for folder: String) throws(PluginError) -> String {
        guard case .installed(let prefix) = self else {
            let header = try file("Sources/CPluginABI/include/plugin_abi.h", "the header")
            let path = String(header.dropLast("/plugin_abi.h".count))
            return "-I \(MakefileTemplate.quoted(Self.relative(path, to: folder)))"
        }
        let path = MakefileTemplate.quoted("\(prefix)/lib/pkgconfig")
        return "$(shell PKG_CONFIG_PATH=\"$$PKG_CONFIG_PATH\":\(path) pkg-config --cflags pluginhost)"
    }

    /// Returns the text of `abi.rs`, which modules in Rust contain.
    ///
    /// - Throws: `usage` for a URL; `fileNotFound` if the file is missing or cannot be read.
    func declarationsInRust() throws(PluginError) -> String {
        let path = try file("Examples/Rust/abi.rs", "the declarations in Rust")
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw PluginError(.fileNotFound, "\(path) cannot be read.")
        }
        return text
    }

    /// Returns the path of a file of the package.
    private func file(_ name: String, _ what: String) throws(PluginError) -> String {
        let folder =
            switch self {
            case .path(let path): path
            case .installed(let prefix): "\(prefix)/\(Self.installedPackage)"
            case .url(let url):
                throw .usage(
                    "A module in this language needs \(what) from a folder, not from '\(url.shortened)'. Clone it, and "
                        + "pass '--dependency PATH'.")
            }
        guard FileManager.default.fileExists(atPath: "\(folder)/\(name)") else {
            throw PluginError(.fileNotFound, "There is no PluginHost in \(folder): \(what), \(name), is missing.")
        }
        return "\(folder)/\(name)"
    }

    /// Returns the relative path from `folder` to `path`, which stays valid if both are moved.
    static func relative(_ path: String, to folder: String) -> String {
        let (to, from) = (path.split(separator: "/"), folder.split(separator: "/"))
        let shared = zip(to, from).prefix { $0 == $1 }.count
        let steps = Array(repeating: "..", count: from.count - shared) + to.dropFirst(shared).map(String.init)
        return steps.isEmpty ? "." : steps.joined(separator: "/")
    }
}
