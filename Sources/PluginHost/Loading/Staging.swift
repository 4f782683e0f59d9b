internal import CPluginHost
internal import Foundation
internal import Glibc
internal import PluginABI
internal import Synchronization

/// Copies modules to a private folder, so that nothing that happens in a plugins folder can touch what is mapped, and
/// checks the copies. All functions may be called from any thread.
final class Staging: Sendable {
    /// A library that came with a module, under the name by which the dynamic linker knows it.
    private struct Library {
        let original: String
        let copy: String
        let digest: UInt64
        let owner: String
    }

    private struct State {
        var lastNumber = 0
        var libraries: [String: Library] = [:]
        var isClosed = false
    }

    private let folder: StagingFolder
    private let state = Mutex(State())

    /// Makes the folder of this host, and removes those of hosts that died.
    ///
    /// - Parameter base: A folder for the folders of all hosts, which must belong to this user alone (it is made if it
    ///   is missing); nil for the default.
    /// - Throws: `stagingFailed`.
    init(base: String? = nil) throws(PluginError) { folder = try StagingFolder(base: base) }

    deinit { close() }

    /// Where the copies are.
    var path: String { folder.path }

    /// Removes all copies. What is mapped from them stays usable.
    func close() {
        let wasClosed = state.withLock { state in
            defer { state.isClosed = true }
            return state.isClosed
        }
        if !wasClosed { folder.remove() }
    }

    /// Copies a module, and the libraries that it finds beside itself, and checks the copies.
    ///
    /// The file is opened once, without blocking. No code of it is run.
    ///
    /// - Parameters:
    ///   - checkTrust: Whether to refuse files that others than root and this user could have written.
    ///   - original: The file that it is a copy of already; nil for `path`.
    /// - Throws: `unreadable`, `untrusted`, `invalidFile`, `stagingFailed`, or `conflict` if it brings another library
    ///   under a name that is already taken in this process.
    func stage(path: String, checkTrust: Bool, as original: String? = nil) throws(PluginError) -> StageOutcome {
        let folder = "\(self.folder.path)/\(nextNumber())"
        var isKept = false
        defer { if !isKept { remove(folder) } }
        try makeFolder(folder)

        guard let file = try copy(path, into: folder, checkTrust) else { return .beingWritten }
        try file.image.requireEntry(path: path)
        var companions = Companions(of: file, root: folder)
        while let next = companions.next() {
            try makeFolder((next.copy as NSString).deletingLastPathComponent)
            guard let library = try copy(next.original, to: next.copy, checkTrust) else { return .beingWritten }
            try claim(name: next.name, library, owner: folder)
            if let soname = library.image.soname, soname != next.name {
                try claim(name: soname, library, owner: folder)
            }
            companions.add(library)
        }
        if let path = companions.modulePath {
            try makeFolder((path as NSString).deletingLastPathComponent)
            guard rename(file.path, path) == 0 else {
                throw PluginError(.stagingFailed, "\(path) cannot be made: \(describe(errno: errno)).")
            }
        }
        isKept = true
        return .staged(
            StagedFile(
                path: companions.modulePath ?? file.path, original: original ?? path, identity: file.identity,
                digest: file.digest,
                size: file.size, image: file.image, folder: folder, libraries: companions.staged))
    }

    /// The same for who does not look again later: a file that is being written gets a second. A program that another
    /// thread starts may hold the descriptor for a moment that the file was written by.
    ///
    /// - Throws: `unreadable` for one that is still being written then.
    func stageWhenWritten(
        path: String, checkTrust: Bool, as original: String? = nil
    ) throws(PluginError) -> StagedFile {
        for _ in 0..<50 {
            if case .staged(let staged) = try stage(path: path, checkTrust: checkTrust, as: original) { return staged }
            usleep(20_000)
        }
        throw PluginError(.unreadable, "\(path) is being written. Wait until its writer closes it.")
    }

    /// Removes a copy that was not opened, and gives up the names of the libraries that came with it.
    func discard(_ file: StagedFile) { remove(file.folder) }

    /// Removes the copy of a module that was opened and is not used any more. What is mapped from it stays usable, and
    /// the libraries that came with it keep their names.
    func removeFiles(of file: StagedFile) { try? FileManager.default.removeItem(atPath: file.folder) }

    /// Whether two copies have the same content.
    ///
    /// - Throws: `stagingFailed` if they have the same digest, and one of them cannot be read.
    static func sameBytes(_ left: StagedFile, _ right: StagedFile) throws(PluginError) -> Bool {
        guard left.digest == right.digest, left.size == right.size else { return false }
        return try haveSameBytes(left.path, right.path)
    }

    private func nextNumber() -> Int {
        state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
    }

    private static func haveSameBytes(_ left: String, _ right: String) throws(PluginError) -> Bool {
        let left = try MappedFile(left)
        let right = try MappedFile(right)
        guard left.bytes.count == right.bytes.count else { return false }
        return left.bytes.isEmpty || memcmp(left.bytes.baseAddress!, right.bytes.baseAddress!, left.bytes.count) == 0
    }

    private func remove(_ folder: String) {
        state.withLock { state in state.libraries = state.libraries.filter { $0.value.owner != folder } }
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// Makes a folder, and those above it where they are missing. Not with Foundation: that casts attributes, and each
    /// cast of a process that has just opened a library searches the conformances of all libraries.
    private func makeFolder(_ path: String) throws(PluginError) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, path.count > folder.path.count else {
            throw PluginError(.stagingFailed, "The folder \(path) cannot be made: \(describe(errno: errno)).")
        }
        try makeFolder((path as NSString).deletingLastPathComponent)
        try makeFolder(path)
    }

    private func copy(_ path: String, into folder: String, _ checkTrust: Bool) throws(PluginError) -> Copy? {
        try copy(path, to: "\(folder)/\((path as NSString).lastPathComponent)", checkTrust)
    }

    /// Nil where somebody is writing the file.
    private func copy(_ path: String, to copy: String, _ checkTrust: Bool) throws(PluginError) -> Copy? {
        let source = try SourceFile(opening: path)
        if checkTrust { try source.checkTrust() }
        if source.isBeingWritten() { return nil }
        let copied = try source.copy(to: copy)
        guard copied.size == source.identity.size, !source.hasChanged() else { return nil }
        let mapped = try MappedFile(copy)
        return Copy(
            path: copy, original: path, identity: source.identity, digest: copied.digest ?? mapped.digest,
            size: mapped.bytes.count,
            image: try ELFImage(reading: mapped.bytes, path: path))
    }

    /// Takes a library's name, under which the dynamic linker would give everybody the one that was there first.
    private func claim(name: String, _ library: Copy, owner: String) throws(PluginError) {
        let previous = state.withLock { state in
            let previous = state.libraries[name]
            if previous == nil {
                state.libraries[name] = Library(
                    original: library.original, copy: library.path, digest: library.digest, owner: owner)
            }
            return previous
        }
        if let previous {
            guard previous.owner != owner, previous.digest != library.digest else { return }
            throw Self.conflict(name, library.original, previous.original)
        }
        guard let loaded = plugin_host_loaded_library(name).map({ String(cString: $0) }) else { return }
        if let isSame = try? Self.haveSameBytes(loaded, library.path), isSame { return }
        throw Self.conflict(name, library.original, loaded)
    }

    private static func conflict(_ name: String, _ new: String, _ old: String) -> PluginError {
        PluginError(
            .conflict,
            "\(new) cannot be loaded: this process has another library of the name \(name) already, \(old), which "
                + "keeps the name. Give the new one another file name and SONAME, or restart the host.")
    }
}

/// One file that was copied.
struct Copy {
    let path: String
    let original: String
    let identity: FileIdentity
    let digest: UInt64
    let size: Int
    let image: ELFImage
}
