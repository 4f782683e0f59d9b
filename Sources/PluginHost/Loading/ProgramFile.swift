import Glibc

extension StagedFile {
    /// What stands for a file where a module is part of the program.
    static let program = StagedFile(
        path: "(program)", original: "(program)", identity: FileIdentity(stat()), digest: 0, size: 0,
        image: ELFImage.program, folder: "", libraries: [])

    /// Whether it is no file, but the program.
    var isProgram: Bool { original == Self.program.original }
}

extension ELFImage {
    /// The program's own image, at which nobody looks: it runs already, on the one Swift runtime that it has.
    fileprivate static let program = ELFImage()

    private init() {
        machine = Self.thisMachine
        (soname, buildID) = (nil, nil)
        (needed, runpath) = ([], [])
        exportsEntry = false
        mappedSize = 0
    }
}
