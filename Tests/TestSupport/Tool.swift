import Foundation

/// A program of the system or of the Swift toolchain, such as a compiler.
struct Tool {
    struct Failed: Error, CustomStringConvertible {
        let command: String
        let output: String
        var description: String { "\(command)\n\(output)" }
    }

    let path: String

    /// Finds a program by its name; `nil` if there is none.
    init?(_ name: String) {
        let search = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
        let places = search.flatMap { folder -> [String] in
            let swift = URL(filePath: "\(folder)/swift").resolvingSymlinksInPath().deletingLastPathComponent().path
            return ["\(folder)/\(name)", "\(swift)/\(name)"]
        }
        guard let path = places.first(where: { access($0, X_OK) == 0 }) else { return nil }
        self.path = path
    }

    /// Runs the program until it ends.
    ///
    /// - Parameter input: The standard input of the program.
    /// - Returns: The complete output of the program.
    /// - Throws: ``Failed``, with the output, if the program fails.
    @discardableResult
    func run(_ arguments: [String], input: String = "") throws -> String {
        let folder = try TemporaryFolder()
        let output = try folder.file("output")
        let process = try spawn(
            path, arguments, input: folder.file("input", input), output: output, errors: output)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        let text = try String(contentsOfFile: output, encoding: .utf8)
        guard status == 0 else {
            throw Failed(command: ([path] + arguments).joined(separator: " "), output: text)
        }
        return text
    }

    /// Runs the program on a separate thread until it ends, so that other tests can use the threads of tasks meanwhile.
    func runAside(_ arguments: [String]) async throws { try await onThread { [self] in _ = try run(arguments) } }
}

/// Swift source code that a test has made or found.
enum SwiftSource {
    /// The arguments that a file needs to import the modules of this package.
    static var modules: [String] {
        ["-swift-version", "6", "-I", built("Modules"), "-Xcc", "-I\(headers)"]
            + ["CPluginABI", "CPluginHost", "CPluginWire"].flatMap {
                ["-Xcc", "-fmodule-map-file=\(built("\($0).build/module.modulemap"))"]
            }
    }

    /// Checks that files compile against the libraries of this package, without a warning.
    ///
    /// - Parameters:
    ///   - features: By default, those with which this package is built.
    ///   - options: Further options of the compiler.
    static func check(
        _ sources: [String],
        features: [String] = ["ExistentialAny", "InternalImportsByDefault", "MemberImportVisibility"],
        options: [String] = []
    ) throws {
        let folder = try TemporaryFolder()
        let files = try sources.enumerated().map { try folder.file("File\($0).swift", $1) }
        try compiler.run(
            ["-typecheck", "-warnings-as-errors", "-parse-as-library", "-module-name", "Checked"] + modules
                + features.flatMap { ["-enable-upcoming-feature", $0] } + options + files)
    }

    /// Checks that a text is syntactically correct Swift, whatever it imports.
    static func checkSyntax(_ source: String) throws {
        let folder = try TemporaryFolder()
        try compiler.run(["-parse", folder.file("File.swift", source)])
    }

    private static var compiler: Tool {
        get throws {
            guard let compiler = Tool("swiftc") else { throw POSIXError(.ENOENT) }
            return compiler
        }
    }
}
