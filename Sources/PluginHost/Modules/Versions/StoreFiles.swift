import CDispatch
import FoundationEssentials
import Glibc
import PluginFile

extension VersionStore {
    /// Creates a folder for this user alone, and missing folders above it.
    static func makeFolder(_ path: String) throws(POSIXError) {
        var result = mkdir(path, 0o700)
        if result != 0, errno == ENOENT {
            // If a folder above cannot be created, its error is thrown.
            let parent = path.parentFolder
            guard !parent.isEmpty, parent != path else { throw .current }
            try makeFolder(parent)
            result = mkdir(path, 0o700)
        }
        guard result == 0 || errno == EEXIST else { throw .current }
        var status = stat()
        // A folder of another user is not changed. The trust check rejects it.
        if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid() {
            guard chmod(path, 0o700) == 0 else { throw .current }
        }
    }

    static func copy(_ path: String, to copy: String) throws(POSIXError) {
        errno = EINVAL
        guard let source = try? SourceFile(opening: path) else { throw .current }
        let output = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard output >= 0 else { throw .current }
        defer { close(output) }
        guard (try? source.copy(to: output)) != nil, fsync(output) == 0 else { throw .current }
    }

    static func hex(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
