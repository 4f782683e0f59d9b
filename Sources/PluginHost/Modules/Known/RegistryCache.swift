import CPluginHost
import Dispatch
import FoundationEssentials
import Glibc
import PluginABI
import PluginFile
import Synchronization

/// The knowledge of hosts about the files in plugins folders, kept in a file that later hosts read, so that they need
/// not open those that have not changed.
///
/// The file is only a shortcut: if it is missing, damaged, foreign or could have been written by another user, or does
/// not belong to the same key, nothing is known. Several hosts may use it at the same time: each writes what it knows,
/// and the last one wins.
///
/// May be used on any thread.
final class RegistryCache: Sendable {
    /// How many files of hosts with different keys are kept.
    static let filesMax = 64

    /// The path of the file.
    let path: String
    private let folder: String
    private let key: RegistryKey
    private let state = Mutex(State())
    /// Left when the file has been read.
    private let reading = DispatchGroup()

    private struct State {
        var content: RegistryContent?
        var prepared: PreparedRecords?
        /// The index after the last one in ``prepared`` that was found.
        var next = 0
        /// The changes since the content was read: what is known now, or `nil` if nothing is.
        var changes: [PathKey: KnownFile?] = [:]
        /// Whether ``changes`` contains something that was not written.
        var isDirty = false
        var problems: [PluginError] = []

        func find(_ path: String, _ identity: FileIdentity) -> KnownFile? {
            let change = changes.isEmpty ? nil : changes[path]
            let file = change ?? content.flatMap { content in content.index(of: path).map { content[$0] } }
            return file?.identity == identity ? file : nil
        }

        mutating func preparedRecord(_ path: String, _ identity: FileIdentity) -> FileRecord? {
            guard let prepared, changes.isEmpty || changes[path] == nil else { return nil }
            // Files are often looked up in the order of the entries.
            let isNext = next < prepared.records.count && prepared.records[next]?.path.hasBytes(of: path) == true
            guard let index = isNext ? next : content?.index(of: path) else { return nil }
            next = index + 1
            guard let record = prepared.records[index], record.identity == identity else { return nil }
            return record
        }
    }

    /// Reads the file on a thread of its own. Whatever asks for its content waits for that.
    ///
    /// - Parameters:
    ///   - folder: The folder of the file, which must belong to this user alone. ``write()`` creates it if it is
    ///     missing.
    ///   - prepare: Makes ``prepared`` on that thread.
    init(
        folder: String, key: RegistryKey,
        preparing prepare: (@Sendable (RegistryContent) -> PreparedRecords)? = nil
    ) {
        (self.folder, self.key) = (folder, key)
        let name = key.fileName
        path = "\(folder)/\(name)"
        reading.enter()
        ThreadPool.shared.run {
            self.read(name, prepare)
            self.reading.leave()
        }
    }

    private func read(_ name: String, _ prepare: (@Sendable (RegistryContent) -> PreparedRecords)?) {
        var state = State()
        let result = plugin_host_open_private(folder, name, RegistryLayout.bytesMax)
        if result.descriptor >= 0 {
            defer { close(result.descriptor) }
            do throws(RegistryContent.Fault) {
                state.content = try RegistryContent(
                    KnownBytes(reading: result.descriptor, count: result.size), key: key)
            } catch {
                state.problems = [Self.ignored("\(path) \(error.text).")]
            }
        } else if result.code != ENOENT {
            state.problems = [Self.ignored(Self.reason(result, folder, path))]
        }
        if let prepare { state.prepared = state.content.map(prepare) }
        self.state.withLock { $0 = state }
    }

    private func withState<Result>(_ body: (inout State) -> Result) -> Result {
        reading.wait()
        return state.withLock { body(&$0) }
    }

    /// The reasons why the file was ignored or cannot be written, each once.
    var problems: [PluginError] { withState { $0.problems } }

    /// All that is known, in the order of the bytes of the paths.
    var files: [KnownFile] { withState { Self.files($0) } }

    /// Returns what is known about a file; `nil` if nothing is, or it has changed since.
    func find(_ path: String, identity: FileIdentity) -> KnownFile? { withState { $0.find(path, identity) } }

    /// What was prepared while the file was read; `nil` if nothing was, or it is no longer needed.
    var prepared: PreparedRecords? { withState { $0.prepared } }

    /// Returns the prepared record of a file; `nil` if there is none, or the file has changed since.
    func preparedRecord(_ path: String, identity: FileIdentity) -> FileRecord? {
        withState { $0.preparedRecord(path, identity) }
    }

    /// Frees ``prepared``, which only a start needs.
    func forgetPrepared() { withState { $0.prepared = nil } }

    /// Records what was learnt about a file, in place of what was known about the file at its path.
    ///
    /// - Parameter isFleeting: Whether the file had changed so shortly before it was read that it may have changed
    ///   again without getting another identity. Then nothing is known about it afterwards.
    func record(_ file: KnownFile, isFleeting: Bool = false) {
        guard !isFleeting, !file.identity.isRecent else { return forget(file.path) }
        withState { state in
            guard state.find(file.path, file.identity) != file else { return }
            state.changes[file.path] = .some(file)
            state.isDirty = true
        }
    }

    /// Forgets what is known about the file at a path: it was deleted, or what is known can no longer be relied on.
    func forget(_ path: String) {
        withState { state in
            guard state.changes[path] != .some(nil) else { return }
            state.changes[path] = .some(nil)
            state.isDirty = true
        }
    }

    /// Forgets all files except those at these paths.
    func forgetAll(besides paths: Set<PathKey>) {
        let recorded = withState { state in
            (0..<(state.content?.count ?? 0)).compactMap { state.content?.path(at: $0) }
                + state.changes.keys.map(\.path)
        }
        for path in recorded where !paths.contains(path) { forget(path) }
    }

    /// Writes the file if what is known has changed. A failure becomes one of the ``problems``, and the file stays as
    /// it is.
    func write() {
        let files: [KnownFile]? = withState { state in
            guard state.isDirty else { return nil }
            state.isDirty = false
            return Self.files(state)
        }
        guard let files else { return }
        do throws(PluginError) { try write(files) } catch {
            withState { state in if !state.problems.contains(error) { state.problems.append(error) } }
        }
    }

    private static func files(_ state: State) -> [KnownFile] {
        let old = (0..<(state.content?.count ?? 0)).compactMap { state.content?[$0] }
        let kept = old.filter { state.changes[$0.path] == nil }
        return (kept + state.changes.values.compactMap(\.self)).sorted { PathKey($0.path) < PathKey($1.path) }
    }

    private func write(_ files: [KnownFile]) throws(PluginError) {
        guard let bytes = RegistryContent.encoded(files, key: key) else {
            throw Self.unwritten("\(path) would be longer than \(RegistryLayout.bytesMax >> 20) MiB.")
        }
        do throws(POSIXError) { try VersionStore.makeFolder(folder) } catch {
            throw Self.unwritten("The folder \(folder) cannot be used: \(describe(errno: error.code.rawValue)).")
        }
        let result = bytes.withUnsafeBytes { bytes in
            plugin_host_replace_private(folder, key.fileName, bytes.baseAddress, bytes.count)
        }
        guard result.fault == nil, result.code == 0 else {
            throw Self.unwritten(Self.reason(result, folder, path))
        }
        plugin_host_prune_private(folder, RegistryKey.filePrefix, Self.filesMax)
    }

    // MARK: Errors

    private static func reason(_ result: plugin_host_private_result, _ folder: String, _ path: String) -> String {
        guard let fault = result.fault else { return "\(path) cannot be used: \(describe(errno: result.code))." }
        return "\(result.concerns_folder == 1 ? folder : path) \(String(cString: fault))."
    }

    private static func ignored(_ reason: String) -> PluginError {
        PluginError(
            .unreadable,
            "What earlier hosts have recorded about the files in the plugins folders is ignored: \(reason) All files are "
                + "read again. If this happens at each start, remove that file.")
    }

    private static func unwritten(_ reason: String) -> PluginError {
        PluginError(
            .unreadable,
            "What is known about the files in the plugins folders cannot be saved, so the next start will not be faster: "
                + "\(reason) Make the folder writable, or set XDG_CACHE_HOME to another one.")
    }
}
