import PluginABI
import PluginFile

/// What is known about a file, in the form that registering its module takes.
final class KnownEntry: Sendable {
    let file: KnownFile
    /// The known part of the manifest; `nil` if the file contains no module, or its manifest cannot be read.
    let manifest: KnownManifest?
    /// A stand-in for the copy of the file.
    let staged: StagedFile
    let toolchain: String
    let abiMinor: UInt16
    let libraries: [KnownFile.Library]
    /// The reason why the file cannot be loaded; `nil` if it contains a module.
    let failure: PluginError?

    init(_ file: KnownFile) {
        self.file = file
        switch file.outcome {
        case .module(let facts):
            manifest = KnownManifest(facts.manifest, facts.index, abiMinor: facts.abi.minor)
            (toolchain, abiMinor, libraries) = (facts.toolchain, facts.abi.minor, facts.libraries)
            failure = nil
        case .failure(let error): (manifest, toolchain, abiMinor, libraries, failure) = (nil, "", 0, [], error)
        }
        staged = StagedFile(
            path: "", original: file.path, identity: file.identity, digest: file.digest, size: Int(file.identity.size),
            image: .program, folder: "", libraries: libraries.map(\.path))
    }
}
