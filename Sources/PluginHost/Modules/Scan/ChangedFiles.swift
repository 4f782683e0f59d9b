import PluginFile

/// What has changed in plugins folders.
struct ChangedFiles: Sendable {
    /// How many files of a folder are listed; if there are more, the whole folder is scanned.
    static let filesMax = 64

    /// The paths of the files that have changed, by folder; `nil` if anything in the folder may have changed.
    private(set) var files: [String: Set<PathKey>?] = [:]

    init() {}

    /// Creates changes after which these folders must be scanned as a whole.
    init(in folders: Set<String>) { for folder in folders { add(folder: folder) } }

    /// The folders in which something has changed.
    var folders: Set<String> { Set(files.keys) }

    var isEmpty: Bool { files.isEmpty }

    mutating func add(folder: String) { files[folder] = .some(nil) }

    mutating func add(file path: String, in folder: String) {
        guard var paths = files[folder, default: []] else { return }
        paths.insert(PathKey(path))
        files[folder] = .some(paths.count > Self.filesMax ? nil : paths)
    }

    mutating func add(_ other: ChangedFiles) {
        for (folder, paths) in other.files {
            guard let paths else {
                add(folder: folder)
                continue
            }
            for path in paths { add(file: path.path, in: folder) }
        }
    }
}

extension String {
    /// The path of an item in the folder with this path.
    func pathOfItem(_ name: String) -> String { hasSuffix("/") ? self + name : "\(self)/\(name)" }
}
