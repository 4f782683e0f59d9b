import CDispatch
import CPluginHost
import Foundation
import Glibc
import PluginFile
import Synchronization

/// A copy of a module that nobody else can change, checked and ready to be opened; or what stands for one where a
/// module is a part of the program.
struct StagedFile: Sendable {
    /// Where a module comes from. Of two sources that claim the same the first one here has it.
    enum Source {
        /// Code of the program registers it.
        case program
        /// It is linked into the program, which finds it by its record.
        case linked
        /// A file in a plugins folder.
        case file
    }

    /// The copy, in a folder of its own, under the name of the original; characters that a terminal may act on are `_`.
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
    var source = Source.file
    /// By which the journal and the crash report know it.
    var number = Self.nextNumber()

    private static let lastNumber = Atomic<UInt64>(UInt64(PLUGIN_HOST_THE_PROGRAM))

    /// A number for a file that is to be loaded, unique in the process.
    static func nextNumber() -> UInt64 { lastNumber.add(1, ordering: .relaxed).newValue }

    /// The copies of these libraries.
    var libraryCopies: [String] {
        guard !libraries.isEmpty else { return [] }
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: folder)) ?? []
        return names.sorted().map { "\(folder)/\($0)" }.filter { file in
            var status = stat()
            return file != path && lstat(file, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        }
    }

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
