internal import Foundation
internal import Glibc

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

    /// Where the copy of the module belongs, if not directly in its folder.
    private(set) var modulePath: String?
    /// The originals of the libraries so far.
    private(set) var staged: [String] = []
    /// The original folder that the copy's folder stands for, and that folder; both end in a slash.
    private let originalRoot: String
    private let copyRoot: String
    private var queue: [Next] = []
    private var seen: Set<String>

    init(of module: Copy, root: String) {
        var originalRoot = Self.folder(of: Self.standardized(module.original))
        let climb = module.image.runpath.compactMap(Self.behindOrigin).map { path in
            path.split(separator: "/").prefix { $0 == ".." }.count
        }
        let original = Self.standardized(module.original)
        for _ in 0..<min(climb.max() ?? 0, 8) { originalRoot = Self.folder(of: String(originalRoot.dropLast())) }
        self.originalRoot = originalRoot
        copyRoot = root + "/"
        let place = copyRoot + original.dropFirst(originalRoot.count)
        modulePath = place == module.path ? nil : place
        seen = [original]
        add(module)
    }

    mutating func next() -> Next? {
        guard !queue.isEmpty else { return nil }
        let next = queue.removeFirst()
        staged.append(next.original)
        return next
    }

    /// Finds what a copied file needs.
    mutating func add(_ file: Copy) {
        let folder = Self.folder(of: Self.standardized(file.original))
        for name in file.image.needed where !name.contains("/") && !name.isEmpty {
            guard let path = find(name, folder, file.image.runpath), path.hasPrefix(originalRoot),
                seen.insert(path).inserted
            else { continue }
            queue.append(Next(name: name, original: path, copy: copyRoot + path.dropFirst(originalRoot.count)))
        }
    }

    /// The file that the dynamic linker would take, if it is one that `$ORIGIN` leads to.
    private func find(_ name: String, _ folder: String, _ runpath: [String]) -> String? {
        for entry in runpath {
            guard let rest = Self.behindOrigin(entry) else {
                if access("\(entry)/\(name)", F_OK) == 0 { return nil }
                continue
            }
            let path = Self.standardized("\(folder)\(rest)/\(name)")
            if access(path, F_OK) == 0 { return path }
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
        var parts: [Substring] = []
        let absolute = path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
        for part in absolute.split(separator: "/") where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        return "/" + parts.joined(separator: "/")
    }

    /// With a slash at its end.
    private static func folder(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[...$0]) } ?? "/"
    }
}
