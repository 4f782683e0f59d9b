import FoundationEssentials
import Glibc
import PluginABI
import PluginFile

/// The libraries that a module finds through `$ORIGIN` in its run path, and those that these libraries find in the same
/// way: breadth first, each once.
///
/// They are copied to the same positions relative to the module, so that the copies find each other. If a module looks
/// in folders above its own (`$ORIGIN/../lib`), its copy is moved down by as many levels.
struct Companions {
    /// A library to copy.
    struct Next {
        let name: String
        let original: String
        let copy: String
    }

    /// How many libraries a module may find through `$ORIGIN`.
    static let libraryLimit = 128
    /// How many library names a module and its libraries may need.
    static let needLimit = 8192
    /// How many paths may be looked up for the libraries of a module.
    static let lookupLimit = 2048

    /// Whether the module's copy needs a folder of its own: it has libraries, or looks in folders above its own.
    var needsFolder: Bool { looksAbove || !staged.isEmpty }
    /// The path of the module's copy in the folder for the copies.
    let modulePath: String
    /// The paths of the originals of the libraries so far.
    private(set) var staged: [String] = []
    /// The libraries that are not copied: a file names them by an absolute path, or finds them in a folder outside
    /// `$ORIGIN`. The dynamic linker opens them at these paths, unless it has already loaded a library of that name.
    private(set) var outside: [(name: String, path: String)] = []
    /// How many paths were looked up so far.
    private(set) var lookups = 0
    /// The folder of the originals that corresponds to `copyRoot`. Both end in a slash.
    private let originalRoot: String
    private let copyRoot: String
    private let module: String
    private let looksAbove: Bool
    private var queue: [Next] = []
    private var seen: Set<PathKey>
    private var seenOutside: Set<PathKey> = []
    private var needs = 0
    /// The files that library names lead to, by the folders that are searched.
    private var known: [[Folder]: [PathKey: Found?]] = [:]

    /// Finds the libraries that a module needs directly.
    ///
    /// - Throws: `invalidFile` if it needs too many libraries.
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
        modulePath =
            Self.folder(of: copyRoot + original.utf8Suffix(behind: originalRoot)) + module.path.fileName
        looksAbove = climb.contains { $0 > 0 }
        seen = [PathKey(original)]
        try add(module)
    }

    mutating func next() -> Next? {
        guard !queue.isEmpty else { return nil }
        let next = queue.removeFirst()
        staged.append(next.original)
        return next
    }

    /// Finds the libraries that a copied file needs directly.
    ///
    /// - Throws: `invalidFile` if there are too many.
    mutating func add(_ file: Copy) throws(PluginError) {
        for path in file.image.needed where path.utf8.first == Self.slash { addOutside(path, path) }
        let folders = folders(of: file)
        // Without a run path, the dynamic linker searches system folders only.
        guard !folders.isEmpty else { return }
        for name in file.image.needed where !name.utf8.contains(UInt8(ascii: "/")) && !name.isEmpty {
            needs += 1
            guard needs <= Self.needLimit else { throw tooMuch("library names", Self.needLimit) }
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
                throw tooMuch("copied libraries", Self.libraryLimit)
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
            "\(module) is not loaded: the module and the libraries that it finds through $ORIGIN need more than "
                + "\(limit) \(what). Link some of these libraries into the module.")
    }

    /// A folder that is searched for libraries, and whether `$ORIGIN` leads to it.
    private struct Folder: Hashable {
        let key: PathKey
        let isBeside: Bool
        var path: String { key.path }
    }

    /// A file in one of these folders.
    private struct Found {
        let path: String
        let isBeside: Bool
    }

    /// Returns the folders of a file's run path that the dynamic linker searches, each once.
    private func folders(of file: Copy) -> [Folder] {
        let own = Self.folder(of: Self.standardized(file.original))
        var seen: Set<PathKey> = []
        return file.image.runpath.compactMap { entry in
            guard seen.insert(entry) else { return nil }
            guard let rest = Self.behindOrigin(entry) else { return Folder(key: PathKey(entry), isBeside: false) }
            let path = Self.standardized("\(own)\(rest)")
            return seen.insert(path) ? Folder(key: PathKey(path), isBeside: true) : nil
        }
    }

    /// Returns the file that the dynamic linker would open, if it is in one of the folders.
    ///
    /// - Throws: `invalidFile` if too many paths were looked up.
    private mutating func find(_ name: String, _ folders: [Folder]) throws(PluginError) -> Found? {
        guard name.utf8.count <= Int(NAME_MAX) else { return nil }  // No file name is that long.
        for folder in folders {
            lookups += 1
            guard lookups <= Self.lookupLimit else { throw tooMuch("library lookups", Self.lookupLimit) }
            let path = folder.path == "/" ? "/\(name)" : "\(folder.path)/\(name)"
            if access(path, F_OK) == 0 { return Found(path: path, isBeside: folder.isBeside) }
        }
        return nil
    }

    /// Returns `/sub` for `$ORIGIN/sub`, and `nil` for a path that does not begin with `$ORIGIN`.
    private static func behindOrigin(_ path: String) -> String? {
        for origin in ["$ORIGIN", "${ORIGIN}"] where path == origin || path.hasPrefix(origin + "/") {
            return String(path.dropFirst(origin.count))
        }
        return nil
    }

    /// Returns the absolute path without `.` and `..` and without following links, as the dynamic linker expands
    /// `$ORIGIN`.
    private static func standardized(_ path: String) -> String {
        var parts: [Substring.UTF8View] = []
        let absolute = path.utf8.first == slash ? path : FileManager.default.currentDirectoryPath + "/" + path
        for part in absolute.utf8.split(separator: slash) where !part.elementsEqual(".".utf8) {
            if part.elementsEqual("..".utf8) { _ = parts.popLast() } else { parts.append(part) }
        }
        return "/" + parts.map { String(Substring($0)) }.joined(separator: "/")
    }

    /// Returns the folder of a path, with a slash at its end.
    private static func folder(of path: String) -> String {
        path.utf8.lastIndex(of: slash).map { String(path[...$0]) } ?? "/"
    }

    private static let slash = UInt8(ascii: "/")
}

extension String {
    /// Returns the part that follows `start`, with which the string must begin.
    fileprivate func utf8Suffix(behind start: String) -> String { String(Substring(utf8.dropFirst(start.utf8.count))) }
}
