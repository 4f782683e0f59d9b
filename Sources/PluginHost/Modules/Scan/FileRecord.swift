import Foundation
import PluginABI

/// What the host knows of one file in a plugins folder. Of many files most hold a module: what the others have to say
/// takes memory of its own, so that a record is small.
struct FileRecord {
    let path: String
    let folder: String
    /// Which content this is about; nil when the file could not even be looked at.
    var identity: FileIdentity? { didSet { isFleeting = identity?.isRecent == true } }
    /// Whether the file may have changed since without showing it.
    private(set) var isFleeting = false
    var content: Content
    /// What the last change decided about it.
    var verdict = Verdict.undecided
    /// Since when content and verdict are what they are.
    var since = Date()

    enum Content {
        /// Somebody writes it; it is taken when it is whole. With the module that it held before.
        case beingWritten(LoadedModule? = nil)
        /// With the module in it, if it came so far.
        indirect case failed(PluginError, LoadedModule?)
        indirect case quarantined(PluginError)
        /// No module, but a library that one finds beside itself.
        case library(of: String)
        case module(LoadedModule)
    }

    /// What becomes of a file that holds a module.
    enum Verdict {
        case undecided
        case serves
        /// Another file of the same module serves.
        case superseded(by: String)
        /// Something that it requires is not there.
        indirect case waits(PluginError)
        /// What it claims belongs to another one.
        indirect case refused(PluginError)
        /// The host has been shut down.
        case ended
    }

    var fileName: String { (path as NSString).lastPathComponent }

    /// Whether somebody writes the file, so that it has to be looked at again.
    var isAwaited: Bool { if case .beingWritten = content { true } else { false } }

    /// The module that was in the file when somebody began to write it.
    var moduleBeforeWriting: LoadedModule? { if case .beingWritten(let module) = content { module } else { nil } }

    /// The module in the file, if it can be served.
    var module: LoadedModule? { if case .module(let module) = content { module } else { nil } }

    /// The module whose name stands in the file, even if it failed.
    var claimedModule: LoadedModule? { if case .failed(_, let module) = content { module } else { module } }

    /// Whether both are about one file that was not written in between.
    func hasContent(of other: FileRecord) -> Bool {
        guard let identity, let other = other.identity else { return identity == other.identity }
        return identity.inode == other.inode && identity.device == other.device && identity.size == other.size
            && identity.modified == other.modified
    }

    /// Why its module, or whatever else it holds, is not served.
    var error: PluginError? {
        switch (content, verdict) {
        case (.failed(let error, _), _), (.quarantined(let error), _): error
        case (.module, .waits(let error)), (.module, .refused(let error)): error
        case (.beingWritten, _):
            PluginError(.unreadable, "\(path) is being written; it is taken when its writer closes it.")
        default: nil
        }
    }

    var isFailure: Bool {
        switch content {
        case .failed, .quarantined: true
        case .module: if case .refused = verdict { true } else { false }
        case .beingWritten, .library: false
        }
    }
}

extension FileRecord {
    /// - Parameter served: What serves and came from this path, even if the file holds something else by now.
    func status(_ served: Served?) -> ModuleStatus {
        var status = ModuleStatus(state: state, file: path, since: since)
        status.error = error
        if let manifest = served?.module.manifest ?? claimedModule?.manifest {
            status.name = manifest.name
            status.version = manifest.version.description
            status.targets = manifest.targets.map(\.name)
            status.interceptors = manifest.interceptors.map(\.name)
        }
        switch (content, verdict) {
        case (.module, .superseded(let other)): status.note = "\(other) serves"
        case (.library(let owner), _): status.note = "needed by \(owner)"
        default: break
        }
        if let served {
            status.state = .active
            status.since = served.since
            status.generation = served.generation.number
            if status.error != nil || module !== served.module {
                status.note = "the file has changed since it was loaded, and its new content is not served"
            }
        }
        return status
    }

    private var state: ModuleStatus.State {
        switch content {
        case .beingWritten: .waiting
        case .failed: .failed
        case .quarantined: .quarantined
        case .library: .library
        case .module:
            switch verdict {
            case .undecided: .loaded
            case .serves: .active
            case .superseded: .superseded
            case .waits: .waiting
            case .refused: .failed
            case .ended: .retired
            }
        }
    }
}

/// What serves of a module: a generation, and the file that it came from.
struct Served {
    let generation: Generation
    let module: LoadedModule
    /// Follows the file when that is renamed.
    var path: String
    let since: Date

    var name: String { module.manifest.name }
}

extension Served {
    /// Of what goes on although its file is gone: its successor has failed.
    var statusWithoutFile: ModuleStatus {
        var status = ModuleStatus(state: .active, file: path, since: since)
        let manifest = module.manifest
        (status.name, status.version) = (manifest.name, manifest.version.description)
        status.targets = manifest.targets.map(\.name)
        status.generation = generation.number
        status.note = "the file is gone, and what came in its place cannot be served"
        return status
    }
}
