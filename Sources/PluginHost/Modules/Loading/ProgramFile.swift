import Glibc
import PluginFile

extension StagedFile {
    /// The stand-in for the file of a module that the program registers.
    static let program = StagedFile(partOfProgram: "(program)", .program)

    /// Returns a stand-in for the file of a module that is linked into the program.
    static func linked(_ name: String) -> StagedFile { StagedFile(partOfProgram: "(linked) \(name)", .linked) }

    private init(partOfProgram name: String, _ source: Source) {
        self.init(
            path: name, original: name, identity: .none, digest: 0, size: 0, image: ELFImage.program,
            folder: nil, libraries: [], source: source)
    }
}

extension LoadedModule {
    /// Whether the program registers the module.
    var isRegistered: Bool { staged.source == .program }

    /// Whether the module comes from a file in a plugins folder.
    var isOfFile: Bool { staged.source == .file }
}
