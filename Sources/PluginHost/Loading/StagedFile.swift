/// A copy of a module that nobody else can change, checked and ready to be opened.
struct StagedFile: Sendable {
    /// The copy, in a folder of its own under the name of the original.
    let path: String
    /// The file that was copied, as it was named to ``Staging``.
    let original: String
    /// The state of the original when it was copied.
    let identity: FileIdentity
    /// Of the content; the same in every process.
    let digest: UInt64
    /// In bytes.
    let size: Int
    let image: ELFImage
    /// What was made for this copy and can be removed with it.
    let folder: String
    /// The libraries that were found beside it and copied with it, by their originals' paths.
    let libraries: [String]

    /// A text of the dynamic linker, in which copies are called by the paths of their originals.
    func withOriginalPaths(_ text: String) -> String {
        let named = text.replacing(path, with: original)
        return libraries.reduce(named) { text, library in
            // A copy lies under the staging folder as its original lies under some folder above it.
            var rest = library[...]
            while let slash = rest.firstIndex(of: "/") {
                rest = rest[rest.index(after: slash)...]
                let copy = "\(folder)/\(rest)"
                if text.contains(copy) { return text.replacing(copy, with: library) }
            }
            return text
        }
    }
}

/// What became of a file that was to be staged.
enum StageOutcome: Sendable {
    case staged(StagedFile)
    /// Somebody is still writing it: ask again when it was closed.
    case beingWritten
}
