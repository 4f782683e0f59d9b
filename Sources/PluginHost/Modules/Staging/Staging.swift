import CDispatch
import CPluginHost
import Foundation
import Glibc
import PluginABI
import PluginFile
import Synchronization

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
        /// By name.
        var libraries: [PathKey: Library] = [:]
        /// What was copied as a library of a module, by its original's path, for other modules that need it.
        var shared: [PathKey: Copy] = [:]
        var work = Work()
        var isClosed = false
    }

    /// What has been done since the start.
    struct Work: Equatable {
        /// Files that were copied.
        var copies = 0
        /// Of the copies, in bytes.
        var copiedBytes = 0
        /// Read to decide whether to copy, in bytes.
        var checkedBytes = 0
        /// Libraries that were there already, and got another name.
        var links = 0
        /// Paths that were looked at in search of libraries.
        var lookups = 0
    }

    /// How many libraries are remembered for modules that need them, too.
    private static let sharedLimit = 1024

    private let folder: StagingFolder
    private let maximumFileBytes: Int
    private let state = Mutex(State())

    /// Makes the folder of this host, and removes those of hosts that died.
    ///
    /// - Parameters:
    ///   - base: A folder for the folders of all hosts, which must belong to this user alone (it is made if it is
    ///     missing); nil for the default.
    ///   - maximumFileBytes: How long a module may be, together with its libraries.
    /// - Throws: `stagingFailed`.
    init(
        base: String? = nil, maximumFileBytes: Int = HostConfiguration.defaultMaximumFileBytes
    ) throws(PluginError) {
        self.maximumFileBytes = maximumFileBytes
        folder = try StagingFolder(base: base)
    }

    deinit { close() }

    /// What has been done so far.
    var work: Work { state.withLock { $0.work } }

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
    /// The file is opened once, without blocking. What its first bytes and its tables refuse is not copied. No code of
    /// it is run.
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

        // Swift's backtraces show the path of the copy as it is.
        let name = (path as NSString).lastPathComponent.withoutTerminalControls
        var trusted = TrustedFolders()
        if checkTrust { try trusted.check(linkAt: path) }
        guard let file = try copy(path, to: "\(folder)/\(name)", checkTrust) else { return .beingWritten }
        try file.image.requireEntry(path: path)
        var companions = try Companions(of: file, root: folder)
        defer { state.withLock { $0.work.lookups += companions.lookups } }
        var size = file.size
        while let next = companions.next() {
            if checkTrust { try trusted.check(fileAt: next.original) }
            try makeFolder((next.copy as NSString).deletingLastPathComponent)
            guard let library = try share(next, checkTrust) else { return .beingWritten }
            size += library.size
            guard size <= maximumFileBytes else {
                throw tooLong("\(path), with the libraries that it finds through $ORIGIN, is", size)
            }
            try claim(name: next.name, library, owner: folder)
            if let soname = library.image.soname, soname != next.name {
                try claim(name: soname, library, owner: folder)
            }
            try companions.add(library)
        }
        if checkTrust {
            for library in companions.outside { try trusted.check(outside: library, neededBy: path) }
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

    /// Gives a module the copy of a library that was made for another one, under one more name of the file; copies it
    /// where there is none, or the library has changed. The dynamic linker takes both for one library, as it does with
    /// two copies of one name. Nil where somebody is writing the file.
    private func share(_ next: Companions.Next, _ checkTrust: Bool) throws(PluginError) -> Copy? {
        var status = stat()
        let known = state.withLock { $0.shared[next.original] }
        if let known, stat(next.original, &status) == 0, FileIdentity(status) == known.identity,
            link(known.path, next.copy) == 0
        {
            let copy = known.linked(as: next.copy)
            state.withLock { state in
                state.shared[next.original] = copy
                state.work.links += 1
            }
            return copy
        }
        guard let copy = try copy(next.original, to: next.copy, checkTrust) else { return nil }
        state.withLock { state in
            if state.shared.count >= Self.sharedLimit { state.shared = [:] }
            // What is trusted by one is trusted by all: a staging belongs to one host.
            state.shared[next.original] = copy.identity.isRecent ? nil : copy
        }
        return copy
    }

    /// Nil where somebody is writing the file.
    private func copy(_ path: String, to copy: String, _ checkTrust: Bool) throws(PluginError) -> Copy? {
        let source = try SourceFile(opening: path)
        if checkTrust { try source.checkTrust() }
        if source.isBeingWritten() { return nil }
        guard source.identity.size <= maximumFileBytes else {
            throw tooLong("\(path) is", Int(source.identity.size))
        }
        var checked = 0
        defer { state.withLock { $0.work.checkedBytes += checked } }
        do throws(PluginError) {
            try source.checkTables(&checked)
        } catch {
            if source.hasChanged() { return nil }
            throw error
        }
        let copied = try source.copy(to: copy)
        state.withLock { state in
            state.work.copies += 1
            state.work.copiedBytes += Int(copied.size)
        }
        guard copied.size == source.identity.size, !source.hasChanged() else { return nil }
        let mapped = try MappedFile(copy)
        let image = try ELFImage(reading: mapped.bytes, path: path)
        let whole = try copied.digest == nil ? SourceFile(opening: copy).digest() : nil
        guard let digest = copied.digest ?? whole else {
            throw PluginError(.stagingFailed, "\(copy) cannot be read: \(describe(errno: errno)).")
        }
        return Copy(
            path: copy, original: path, identity: source.identity, digest: digest, size: mapped.bytes.count,
            image: image)
    }

    private func tooLong(_ what: String, _ size: Int) -> PluginError {
        PluginError(
            .invalidFile,
            "\(what) \(size) bytes long; at most \(maximumFileBytes) are accepted. Make it shorter (strip), or raise "
                + "maximumFileBytes (--max-file-size).")
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

extension TrustedFolders {
    /// Checks a library that is not copied, and that the dynamic linker opens where it lies: the way to it, its owner and
    /// its mode. What is loaded already is not opened again; what is not there is for the dynamic linker to tell.
    ///
    /// - Throws: `untrusted`.
    fileprivate mutating func check(
        outside library: (name: String, path: String), neededBy module: String
    ) throws(PluginError) {
        var status = stat()
        guard plugin_host_loaded_library(library.name) == nil, stat(library.path, &status) == 0 else { return }
        do throws(PluginError) {
            try check(fileAt: library.path)
            try Trust.check(status: status, path: library.path, above: nil)
        } catch {
            throw PluginError(
                error.code,
                "\(module) is not loaded, because of the library \(library.path) that it needs: \(error.message)")
        }
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

    /// The copy, known by another name.
    func linked(as path: String) -> Copy {
        Copy(path: path, original: original, identity: identity, digest: digest, size: size, image: image)
    }
}

extension LoadedModule {
    /// Whether a copy has the content of this module. The copy of one that has ended is gone, and then the digest is
    /// enough: before it runs again, it is loaded anew.
    func hasContent(of copy: StagedFile) -> Bool { (try? Staging.sameBytes(staged, copy)) ?? isSpent }
}

/// What became of a file that was to be staged.
enum StageOutcome: Sendable {
    case staged(StagedFile)
    /// Somebody is still writing it: ask again when it was closed.
    case beingWritten
}
