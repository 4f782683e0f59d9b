import PluginABI
import PluginFile

/// A host's knowledge about one file: enough to serve its names without opening it, or the reason why it is not opened
/// again.
///
/// It holds as long as the file at the path has the same identity, and so have the libraries that it brings along.
struct KnownFile: Equatable, Sendable {
    let path: String
    /// The identity that the file had when it was read.
    let identity: FileIdentity
    /// The digest of its content; see ``StagedFile/digest``.
    let digest: UInt64
    let outcome: Outcome

    enum Outcome: Equatable, Sendable {
        /// It contains a module.
        case module(ModuleFacts)
        /// It could not be loaded, or has crashed, exited or hung in a scan process. It would fail again.
        case failure(PluginError)
    }

    /// The knowledge about the module in a file.
    struct ModuleFacts: Equatable, Sendable {
        let name: String
        let version: String
        /// The version of the binary interface that it was built for.
        let abi: Version
        /// The toolchain that built it; empty if it needs no Swift runtime.
        let toolchain: String
        /// The text of its manifest.
        let manifest: KnownText
        /// The facts that the host looks up without reading the manifest, in a form of its choice; may be empty.
        let index: KnownText
        /// The libraries that it finds through `$ORIGIN`.
        let libraries: [Library]
    }

    struct Version: Equatable, Sendable {
        let major: UInt16
        let minor: UInt16
    }

    /// A library that a module brings along.
    struct Library: Equatable, Sendable {
        let path: String
        /// The identity that it had when it was read.
        let identity: FileIdentity
    }
}

/// A text of a ``KnownFile``: a string, or a part of the file of a ``RegistryCache``, which is not copied before it is
/// used.
struct KnownText: Equatable, Sendable {
    private enum Content {
        case string(String)
        case part(KnownBytes, Range<Int>)
    }

    private let content: Content

    init(_ string: String) { content = .string(string) }

    /// - Parameter range: The position of the text, which must be inside `bytes`.
    init(_ bytes: KnownBytes, _ range: Range<Int>) { content = .part(bytes, range) }

    /// The text. Bytes that are not UTF-8 are replaced.
    var string: String {
        switch content {
        case .string(let string): string
        case .part: withBytes { String(decoding: $0, as: UTF8.self) }
        }
    }

    /// Calls a function with the bytes of the text, which are valid during the call.
    func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        switch content {
        case .string(let string):
            return try string.utf8Span.span.withUnsafeBytes { bytes throws(Failure) in try body(bytes) }
        case .part(let bytes, let range):
            // Sound: `bytes` lives during the call, since this text refers to it.
            return try withExtendedLifetime(bytes) { () throws(Failure) in
                try body(UnsafeRawBufferPointer(rebasing: bytes.all[range]))
            }
        }
    }

    static func == (left: KnownText, right: KnownText) -> Bool {
        left.withBytes { left in right.withBytes { right in left.elementsEqual(right) } }
    }
}
