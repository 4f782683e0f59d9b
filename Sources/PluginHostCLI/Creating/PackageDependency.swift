internal import Foundation
internal import PluginABI

/// The dependency of a package on this project: a path or a URL.
enum PackageDependency: Sendable {
    /// An absolute path.
    case path(String)
    case url(String)

    /// - Throws: `fileNotFound` if there is no package at the path; `usage` if neither a path nor a URL is given, and
    ///   the program is not in a clone.
    init(_ text: String?) throws(PluginError) {
        if let text, text.contains("://") || text.hasPrefix("git@") {
            self = .url(text)
            return
        }
        guard let text else {
            guard let clone = Self.cloneOfThisProgram else {
                throw .usage("Pass the location of PluginHost: '--dependency PATH' for a clone, or '--dependency URL'.")
            }
            self = .path(clone)
            return
        }
        let path = URL(filePath: text).standardizedFileURL.path
        guard FileManager.default.fileExists(atPath: path + "/Package.swift") else {
            throw PluginError(.fileNotFound, "There is no package in \(path): it has no Package.swift.")
        }
        self = .path(path)
    }

    /// The clone whose `.build` contains this program.
    private static var cloneOfThisProgram: String? {
        var folder = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        while folder.path != "/" {
            folder = folder.deletingLastPathComponent()
            let header = folder.appending(path: "Sources/CPluginABI/include/plugin_abi.h").path
            if FileManager.default.fileExists(atPath: header) { return folder.path }
        }
        return nil
    }

    /// Returns the entry for a `Package.swift` in `folder`.
    func declaration(in folder: String) -> String {
        switch self {
        case .path(let path): ".package(name: \"PluginHost\", path: \(quoted(Self.relative(path, to: folder))))"
        case .url(let url): ".package(url: \(quoted(url)), branch: \"main\")"
        }
    }

    /// The name of the package in references to its products.
    var identity: String {
        switch self {
        case .path: return "PluginHost"
        case .url(let url):
            let last = url.split { "/:".contains($0) }.last.map(String.init) ?? "PluginHost"
            return last.hasSuffix(".git") ? String(last.dropLast(4)) : last
        }
    }

    private func quoted(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }

    /// Returns the relative path from `folder` to `path`, which stays valid if both are moved.
    static func relative(_ path: String, to folder: String) -> String {
        let (to, from) = (path.split(separator: "/"), folder.split(separator: "/"))
        let shared = zip(to, from).prefix { $0 == $1 }.count
        let steps = Array(repeating: "..", count: from.count - shared) + to.dropFirst(shared).map(String.init)
        return steps.isEmpty ? "." : steps.joined(separator: "/")
    }
}
