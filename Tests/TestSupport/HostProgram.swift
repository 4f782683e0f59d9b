import Foundation

/// The built program `pluginhost`, or another one beside the tests, with a home folder and a plugins folder that all
/// its processes share.
struct HostProgram {
    let program: String
    let folder: TemporaryFolder
    let plugins: String
    /// Whether the path of its plugins folder is passed to it.
    var namesFolder = true

    init(_ program: String = "pluginhost") throws {
        self.program = program
        folder = try TemporaryFolder()
        plugins = try folder.folder("plugins")
    }

    /// The same program with another plugins folder.
    func naming(_ plugins: String) -> HostProgram {
        HostProgram(program: program, folder: folder, plugins: plugins)
    }

    private init(program: String, folder: TemporaryFolder, plugins: String) {
        (self.program, self.folder, self.plugins) = (program, folder, plugins)
    }

    /// Runs the program until it ends, or kills it after two minutes.
    func run(_ arguments: String..., environment: [String: String] = [:]) throws -> ProgramProcess.Outcome {
        try run(arguments, environment: environment)
    }

    func run(_ arguments: [String], environment: [String: String] = [:]) throws -> ProgramProcess.Outcome {
        try start(arguments, environment).wait()
    }

    /// Starts the program, which runs until the test ends it.
    ///
    /// - Parameter pipes: Where the output (1) or the errors (2) go, instead of a file.
    func start(
        _ arguments: String..., environment: [String: String] = [:], writingTo pipes: [Int32: String] = [:]
    ) throws -> ProgramProcess {
        try start(arguments, environment, pipes)
    }

    private func start(
        _ arguments: [String], _ environment: [String: String], _ pipes: [Int32: String] = [:]
    ) throws -> ProgramProcess {
        let home = ["HOME": folder.path, "TMPDIR": folder.path].merging(environment) { $1 }
        return try ProgramProcess(
            arguments + (namesFolder ? ["--plugins", plugins] : []), program: program, environment: home,
            writingTo: pipes)
    }
}
