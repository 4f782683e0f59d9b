import Foundation
import Glibc
import PluginABI
import PluginFile

/// The libraries that a module finds beside itself, through `$ORIGIN` in its list of folders, and those that they find:
/// breadth first, each once.
///
/// They are copied to the same positions relative to the module, so that the copies find each other. A module that
/// looks in folders above its own (`$ORIGIN/../lib`) is itself moved as far down.
struct Companions {
    /// A library to copy.
    struct Next {
        let name: String
        let original: String
        let copy: String
    }

    /// How many libraries a module finds beside itself, at most.
    static let libraryLimit = 128
    /// How many names it and they need, at most.
    static let needLimit = 8192
    /// How many paths are looked at for them, at most; each once.
    static let lookupLimit = 2048

    /// Where the copy of the module belongs, if not directly in its folder.
    private(set) var modulePath: String?
    /// The originals of the libraries so far.
    private(set) var staged: [String] = []
    /// Libraries elsewhere that a file names by their paths, or finds in a folder that it names: what the dynamic linker
    /// takes unless it has one of the name.
    private(set) var outside: [(name: String, path: String)] = []
    /// How many paths were looked at so far.
    private(set) var lookups = 0
    /// The original folder that the copy's folder stands for, and that folder; both end in a slash.
    private let originalRoot: String
    private let copyRoot: String
    private let module: String
    private var queue: [Next] = []
    private var seen: Set<PathKey>
    private var seenOutside: Set<PathKey> = []
    private var needs = 0
    /// What names stand for, by the folders in which they are looked for.
    private var known: [[Folder]: [PathKey: Found?]] = [:]

    /// - Throws: `invalidFile` where it needs too many libraries.
    init(of module: Copy, root: String) throws(PluginError) {
        var originalRoot = Self.folder(of: Self.standardized(module.original))
        let climb = module.image.runpath.compactMap(Self.behindOrigin).map { path in
            path.split(separator: "/").prefix { $0 == ".." }.count
        }
        let original = Self.standardized(module.original)
        for _ in 0..<min(climb.max() ?? 0, 8) { originalRoot = Self.folder(of: String(originalRoot.dropLast())) }
        self.originalRoot = originalRoot
        self.module = module.original
        copyRoot = root + "/"
        let place =
            Self.folder(of: copyRoot + original.utf8Suffix(behind: originalRoot))
            + (module.path as NSString).lastPathComponent
        modulePath = place.hasBytes(of: module.path) ? nil : place
        seen = [PathKey(original)]
        try add(module)
    }

    mutating func next() -> Next? {
        guard !queue.isEmpty else { return nil }
        let next = queue.removeFirst()
        staged.append(next.original)
        return next
    }

    /// Finds what a copied file needs.
    ///
    /// - Throws: `invalidFile` where that is too much.
    mutating func add(_ file: Copy) throws(PluginError) {
        for path in file.image.needed where path.utf8.first == Self.slash { addOutside(path, path) }
        let folders = folders(of: file)
        // Where it names no folder, the dynamic linker looks in folders of the system only.
        guard !folders.isEmpty else { return }
        for name in file.image.needed where !name.utf8.contains(UInt8(ascii: "/")) && !name.isEmpty {
            needs += 1
            guard needs <= Self.needLimit else { throw tooMuch("names of libraries", Self.needLimit) }
            let found: Found?
            if let before = known[folders]?[name] {
                found = before
            } else {
                found = try find(name, folders)
                known[folders, default: [:]][name] = .some(found)
            }
            guard let found else { continue }
            let path = found.path
            guard found.isBeside, path.beginsWithBytes(of: originalRoot) else {
                addOutside(name, path)
                continue
            }
            guard seen.insert(path) else { continue }
            guard staged.count + queue.count < Self.libraryLimit else {
                throw tooMuch("libraries beside it", Self.libraryLimit)
            }
            queue.append(Next(name: name, original: path, copy: copyRoot + path.utf8Suffix(behind: originalRoot)))
        }
    }

    private mutating func addOutside(_ name: String, _ path: String) {
        if seenOutside.insert(path) { outside.append((name, path)) }
    }

    private func tooMuch(_ what: String, _ limit: Int) -> PluginError {
        PluginError(
            .invalidFile,
            "\(module) is not loaded: it and the libraries that it finds through $ORIGIN need more than \(limit) \(what). "
                + "Link some of them into the module.")
    }

    /// A folder in which libraries are looked for, and whether `$ORIGIN` leads to it.
    private struct Folder: Hashable {
        let place: PathKey
        let isBeside: Bool
        var path: String { place.path }
    }

    /// A file in one of them.
    private struct Found {
        let path: String
        let isBeside: Bool
    }

    /// Where the dynamic linker looks for what a file needs, each folder once.
    private func folders(of file: Copy) -> [Folder] {
        let own = Self.folder(of: Self.standardized(file.original))
        var seen: Set<PathKey> = []
        return file.image.runpath.compactMap { entry in
            guard seen.insert(entry) else { return nil }
            guard let rest = Self.behindOrigin(entry) else { return Folder(place: PathKey(entry), isBeside: false) }
            let path = Self.standardized("\(own)\(rest)")
            return seen.insert(path) ? Folder(place: PathKey(path), isBeside: true) : nil
        }
    }

    /// The file that the dynamic linker would take, if it is in one of the folders.
    ///
    /// - Throws: `invalidFile` where too many have been looked for.
    private mutating func find(_ name: String, _ folders: [Folder]) throws(PluginError) -> Found? {
        guard name.utf8.count <= Int(NAME_MAX) else { return nil }  // No file has such a name.
        for folder in folders {
            lookups += 1
            guard lookups <= Self.lookupLimit else { throw tooMuch("places to look for libraries", Self.lookupLimit) }
            let path = folder.path == "/" ? "/\(name)" : "\(folder.path)/\(name)"
            if access(path, F_OK) == 0 { return Found(path: path, isBeside: folder.isBeside) }
        }
        return nil
    }

    /// `/sub` of `$ORIGIN/sub`; nil for a path that does not begin with `$ORIGIN`.
    private static func behindOrigin(_ path: String) -> String? {
        for origin in ["$ORIGIN", "${ORIGIN}"] where path == origin || path.hasPrefix(origin + "/") {
            return String(path.dropFirst(origin.count))
        }
        return nil
    }

    /// Absolute and without `.` and `..`, links not followed: as the dynamic linker takes `$ORIGIN`.
    private static func standardized(_ path: String) -> String {
        var parts: [Substring.UTF8View] = []
        let absolute = path.utf8.first == slash ? path : FileManager.default.currentDirectoryPath + "/" + path
        for part in absolute.utf8.split(separator: slash) where !part.elementsEqual(".".utf8) {
            if part.elementsEqual("..".utf8) { _ = parts.popLast() } else { parts.append(part) }
        }
        return "/" + parts.map { String(Substring($0)) }.joined(separator: "/")
    }

    /// With a slash at its end.
    private static func folder(of path: String) -> String {
        path.utf8.lastIndex(of: slash).map { String(path[...$0]) } ?? "/"
    }

    private static let slash = UInt8(ascii: "/")
}

extension String {
    /// What stands behind a text with which this one begins.
    fileprivate func utf8Suffix(behind start: String) -> String { String(Substring(utf8.dropFirst(start.utf8.count))) }
}
