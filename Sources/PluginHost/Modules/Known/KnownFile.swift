import PluginABI
import PluginFile

/// A host's knowledge about one file: enough to serve its names without opening it, or the reason why it is not opened
/// again.
///
/// The knowledge is valid as long as the file at the path, and each library that it brings along, has the same
/// identity.
struct KnownFile: Equatable, Sendable {
    let path: String
    /// The identity that the file had when it was read.
    let identity: FileIdentity
    /// The digest of the file's content; see ``StagedFile/digest``.
    let digest: UInt64
    let outcome: Outcome

    enum Outcome: Equatable, Sendable {
        /// The file contains a module.
        case module(ModuleFacts)
        /// The file could not be loaded, or has crashed, exited or hung in a scan process. It would fail again.
        case failure(PluginError)
    }

    /// The knowledge about the module in a file.
    struct ModuleFacts: Equatable, Sendable {
        /// The version of the binary interface that the module was built for.
        let abi: Version
        /// The toolchain that built the module; empty if it needs no Swift runtime.
        let toolchain: String
        /// The text of the manifest.
        let manifest: KnownText
        /// The outline of the manifest, as ``ModuleOutline/bytes``; empty if the outline cannot be expressed so, or if
        /// a route is dead.
        let index: KnownText
        /// The libraries that the module finds through `$ORIGIN`.
        let libraries: [Library]
    }

    struct Version: Equatable, Sendable {
        let major: UInt16
        let minor: UInt16
    }

    /// The libraries that the module finds through `$ORIGIN`.
    var libraries: [Library] { if case .module(let facts) = outcome { facts.libraries } else { [] } }

    /// A library that a module brings along.
    struct Library: Equatable, Sendable {
        let path: String
        /// The identity that the library had when it was read.
        let identity: FileIdentity
    }
}
