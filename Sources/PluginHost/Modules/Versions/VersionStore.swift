import CDispatch
import FoundationEssentials
import Glibc
import PluginABI
import PluginFile
import Synchronization

/// A store that keeps versions of modules, so that a module that was replaced or removed can be put back into its
/// plugins folder: the last few versions for each module and folder, up to a total size.
///
/// The store is the folder `versions` in the state folder. It belongs to this user alone and is shared by all hosts of
/// the user. Each change locks it, and a version gets its final name when it is complete, so a host that is killed
/// leaves no incomplete version. Versions are real copies: a mapped file never shares its content with a file in the
/// store that could be changed. Files that users other than this user and root can write, or whose path they can
/// change, are not used.
///
/// All functions may be called from any thread.
final class VersionStore: Sendable {
    /// The limits of the store. The last version of each module is kept in any case.
    struct Limit: Sendable {
        /// How many versions of each module are kept.
        var versions = 5
        /// The total size in bytes.
        var bytes = 1 << 30
    }

    private let root: String?
    private let limit: Limit
    private let checksTrust: Bool
    /// The approximate size of the store in bytes, as of the last check of all versions plus later additions; and the
    /// number of these additions.
    private let census = Mutex<(bytes: Int, additions: Int)?>(nil)
    /// The errors of damaged entries, by path.
    private let damaged = Mutex<[String: PluginError]>([:])

    /// - Parameters:
    ///   - stateFolder: The state folder, which is created if it is missing; `nil` for the default,
    ///     `$XDG_STATE_HOME/pluginhost` or `$HOME/.local/state/pluginhost`.
    ///   - checksTrust: Whether to reject files that other users can write.
    init(stateFolder: String?, limit: Limit = Limit(), checksTrust: Bool = true) {
        (self.limit, self.checksTrust) = (limit, checksTrust)
        root = (stateFolder ?? Journal.defaultFolder).map { "\($0)/versions" }
    }

    /// The errors of damaged entries that were found so far.
    var problems: [PluginError] { damaged.withLock { $0.sorted { $0.key < $1.key }.map(\.value) } }

    // MARK: Keep

    /// Keeps a copy of a staged module and of its libraries. If the version is already kept, only its time is updated.
    ///
    /// - Parameters:
    ///   - folder: The plugins folder that the module comes from.
    ///   - needed: A version that is not removed, whatever the limits.
    /// - Throws: `unreadable` if the version cannot be kept.
    func keep(
        _ staged: StagedFile, module: String, version: SemanticVersion, folder: String,
        sparing needed: KeptVersion? = nil
    ) throws(PluginError) {
        let sources = [staged.path] + staged.libraryCopies
        let origin = staged.path.parentFolder
        try changing("\(module) \(version) cannot be kept") { root throws(POSIXError) in
            var files = try sources.map { path throws(POSIXError) in try KeptVersion.File(at: path, from: origin) }
            // The copy may have a different name from the original.
            files[0].path = staged.original.fileName
            try put(files, module, version, folder.withoutLinks, root, needed) { number, copy throws(POSIXError) in
                try Self.copy(sources[number], to: copy)
            }
        }
    }

    /// Keeps a copy of the file that a module has in a plugins folder. If that is a link, the file that it leads to is
    /// copied.
    ///
    /// - Parameters:
    ///   - original: The path that the file had in the plugins folder; `nil` for its present path.
    ///   - needed: A version that is not removed, whatever the limits.
    /// - Throws: `unreadable` if the version cannot be kept.
    func keep(
        file path: String, as original: String? = nil, module: String, version: SemanticVersion, folder: String,
        sparing needed: KeptVersion? = nil
    ) throws(PluginError) {
        try changing("\(original ?? path) cannot be moved to the kept versions") { root throws(POSIXError) in
            let folder = folder.withoutLinks
            var file = try KeptVersion.File(at: path, from: path.parentFolder)
            if let original { file.path = original.fileName }
            let versions = entries(of: module, from: folder, root)
            // If the version is already kept, perhaps with libraries, only its time is updated.
            if let known = versions.first(where: { $0.digest == file.digest && $0.isWhole }) {
                let files = [file] + known.files.dropFirst()
                try KeptVersion.describe(
                    module, version, from: folder, files, after: versions.first?.stamp, in: known.path)
            } else {
                try put([file], module, version, folder, root, needed) { _, copy throws(POSIXError) in
                    try Self.copy(path, to: copy)
                }
            }
        }
    }

    /// Creates an entry, or updates the time of an existing one.
    private func put(
        _ files: [KeptVersion.File], _ module: String, _ version: SemanticVersion, _ folder: String, _ root: String,
        _ needed: KeptVersion?, _ fill: (_ number: Int, _ copy: String) throws(POSIXError) -> Void
    ) throws(POSIXError) {
        let home = Self.home(of: module, from: folder, root)
        try Self.makeFolder(home)
        var digest = FileDigest(size: files.count)
        for file in files { digest.mix(file.digest) }
        let entry = "\(home)/\(Self.hex(digest.value))"
        let last = entries(of: module, from: folder, root).first?.stamp
        if let known = try? KeptVersion(at: entry, of: module, from: folder, checksTrust), known.isWhole {
            try KeptVersion.describe(module, version, from: folder, files, after: last, in: entry)
        } else {
            let new = "\(home)/.new"
            try? FileManager.default.removeItem(atPath: new)
            try Self.makeFolder(new)
            do throws(POSIXError) {
                for number in files.indices { try fill(number, "\(new)/\(number)") }
                try KeptVersion.describe(module, version, from: folder, files, after: last, in: new)
            } catch {
                try? FileManager.default.removeItem(atPath: new)
                throw error
            }
            // An existing entry is damaged. It is removed first, since a folder can only be renamed over an empty one.
            try Self.remove(entry, in: home)
            guard rename(new, entry) == 0 else { throw .current }
            try synchronize(folder: home)
        }
        damaged.withLock { $0[entry] = nil }
        prune(root, home, adding: files.reduce(0) { $0 + $1.size }, sparing: needed?.path)
    }

    // MARK: Look up and restore

    /// Returns the kept versions of a module, whatever folder they came from, the most recently kept first.
    func versions(of module: String) -> [KeptVersion] {
        guard let root, isTrusted(root) else { return [] }
        return Self.names(in: root).filter { $0.hasPrefix("\(module.prefix(100))-") }
            .flatMap { entries(in: "\(root)/\($0)", of: module, from: nil) }
            .sorted { ($0.stamp, $0.path) > ($1.stamp, $1.path) }
    }

    /// Returns the reasons why versions of a module are left out, one error for each version.
    func leftOut(of module: String) -> [PluginError] {
        guard let root else { return [] }
        return Self.names(in: root).filter { $0.dropLast(17).elementsEqual(module.prefix(100)) }.flatMap { home in
            Self.names(in: "\(root)/\(home)").compactMap { name in
                for folder in [root, "\(root)/\(home)"] where !isTrusted(folder) {
                    return damaged.withLock { $0[folder] }
                }
                do throws(PluginError) {
                    _ = try KeptVersion(at: "\(root)/\(home)/\(name)", of: module, from: nil, checksTrust)
                    return nil
                } catch {
                    return error
                }
            }
        }
    }

    private static func names(in folder: String) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.filter { !$0.hasPrefix(".") }.sorted()
    }

    /// Restores a version in a plugins folder under its original file name, replacing a file of that name. Its
    /// libraries are restored first, unless they already exist with the same content. Each file is written atomically.
    ///
    /// - Throws: `unreadable` if the version is damaged or cannot be written; the module's file is then unchanged.
    func restore(_ kept: KeptVersion, to folder: String) throws(PluginError) {
        let what = "\(kept.module) \(kept.version) cannot be put into \(folder)"
        try changing(what, damage: kept.path) { _ throws(POSIXError) in
            for number in kept.files.indices.dropFirst() + [0] {
                let file = kept.files[number]
                let target = "\(folder)/\(file.path)"
                // An identical library is not replaced, since other modules may use it.
                if number > 0, (try? KeptVersion.File(at: target, from: folder))?.digest == file.digest { continue }
                try Self.restore("\(kept.path)/\(number)", file, as: target)
            }
        }
    }

    private static func restore(_ copy: String, _ file: KeptVersion.File, as target: String) throws(POSIXError) {
        let folder = target.parentFolder
        if mkdir(folder, 0o755) != 0, errno != EEXIST { throw .current }
        // The name is hidden, so that no host scans the file, and always the same, so that a leftover file is reused.
        let new = "\(folder)/.pluginhost-\(hex(file.digest)).new"
        unlink(new)
        do throws(POSIXError) {
            try Self.copy(copy, to: new)
            guard try KeptVersion.File(at: new, from: folder).digest == file.digest else { throw POSIXError(.EBADMSG) }
            guard chmod(new, 0o755) == 0, rename(new, target) == 0 else { throw .current }
        } catch {
            unlink(new)
            throw error
        }
        try synchronize(folder: folder)
    }

    // MARK: Entries

    private func entries(of module: String, from folder: String, _ root: String) -> [KeptVersion] {
        entries(in: Self.home(of: module, from: folder, root), of: module, from: folder)
    }

    /// Returns whether no other user can write in a folder of the store. If one can, an error is added to ``problems``.
    private func isTrusted(_ folder: String) -> Bool {
        var status = stat()
        guard checksTrust, lstat(folder, &status) == 0 else { return true }
        do throws(PluginError) {
            try Trust.check(folder: folder)
            damaged.withLock { $0[folder] = nil }
            return true
        } catch {
            damaged.withLock { $0[folder] = Self.untrusted(error) }
            return false
        }
    }

    private static func untrusted(_ error: PluginError) -> PluginError {
        PluginError(error.code, "The kept versions are not used: \(error.message)")
    }

    /// Returns the valid entries in a folder of the store, the most recently kept first.
    private func entries(in home: String, of module: String?, from folder: String?) -> [KeptVersion] {
        guard isTrusted(home) else { return [] }
        let versions = Self.names(in: home).compactMap { name -> KeptVersion? in
            do throws(PluginError) {
                return try KeptVersion(at: "\(home)/\(name)", of: module, from: folder, checksTrust)
            } catch {
                damaged.withLock { $0["\(home)/\(name)"] = error }
                return nil
            }
        }
        return versions.sorted { ($0.stamp, $0.path) > ($1.stamp, $1.path) }
    }

    /// Returns the folder for a module's versions. The module's name is shortened in it, since it can be longer than a
    /// file name.
    private static func home(of module: String, from folder: String, _ root: String) -> String {
        var digest = FileDigest(size: 0)
        Array("\(folder)\0\(module)".utf8).withUnsafeBytes { digest.mix($0) }
        return "\(root)/\(module.prefix(100))-\(hex(digest.value))"
    }

    /// Removes the oldest versions beyond the limits, and entries that were being created or removed when a host was
    /// killed. All modules are checked only from time to time, and when the store may have become too large.
    private func prune(_ root: String, _ home: String, adding bytes: Int, sparing needed: String?) {
        _ = prune(home: home, sparing: needed)
        let isDue = census.withLock { census in
            guard let known = census, known.additions < 100, known.bytes + bytes <= limit.bytes else { return true }
            census = (known.bytes + bytes, known.additions + 1)
            return false
        }
        guard isDue else { return }
        let homes = ((try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []).filter { $0 != "lock" }
        let versions = homes.map { prune(home: "\(root)/\($0)", sparing: needed) }
        var total = versions.joined().reduce(0) { $0 + $1.bytes }
        let dispensable = versions.flatMap { $0.dropFirst() }.filter { $0.path != needed }
        for version in dispensable.sorted(by: { $0.stamp < $1.stamp }) where total > limit.bytes {
            try? Self.remove(version.path, in: version.path.parentFolder)
            total -= version.bytes
        }
        census.withLock { $0 = (total, 0) }
    }

    /// Removes the surplus versions of one module. Returns the others, the most recently kept first.
    private func prune(home: String, sparing needed: String?) -> [KeptVersion] {
        for name in [".new", ".old"] { try? FileManager.default.removeItem(atPath: "\(home)/\(name)") }
        let versions = entries(in: home, of: nil, from: nil)
        let surplus = versions.dropFirst(max(1, limit.versions)).filter { $0.path != needed }
        for version in surplus { try? Self.remove(version.path, in: home) }
        return versions.filter { !surplus.contains($0) }
    }

    /// Removes an entry. It is renamed first, so that no host sees a part of it.
    private static func remove(_ entry: String, in home: String) throws(POSIXError) {
        let old = "\(home)/.old"
        try? FileManager.default.removeItem(atPath: old)
        guard rename(entry, old) == 0 || errno == ENOENT else { throw .current }
        try? FileManager.default.removeItem(atPath: old)
    }

    // MARK: Files

    /// Runs a change while no other host changes the store.
    ///
    /// - Parameters:
    ///   - what: What cannot be done if the change fails, for the error message.
    ///   - entry: The entry that is damaged if the change fails with `EBADMSG`.
    private func changing(
        _ what: String, damage entry: String = "", _ body: (_ root: String) throws(POSIXError) -> Void
    ) throws(PluginError) {
        guard let root else {
            throw PluginError(
                .unreadable,
                "\(what): neither XDG_STATE_HOME nor HOME is an absolute path. Set one of them, or a state folder.")
        }
        // Errors of the store itself name the store, not the version.
        var subject = root
        do throws(POSIXError) {
            try Self.makeFolder(root)
            if !isTrusted(root) { throw POSIXError(.EPERM) }
            subject = "\(root)/lock"
            let lock = open(subject, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard lock >= 0 else { throw .current }
            defer { close(lock) }
            var attempts = 0
            while flock(lock, LOCK_EX | LOCK_NB) != 0 {
                attempts += 1
                guard errno == EWOULDBLOCK || errno == EINTR, attempts < 1000 else { throw .current }
                usleep(10_000)
            }
            subject = ""
            try body(root)
        } catch {
            let code = error.code.rawValue
            if let problem = damaged.withLock({ $0[root] }) {
                throw PluginError(problem.code, "\(what). \(problem.message)")
            }
            guard error.code != .EBADMSG else {
                throw PluginError(
                    .unreadable,
                    "\(what): its copy in the store, \(entry), is damaged: its content has changed since it was kept. "
                        + "Remove that folder and put another version back, or copy the module into the plugins folder "
                        + "again.")
            }
            let advice =
                switch error.code {
                case .ENOSPC, .EDQUOT: " Make room, or keep fewer versions."
                case .EWOULDBLOCK: " Another host has been changing the store for ten seconds."
                default: ""
                }
            let reason = subject.isEmpty ? describe(errno: code) : "\(subject): \(describe(errno: code))"
            throw PluginError(.unreadable, "\(what): \(reason).\(advice)")
        }
    }
}
