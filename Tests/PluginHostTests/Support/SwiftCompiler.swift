import Foundation

/// The compiler that the tests were built with, for source code that a test has made.
enum SwiftCompiler {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Those that this package is built with.
    static let features = ["ExistentialAny", "InternalImportsByDefault", "MemberImportVisibility"]

    /// Checks that files compile against the libraries of this package, without a warning.
    static func check(_ sources: [String], features: [String] = features) throws {
        let folder = try TemporaryFolder()
        let files = try sources.enumerated().map { try folder.file("File\($0).swift", Data($1.utf8)) }
        let modules = try builtLibrary("Modules")
        let maps = try ["CPluginABI", "CPluginHost"].map { name in
            try ["-Xcc", "-fmodule-map-file=\(builtFolder)/\(name).build/module.modulemap"]
        }
        let upcoming = features.flatMap { ["-enable-upcoming-feature", $0] }
        try run(
            [
                "-typecheck", "-swift-version", "6", "-warnings-as-errors", "-parse-as-library", "-module-name",
                "Facades",
            ]
                + ["-module-cache-path", "\(folder.path)/cache", "-I", modules] + maps.flatMap(\.self) + upcoming
                + files,
            in: folder)
    }

    /// Checks that a text is Swift, whatever it imports.
    static func checkSyntax(_ source: String) throws {
        let folder = try TemporaryFolder()
        try run(["-parse", folder.file("File.swift", Data(source.utf8))], in: folder)
    }

    private static var builtFolder: String {
        get throws { try URL(filePath: builtLibrary("Modules")).deletingLastPathComponent().path }
    }

    private static func run(_ arguments: [String], in folder: TemporaryFolder) throws {
        let output = try folder.file("output")
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_APPEND, 0)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        // A descriptor that another test has open for writing must not live on in a compiler.
        for descriptor in Int32(3)..<512 { posix_spawn_file_actions_addclose(&actions, descriptor) }
        var words = (["swiftc"] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process: pid_t = 0
        let error = posix_spawnp(&process, "swiftc", &actions, nil, &words, environ)
        guard error == 0 else { throw POSIXError(.init(rawValue: error) ?? .EIO) }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        guard status == 0 else { throw Failure(description: try String(contentsOfFile: output, encoding: .utf8)) }
    }
}
