internal import Glibc

/// The files that the beginning of a path can become.
enum FileCompletion {
    /// The maximum number of entries of a folder that are read.
    private static let limit = 10_000

    /// Returns paths as they would be entered; folders end in `/`. `~/` is the home folder. Hidden files are left out
    /// unless the name begins with a dot.
    static func candidates(_ word: String, foldersOnly: Bool) -> [Candidate] {
        let slash = word.lastIndex(of: "/")
        let folder = slash.map { String(word[...$0]) } ?? ""
        let name = slash.map { word[word.index(after: $0)...] } ?? word[...]
        guard let entries = opendir(folder.isEmpty ? "." : expanded(folder)) else { return [] }
        defer { closedir(entries) }
        var candidates: [Candidate] = []
        for _ in 0..<limit {
            guard let entry = readdir(entries) else { break }
            let text = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard text.hasPrefix(name), text != ".", text != "..", name.hasPrefix(".") || !text.hasPrefix(".") else {
                continue
            }
            let isFolder = fileStatus(expanded(folder) + text).map { $0.st_mode & S_IFMT == S_IFDIR } ?? false
            if isFolder {
                candidates.append(Candidate(text: folder + text + "/", isWhole: false))
            } else if !foldersOnly {
                candidates.append(Candidate(text: folder + text))
            }
        }
        return candidates.sorted { $0.text < $1.text }
    }

    private static func expanded(_ folder: String) -> String {
        guard folder.hasPrefix("~/"), let home = getenv("HOME") else { return folder }
        return String(cString: home) + folder.dropFirst()
    }
}
