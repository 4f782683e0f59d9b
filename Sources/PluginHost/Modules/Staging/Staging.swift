import CDispatch
import CPluginHost
import FoundationEssentials
import Glibc
import PluginABI
import PluginFile
import Synchronization

/// The staging of modules: copies them to a private folder and checks the copies, so that changes in a plugins folder
/// cannot affect mapped files. All functions may be called from any thread.
final class Staging: Sendable {
    /// A copied library that a module brought along.
    private struct Library {
        let original: String
        let copy: String
        let digest: UInt64
        let owner: String
    }

    private struct State {
        var lastNumber = 0
        /// The copied libraries, by the names under which the dynamic linker knows them.
        var libraries: [PathKey: Library] = [:]
        /// The copied libraries, by the paths of their originals, for other modules that need them.
        var shared: [PathKey: Copy] = [:]
        /// The numbers of the folders for copies, by the folders of the originals.
        var folders: [PathKey: Int] = [:]
        /// The paths in these folders that must not be used for another copy.
        var taken: Set<PathKey> = []
        var work = Work()
        var isClosed = false
    }

    /// The work done since the start, as counts.
    struct Work: Equatable {
        /// The number of files that were copied.
        var copies = 0
        /// The number of bytes that were copied.
        var copiedBytes = 0
        /// The number of bytes that were read to decide whether to copy a file.
        var checkedBytes = 0
        /// The number of libraries that were already copied and only got another name.
        var links = 0
        /// The number of paths that were looked up in search of libraries.
        var lookups = 0
    }

    /// How many copied libraries are remembered for other modules that need them.
    private static let sharedLimit = 1024

    private let folder: StagingFolder
    let maximumFileBytes: Int
    private let state = Mutex(State())

    /// Creates the folder of this host, and removes those of hosts that died.
    ///
    /// - Parameters:
    ///   - base: The folder that contains the folders of all hosts. It must belong to this user alone, and is created
    ///     if it is missing. `nil` for the default.
    ///   - maximumFileBytes: The largest size of a module together with its libraries.
    /// - Throws: `stagingFailed`.
    init(
        base: String? = nil, maximumFileBytes: Int = HostConfiguration.defaultMaximumFileBytes
    ) throws(PluginError) {
        self.maximumFileBytes = maximumFileBytes
        folder = try StagingFolder(base: base)
    }

    deinit { close() }

    /// The work done so far.
    var work: Work { state.withLock { $0.work } }

    /// The path of the folder with the copies.
    var path: String { folder.path }

    /// Removes all copies. Libraries that are mapped from them remain usable.
    func close() {
        let wasClosed = state.withLock { state in
            defer { state.isClosed = true }
            return state.isClosed
        }
        if !wasClosed { folder.remove() }
    }

    /// The copy of a module's own file, without libraries.
    struct Begun: Sendable {
        fileprivate let file: Copy
        fileprivate var trusted: TrustedFolders
        fileprivate let checkTrust: Bool

        /// The identity of the file that was copied.
        var identity: FileIdentity { file.identity }
    }

    /// Copies a module and the libraries that it finds through `$ORIGIN`, and checks the copies.
    ///
    /// - Returns: `nil` if the file is still being written. Stage it again when it has been closed.
    /// - Throws: The errors of ``begin(path:checkTrust:)`` and ``finish(_:as:whenFree:)``.
    func stage(path: String, checkTrust: Bool, as original: String? = nil) throws(PluginError) -> StagedFile? {
        guard let begun = try begin(path: path, checkTrust: checkTrust) else { return nil }
        return try finish(begun, as: original)
    }

    /// Copies the file of a module, and checks the copy.
    ///
    /// The file is opened once, without blocking. It is not copied if its headers and tables are not those of a module.
    /// None of its code runs.
    ///
    /// - Parameter checkTrust: Whether to reject files that users other than root and this user can write.
    /// - Returns: `nil` if the file is still being written.
    /// - Throws: `unreadable`, `untrusted`, `invalidFile`, `stagingFailed`.
    func begin(path: String, checkTrust: Bool) throws(PluginError) -> Begun? {
        var trusted = TrustedFolders()
        if checkTrust { try trusted.check(linkAt: path) }
        let place = try reserve(path)
        var isKept = false
        defer { if !isKept { release(place) } }
        guard let file = try copy(path, to: place, checkTrust) else { return nil }
        try file.image.requireEntry(path: path)
        isKept = true
        return Begun(file: file, trusted: trusted, checkTrust: checkTrust)
    }

    /// Copies the libraries that a module finds through `$ORIGIN`, and checks the copies.
    ///
    /// - Parameters:
    ///   - original: The file that the module's path is a copy of; `nil` if it is the original.
    ///   - retry: Called once when the dynamic linker can tell which libraries this process has, if an overdue
    ///     constructor keeps it from doing so now; see ``LibraryOpening``.
    /// - Returns: `nil` if a library is still being written. Stage the module again when it has been closed.
    /// - Throws: `unreadable`, `untrusted`, `invalidFile`, `stagingFailed`; `conflict` if the module brings along
    ///   another library with a name that is already used in this process; `openFailed` if that cannot be told now.
    func finish(
        _ begun: Begun, as original: String? = nil, whenFree retry: (@Sendable () -> Void)? = nil
    ) throws(PluginError) -> StagedFile? {
        let (file, checkTrust, path) = (begun.file, begun.checkTrust, begun.file.original)
        let folder = "\(self.folder.path)/\(nextNumber())"
        var trusted = begun.trusted
        var place = file.path
        var isKept = false
        defer { if !isKept { remove(place, folder) } }
        var companions = try Companions(of: file, root: folder)
        defer { state.withLock { $0.work.lookups += companions.lookups } }
        var size = file.size
        while let next = companions.next() {
            if checkTrust { try trusted.check(fileAt: next.original) }
            try makeFolder(next.copy.parentFolder)
            guard let library = try share(next, checkTrust) else { return nil }
            size += library.size
            guard size <= maximumFileBytes else {
                throw tooLong("\(path), with the libraries that it finds through $ORIGIN, is", size)
            }
            try claim(name: next.name, library, owner: folder, retry)
            if let soname = library.image.soname, soname != next.name {
                try claim(name: soname, library, owner: folder, retry)
            }
            try companions.add(library)
        }
        if checkTrust {
            for library in companions.outside { try trusted.check(outside: library, neededBy: path, retry) }
        }
        if companions.needsFolder {
            try makeFolder(companions.modulePath.parentFolder)
            guard rename(file.path, companions.modulePath) == 0 else {
                throw PluginError(
                    .stagingFailed, "\(companions.modulePath) cannot be created: \(describe(errno: errno)).")
            }
            release(file.path)
            place = companions.modulePath
        }
        isKept = true
        return StagedFile(
            path: place, original: original ?? path, identity: file.identity, digest: file.digest, size: file.size,
            image: file.image, folder: companions.needsFolder ? folder : nil, libraries: companions.staged)
    }

    /// Stages a file as ``stage(path:checkTrust:as:)`` does, but waits up to a second for a file that is being written,
    /// for callers that do not retry later. A process that another thread starts may, for a moment, have the descriptor
    /// open through which the file was written.
    ///
    /// - Throws: The errors of ``stage(path:checkTrust:as:)``; `unreadable` if the file is still being written after
    ///   that.
    func stageWhenWritten(
        path: String, checkTrust: Bool, as original: String? = nil
    ) throws(PluginError) -> StagedFile {
        for _ in 0..<50 {
            if let staged = try stage(path: path, checkTrust: checkTrust, as: original) { return staged }
            usleep(20_000)
        }
        throw PluginError(.unreadable, "\(path) is being written. Wait until its writer closes it.")
    }

    /// Removes a copy to which nothing was added.
    func discard(_ begun: Begun) { release(begun.file.path) }

    /// Removes a copy that was not opened. The names of its libraries can be used again.
    func discard(_ file: StagedFile) { remove(file.path, file.folder) }

    /// Removes the copy of a module that was opened and is no longer used. Its mapped code remains usable, and the
    /// names of its libraries stay reserved.
    func removeFiles(of file: StagedFile) {
        release(file.path, wasOpened: true)
        if let folder = file.folder { try? FileManager.default.removeItem(atPath: folder) }
    }

    /// Returns whether two copies have the same content.
    ///
    /// - Throws: `stagingFailed` if they have the same digest and one of them cannot be read.
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

    /// Reserves a path for the copy of a file, under the file's name. All copies in a folder have originals in the same
    /// folder, so that the dynamic linker finds none of them for a module that looks for libraries beside itself. If
    /// there is or was a copy of an earlier version, the copy gets a folder of its own.
    ///
    /// - Throws: `stagingFailed` if the folder cannot be created.
    private func reserve(_ path: String) throws(PluginError) -> String {
        // Swift's backtraces print the path of the copy unescaped.
        let name = path.fileName.withoutTerminalControls
        let (newNumber, ownNumber) = (nextNumber(), nextNumber())
        let place = state.withLock { state -> String in
            let number = state.folders[PathKey(path.parentFolder), default: newNumber]
            state.folders[PathKey(path.parentFolder)] = number
            let place = "\(folder.path)/\(number)/\(name)"
            return state.taken.insert(place) ? place : "\(folder.path)/\(ownNumber)/\(name)"
        }
        do throws(PluginError) { try makeFolder(place.parentFolder) } catch {
            release(place)
            throw error
        }
        return place
    }

    /// Removes a copy.
    ///
    /// - Parameter wasOpened: Whether the dynamic linker knows the path. It would take another file with this path for
    ///   the same one, so the path cannot be used again.
    private func release(_ place: String, wasOpened: Bool = false) {
        unlink(place)
        let isShared = state.withLock { state in
            wasOpened ? state.taken.contains(PathKey(place)) : state.taken.remove(PathKey(place)) != nil
        }
        if !isShared { rmdir(place.parentFolder) }
    }

    private func remove(_ place: String, _ folder: String?) {
        release(place)
        guard let folder else { return }
        state.withLock { state in state.libraries = state.libraries.filter { $0.value.owner != folder } }
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// Creates a folder and missing folders above it. Foundation is not used, because it casts the attributes
    /// dynamically: in a process that has just opened a library, each cast searches the conformances of all libraries.
    private func makeFolder(_ path: String) throws(PluginError) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, path.count > folder.path.count else {
            throw PluginError(.stagingFailed, "The folder \(path) cannot be created: \(describe(errno: errno)).")
        }
        try makeFolder(path.parentFolder)
        try makeFolder(path)
    }

    /// Provides a module with a library by linking to the copy that was made for another module, or by copying it if
    /// there is no copy or the library has changed. The dynamic linker treats the links as one library, as it does two
    /// copies with the same name. Returns `nil` if the file is being written.
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
            // Trust applies to all modules alike, since a `Staging` belongs to one host.
            state.shared[next.original] = copy.identity.isRecent ? nil : copy
        }
        return copy
    }

    /// Copies one file and checks the copy. Returns `nil` if the file is being written.
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
        let own = try SourceFile(opening: copy)
        var read = 0
        let image = try own.inspect(&read, as: path) { bytes throws(PluginError) in try ELFImage(reading: bytes) }
        let whole = copied.digest == nil ? own.digest() : nil
        guard let digest = copied.digest ?? whole else {
            throw PluginError(.stagingFailed, "\(copy) cannot be read: \(describe(errno: errno)).")
        }
        return Copy(
            path: copy, original: path, identity: source.identity, digest: digest, size: Int(own.identity.size),
            image: image)
    }

    private func tooLong(_ what: String, _ size: Int) -> PluginError {
        PluginError(
            .invalidFile,
            "\(what) \(size) bytes long; at most \(maximumFileBytes) are accepted. Make it smaller (strip), or raise "
                + "maximumFileBytes (--max-file-size).")
    }

    /// Reserves a library's name. For each name, the dynamic linker gives all modules the library that was loaded
    /// first.
    ///
    /// - Parameter retry: See ``finish(_:as:whenFree:)``.
    /// - Throws: `conflict` if another library has the name; `openFailed` if that cannot be told now.
    private func claim(
        name: String, _ library: Copy, owner: String, _ retry: (@Sendable () -> Void)?
    ) throws(PluginError) {
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
        try LibraryOpening.requireFree(for: library.original, retry)
        guard let loaded = plugin_host_loaded_library(name).map({ String(cString: $0) }) else { return }
        if let isSame = try? Self.haveSameBytes(loaded, library.path), isSame { return }
        throw Self.conflict(name, library.original, loaded)
    }

    private static func conflict(_ name: String, _ new: String, _ old: String) -> PluginError {
        PluginError(
            .conflict,
            "\(new) cannot be loaded: this process already has another library named \(name), \(old), which keeps the "
                + "name. Give the new library another file name and SONAME, or restart the host.")
    }
}
