internal import Foundation
internal import Glibc
internal import PluginABI

/// The package of a new module: its files and their contents.
struct ModulePackage: Sendable {
    enum Language: String, Sendable, CaseIterable {
        case swift, c
    }

    let name: ModuleName
    let language: Language
    let dependency: PackageDependency
    /// The absolute path of the package's folder.
    let folder: String

    /// The files by their paths in the package.
    var files: [(path: String, text: String)] {
        let source = language == .swift ? SwiftTemplate.source(name) : CTemplate.source(name)
        return [
            ("Package.swift", manifest),
            ("README.md", readme),
            (".gitignore", ".build/\n"),
            ("Sources/\(name.text)/\(name.text).\(language.rawValue)", source),
            ("Tests/\(name.text)Tests/\(name.text)Tests.swift", TestTemplate.source(name)),
        ]
    }

    /// Writes the files.
    ///
    /// - Throws: `cannotCreate` if the folder exists and is not empty, or if the files cannot be written.
    func write() throws(PluginError) {
        let manager = FileManager.default
        let present = (try? manager.contentsOfDirectory(atPath: folder)) ?? []
        let isFree = fileStatus(folder).map { $0.st_mode & S_IFMT == S_IFDIR } ?? true
        guard present.isEmpty, isFree else {
            throw PluginError(
                .cannotCreate, "\(folder) already exists, and is not overwritten. Choose another folder with '--at'.")
        }
        do {
            for (path, text) in files {
                let file = URL(filePath: folder).appending(path: path)
                try manager.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data(text.utf8).write(to: file, options: .withoutOverwriting)
            }
        } catch {
            throw PluginError(.cannotCreate, "\(folder) cannot be written: \(error.localizedDescription)")
        }
    }

    private var manifest: String {
        let library = language == .swift ? "PluginABI" : "CPluginABI"
        let headers = language == .swift ? "" : ", publicHeadersPath: \".\""
        return """
            // swift-tools-version: 6.3
            import PackageDescription

            let package = Package(
                name: "\(name.text)",
                products: [.library(name: "\(name.text)", type: .dynamic, targets: ["\(name.text)"])],
                dependencies: [\(dependency.declaration(in: folder))],
                targets: [
                    .target(
                        name: "\(name.text)",
                        dependencies: [.product(name: "\(library)", package: "\(dependency.identity)")]\(headers)),
                    .testTarget(
                        name: "\(name.text)Tests",
                        dependencies: [.product(name: "\(TestTemplate.library)", package: "\(dependency.identity)")]),
                ]
            )

            """
    }

    private var readme: String {
        let library = ".build/debug/lib\(name.text).so"
        let commands = [
            ("swift test", "builds it, and tests it in a host"),
            ("pluginhost check \(library)", "checks it before you ship it"),
            ("install -D -m 755 -t plugins \(library)", "installs it in a plugins folder"),
            ("pluginhost call \(name.text) greet name=Ada", "calls it"),
        ]
        let width = commands.map(\.0.count).max() ?? 0
        let lines = commands.map { command, text in
            command + String(repeating: " ", count: width - command.count) + "  # " + text
        }
        return """
            # \(name.text)

            A module for PluginHost: the target `\(name.text)` with the action `greet`, and the route `app://\(name.host)/greet/:name`.

            ```
            \(lines.joined(separator: "\n"))
            ```

            """
    }
}
