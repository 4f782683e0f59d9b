import CDispatch
import CPluginHost
import FoundationEssentials
import Glibc
import PluginFile
import Synchronization

/// A copy of a module that no one else can change, checked and ready to be opened; or a stand-in for one if the
/// module is part of the program.
struct StagedFile: Sendable {
    /// The origin of a module. If two modules claim the same thing, the one whose source is listed first gets it.
    enum Source {
        /// A module that the program's code registers.
        case program
        /// A module that is linked into the program, and found by its record.
        case linked
        /// A file in a plugins folder.
        case file
    }

    /// The copy, under the original file name, in which `_` replaces characters that a terminal may interpret.
    let path: String
    /// The path of the file that was copied, as it was given to ``Staging``.
    let original: String
    /// The identity of the original when it was copied.
    let identity: FileIdentity
    /// The digest of the content; the same in every process.
    let digest: UInt64
    /// The size in bytes.
    let size: Int
    var image: ELFImage
    /// The folder that was created for this copy and its libraries, and can be removed with them. `nil` if the module
    /// has no libraries: its copy may then be in a folder with those of other modules.
    let folder: String?
    /// The paths of the originals of the libraries that were found next to it and copied with it.
    let libraries: [String]
    var source = Source.file
    /// The number by which the journal and the crash report refer to it.
    var number = Self.nextNumber()

    private static let lastNumber = Atomic<UInt64>(UInt64(PLUGIN_HOST_THE_PROGRAM))

    /// Returns a number for a file that is about to be loaded, unique in the process.
    static func nextNumber() -> UInt64 { lastNumber.add(1, ordering: .relaxed).newValue }

    /// The name that a module in a file with this name is likely to have: `Shop` for `libShop.so`.
    var nameOfModule: String {
        let name = original.fileName
        let isLibrary = name.beginsWithBytes(of: "lib")
        return String((isLibrary ? name.dropFirst(3) : name[...]).prefix { $0 != "." })
    }

    /// The paths of the copies of these libraries.
    var libraryCopies: [String] {
        guard let folder, !libraries.isEmpty else { return [] }
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: folder)) ?? []
        return names.sorted().map { "\(folder)/\($0)" }.filter { file in
            var status = stat()
            return file != path && lstat(file, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        }
    }

    /// Returns a text of the dynamic linker with the paths of copies replaced by those of their originals.
    func withOriginalPaths(_ text: String) -> String {
        let named = text.replacing(path, with: original)
        guard let folder else { return named }
        return libraries.reduce(named) { text, library in
            // The path of a copy within the staging folder is that of its original within some folder above it.
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
