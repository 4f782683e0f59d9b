import CDispatch
import Foundation
import Glibc
import PluginABI
import PluginFile
import Synchronization

/// Keeps versions of modules, so that one that was replaced or removed can be put back into its plugins folder: by module
/// and folder, the last few, and not more than so many bytes in all.
///
/// It lies in `versions` in the state folder, for this user alone, and is shared by all hosts of the user: each change
/// holds a lock, and a version gets its name when it is whole, so that a host that is killed leaves no half one. Versions
/// are copies: a file that is mapped anywhere never shares its content with one that somebody could reach in the store.
/// What others than this user and root could have written, in it or on the way to it, is not used.
/// All functions may be called from any thread.
final class VersionStore: Sendable {
    /// At least the last version of each module is kept.
    struct Limit: Sendable {
        /// Of each module.
        var versions = 5
        /// In all.
        var bytes = 1 << 30
    }

    private let root: String?
    private let limit: Limit
    private let checksTrust: Bool
    /// How many bytes there were about when all was looked at last, and have come since; and how often some came.
    private let census = Mutex<(bytes: Int, additions: Int)?>(nil)
    /// By the path of what is damaged.
    private let damaged = Mutex<[String: PluginError]>([:])

    /// - Parameters:
    ///   - stateFolder: Made where it is missing; nil for the default, `$XDG_STATE_HOME/pluginhost` or
    ///     `$HOME/.local/state/pluginhost`.
    ///   - checksTrust: Whether to refuse what others could have written.
    init(stateFolder: String?, limit: Limit = Limit(), checksTrust: Bool = true) {
        self.checksTrust = checksTrust
        root = (stateFolder ?? Journal.defaultFolder).map { "\($0)/versions" }
        self.limit = limit
    }

    /// What is damaged in the store, as far as it has been seen.
    var problems: [PluginError] { damaged.withLock { $0.sorted { $0.key < $1.key }.map(\.value) } }

    // MARK: Keep

    /// Keeps a copy of a module that was staged, and of the libraries that came with it. One that is kept already
    /// only gets a new time.
    ///
    /// - Parameters:
    ///   - folder: The plugins folder that it is from.
    ///   - needed: A version that stays, whatever the limits say.
    /// - Throws: `unreadable` if it cannot be kept.
    func keep(
        _ staged: StagedFile, module: String, version: SemanticVersion, folder: String,
        sparing needed: KeptVersion? = nil
    ) throws(PluginError) {
        let sources = [staged.path] + staged.libraryCopies
        let origin = (staged.path as NSString).deletingLastPathComponent
        try changing("\(module) \(version) cannot be kept") { root throws(POSIXError) in
            var files = try sources.map { path throws(POSIXError) in try KeptVersion.File(at: path, from: origin) }
            // The copy may have another name.
            files[0].path = (staged.original as NSString).lastPathComponent
            try put(files, module, version, Self.resolved(folder), root, needed) { number, copy throws(POSIXError) in
                try Self.copy(sources[number], to: copy)
            }
        }
    }

    /// Keeps a copy of a file of a module in a plugins folder; of a link, what it leads to.
    ///
    /// - Parameter needed: A version that stays, whatever the limits say.
    /// - Throws: `unreadable` if it cannot be kept.
    func keep(
        file path: String, module: String, version: SemanticVersion, folder: String, sparing needed: KeptVersion? = nil
    ) throws(PluginError) {
        try changing("\(path) cannot be moved to the kept versions") { root throws(POSIXError) in
            let folder = Self.resolved(folder)
            let file = try KeptVersion.File(at: path, from: (path as NSString).deletingLastPathComponent)
            let versions = entries(of: module, from: folder, root)
            // Kept already, perhaps with libraries: only its time is new.
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

    /// Makes an entry, or gives a new time to the one that is there.
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
            // What is there is damaged; a folder is only renamed over an empty one.
            try Self.remove(entry, in: home)
            guard rename(new, entry) == 0 else { throw .current }
            try synchronize(folder: home)
        }
        damaged.withLock { $0[entry] = nil }
        prune(root, home, adding: files.reduce(0) { $0 + $1.size }, sparing: needed?.path)
    }

    // MARK: Ask and restore

    /// The versions of a module that came from a plugins folder, the newest first. What is damaged is left out, and
    /// ``problems`` says so.
    func versions(of module: String, folder: String) -> [KeptVersion] {
        root.map { entries(of: module, from: Self.resolved(folder), $0) } ?? []
    }

    /// The versions of a module, from whatever folder, the newest first.
    func versions(of module: String) -> [KeptVersion] {
        guard let root, isTrusted(root), let homes = try? FileManager.default.contentsOfDirectory(atPath: root) else {
            return []
        }
        return homes.filter { $0.hasPrefix("\(module.prefix(100))-") }
            .flatMap { entries(in: "\(root)/\($0)", of: module, from: nil) }
            .sorted { ($0.stamp, $0.path) > ($1.stamp, $1.path) }
    }

    /// Why versions of a module are left out, one error for each.
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

    /// Puts a version into a plugins folder, under the name that it had, in the place of what has that name now: the
    /// libraries that came with it first, as far as they are not there, each at once.
    ///
    /// - Throws: `unreadable` if it is damaged, or cannot be written; then the module is as it was.
    func restore(_ kept: KeptVersion, to folder: String) throws(PluginError) {
        let what = "\(kept.module) \(kept.version) cannot be put into \(folder)"
        try changing(what, damage: kept.path) { _ throws(POSIXError) in
            for number in kept.files.indices.dropFirst() + [0] {
                let file = kept.files[number]
                let target = "\(folder)/\(file.path)"
                // A library that others may use is left alone where it is the same.
                if number > 0, (try? KeptVersion.File(at: target, from: folder))?.digest == file.digest { continue }
                try Self.restore("\(kept.path)/\(number)", file, as: target)
            }
        }
    }

    private static func restore(_ copy: String, _ file: KeptVersion.File, as target: String) throws(POSIXError) {
        let folder = (target as NSString).deletingLastPathComponent
        if mkdir(folder, 0o755) != 0, errno != EEXIST { throw .current }
        // Hidden, so that no host looks at it; the same name each time, so that one that is left is used again.
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

    // MARK: What lies where

    private func entries(of module: String, from folder: String, _ root: String) -> [KeptVersion] {
        entries(in: Self.home(of: module, from: folder, root), of: module, from: folder)
    }

    /// Whether nobody else could have written in a folder of the store; ``problems`` says who could.
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

    /// The newest first.
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

    /// The folder of a module's versions. Names of modules can be longer than names of files.
    private static func home(of module: String, from folder: String, _ root: String) -> String {
        var digest = FileDigest(size: 0)
        Array("\(folder)\0\(module)".utf8).withUnsafeBytes { digest.mix($0) }
        return "\(root)/\(module.prefix(100))-\(hex(digest.value))"
    }

    /// Removes the oldest versions beyond the limits, and what was being made or removed when a host was killed. All modules
    /// are looked at now and then, and where there may be too many bytes.
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
            try? Self.remove(version.path, in: (version.path as NSString).deletingLastPathComponent)
            total -= version.bytes
        }
        census.withLock { $0 = (total, 0) }
    }

    /// Removes what is too many of one module. Returns the others, the newest first.
    private func prune(home: String, sparing needed: String?) -> [KeptVersion] {
        for name in [".new", ".old"] { try? FileManager.default.removeItem(atPath: "\(home)/\(name)") }
        let versions = entries(in: home, of: nil, from: nil)
        let surplus = versions.dropFirst(max(1, limit.versions)).filter { $0.path != needed }
        for version in surplus { try? Self.remove(version.path, in: home) }
        return versions.filter { !surplus.contains($0) }
    }

    /// Removes an entry: first its name, so that nobody sees a part of it.
    private static func remove(_ entry: String, in home: String) throws(POSIXError) {
        let old = "\(home)/.old"
        try? FileManager.default.removeItem(atPath: old)
        guard rename(entry, old) == 0 || errno == ENOENT else { throw .current }
        try? FileManager.default.removeItem(atPath: old)
    }

    // MARK: Files

    /// Runs a change while no other host makes one.
    ///
    /// - Parameter entry: The version that is damaged where the change ends with `EBADMSG`.
    private func changing(
        _ what: String, damage entry: String = "", _ body: (_ root: String) throws(POSIXError) -> Void
    ) throws(PluginError) {
        guard let root else {
            throw PluginError(
                .unreadable,
                "\(what): neither XDG_STATE_HOME nor HOME is an absolute path. Set one of them, or a state folder.")
        }
        // What the store itself refuses is not the fault of what is to be changed.
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
                    "\(what): its copy in the store, \(entry), is damaged: it is not what was kept. Remove that folder, "
                        + "and put another version back, or copy the module into the plugins folder again.")
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
