import Crypto
import Foundation

/// Files of modules: their digests, and how they get from the store into a plugins folder.
enum ModuleFiles {
    /// The maximum size of a file, in bytes.
    static let sizeLimit = 1 << 30

    /// Returns the SHA-256 of a file, in lower-case hexadecimal digits, and possibly copies the file.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - copy: An open file to which the same bytes are written.
    static func digest(_ path: String, copyTo copy: FileHandle? = nil) throws -> String {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
            throw FleetError("The file \(path) does not exist.")
        }
        let kind = try? FileManager.default.attributesOfItem(atPath: URL(filePath: path).resolvingSymlinksInPath().path)
        guard kind?[.type] as? FileAttributeType == .typeRegular, let file = FileHandle(forReadingAtPath: path) else {
            throw FleetError("The file \(path) cannot be read, or is not a regular file.")
        }
        defer { try? file.close() }
        var (hash, size) = (SHA256(), 0)
        while let part = try file.read(upToCount: 1 << 20), !part.isEmpty {
            size += part.count
            guard size <= sizeLimit else { throw FleetError("The file \(path) is larger than 1 GiB.") }
            hash.update(data: part)
            try copy?.write(contentsOf: part)
        }
        return hash.finalize().map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }.joined()
    }

    /// Copies a file of the store into a plugins folder, under a hidden name, if its content has a digest.
    ///
    /// - Returns: The path of the copy, which the caller renames or removes.
    /// - Throws: A ``FleetError`` if the file is missing or has another digest.
    static func stage(_ release: ModuleRelease, from store: String, into folder: String) throws -> String {
        guard let name = release.file, ModuleRelease.isFile(name) else {
            throw FleetError("It is not known which file of the store has \(release.shown).")
        }
        let copy = "\(folder)/\(copyPrefix)\(UUID().uuidString)"
        guard FileManager.default.createFile(atPath: copy, contents: nil, attributes: [.posixPermissions: 0o755]),
            let handle = FileHandle(forWritingAtPath: copy)
        else { throw FleetError("No file can be created in \(folder).") }
        do {
            defer { try? handle.close() }
            let digest = try digest("\(store)/\(name)", copyTo: handle)
            guard digest == release.digest else {
                throw FleetError(
                    "The file \(store)/\(name) has the digest \(digest), not \(release.digest). It is not used.")
            }
            try handle.synchronize()
        } catch {
            unlink(copy)
            throw error
        }
        return copy
    }

    private static let copyPrefix = ".fleet-next-"

    /// Removes the copies that a killed process has left behind in a plugins folder.
    static func removeCopies(in folder: String) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        where name.hasPrefix(copyPrefix) {
            unlink("\(folder)/\(name)")
        }
    }

    /// Returns the release with the name of its file in the store, if the file has the usual name and the same content.
    static func find(_ module: String, _ release: ModuleRelease, in store: String?) -> ModuleRelease {
        var found = release
        let name = "\(module)-\(release.version).so"
        if found.file == nil, let store, ModuleRelease.isFile(name), (try? digest("\(store)/\(name)")) == release.digest
        {
            found.file = name
        }
        return found
    }

    /// Keeps the file of a module, which is about to be replaced, under a hidden name beside it. The host itself keeps only
    /// versions that have started.
    static func keep(_ module: HostRecord.Module, of path: String) {
        guard (try? digest(path)) == module.release.digest else { return }
        let kept = keptPath(module.name, in: URL(filePath: path).deletingLastPathComponent().path)
        unlink(kept)
        link(path, kept)
    }

    /// Returns the file that was kept, if it has the content of a release.
    static func kept(_ module: String, _ release: ModuleRelease, in folder: String) -> String? {
        let kept = keptPath(module, in: folder)
        return (try? digest(kept)) == release.digest ? kept : nil
    }

    /// Removes the file that was kept.
    static func forget(_ module: String, in folder: String) { unlink(keptPath(module, in: folder)) }

    private static func keptPath(_ module: String, in folder: String) -> String {
        "\(folder)/.fleet-before-\(module.prefix(200))"
    }

    /// Puts a staged copy in place of a file.
    static func put(_ copy: String, at path: String) throws {
        guard rename(copy, path) == 0 else {
            let reason = String(cString: strerror(errno))
            unlink(copy)
            throw FleetError("The file \(path) cannot be replaced: \(reason).")
        }
    }
}

extension ModuleRelease {
    /// The version with the beginning of the digest.
    var shown: String { "\(version) (\(digest.prefix(12))…)" }
}
