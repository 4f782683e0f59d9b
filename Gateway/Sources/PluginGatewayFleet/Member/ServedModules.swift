import Foundation
import PluginHost
import Synchronization

/// What a host serves, with the digests of the files that it was loaded from.
final class ServedModules: Sendable {
    /// A module that serves.
    struct Served: Sendable {
        var record: HostRecord.Module
        /// The path in the plugins folder; another text for a module without a file there.
        var path: String
    }

    private let host: PluginHost
    /// Identifies the content of a file without reading it: a generation never changes, and a rewritten file has
    /// another status.
    private struct Content: Hashable {
        var generation: Int?
        var path = ""
        var size: UInt64?
        var modified: Date?
        var number: Int?
    }

    private let digests = Mutex<[Content: String]>([:])

    init(_ host: PluginHost) { self.host = host }

    /// Returns the modules that were loaded from files. Reads the files of new ones.
    func all() -> [Served] {
        let modules = host.modules.filter { $0.state == .active || $0.state == .registered }
        let served = modules.compactMap(served)
        let present = Set(modules.map(content))
        digests.withLock { digests in digests = digests.filter { present.contains($0.key) } }
        return served
    }

    /// Returns a module that serves.
    func named(_ name: String) -> Served? {
        host.modules.first { $0.name == name && ($0.state == .active || $0.state == .registered) }.flatMap(served)
    }

    private func served(_ status: ModuleStatus) -> Served? {
        guard let name = status.name, let version = status.version, status.file.hasPrefix("/"),
            ModuleRelease.isModule(name), ModuleRelease.isVersion(version), let digest = digest(of: status, name)
        else { return nil }
        return Served(
            record: HostRecord.Module(
                name: name, release: ModuleRelease(version: version, digest: digest, file: nil),
                generation: status.generation ?? 0), path: status.file)
    }

    private func digest(of status: ModuleStatus, _ name: String) -> String? {
        let content = content(status)
        if let known = digests.withLock({ $0[content] }) { return known }
        // The copy that was opened, since the file may have changed in the meantime.
        let copy = status.generation == nil ? nil : (try? host.servedManifest(of: name))?.copy
        guard let digest = try? ModuleFiles.digest(copy ?? status.file) else { return nil }
        digests.withLock { $0[content] = digest }
        return digest
    }

    private func content(_ status: ModuleStatus) -> Content {
        if let generation = status.generation { return Content(generation: generation) }
        let attributes = try? FileManager.default.attributesOfItem(atPath: status.file)
        return Content(
            path: status.file, size: attributes?[.size] as? UInt64, modified: attributes?[.modificationDate] as? Date,
            number: attributes?[.systemFileNumber] as? Int)
    }
}
