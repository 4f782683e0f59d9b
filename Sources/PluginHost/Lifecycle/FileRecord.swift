import Foundation
import PluginABI

/// What the host knows of one file in a plugins folder.
struct FileRecord {
    let path: String
    let folder: String
    /// Which content this is about; nil when the file could not even be looked at.
    var identity: FileIdentity?
    var state: State
    var since = Date()

    /// A change on disk that has been reported, and that a file in use does not follow.
    var reported: Reported?

    enum Reported: Equatable {
        /// Not told yet: somebody writes the file.
        case beingWritten
        case changed(FileIdentity)
        case deleted
    }

    enum State {
        /// Somebody writes it; it is taken when it is whole.
        case beingWritten
        case failed(PluginError)
        case quarantined(PluginError)
        /// It is a module; which file of the module serves is not decided yet.
        case loaded(LoadedModule)
        /// Another file of the same module serves.
        case superseded(LoadedModule, by: String)
        case active(Generation, LoadedModule)
        /// No module, but a library that one finds beside itself.
        case library(of: String)
        /// The host has been shut down.
        case retired(LoadedModule)
    }

    /// Whether a change of the file is a reason to look at it again.
    var isIdle: Bool { if case .active = state { false } else { true } }

    /// Whether somebody writes the file, so that it has to be looked at again.
    var isAwaited: Bool {
        if case .beingWritten = state { return true }
        return reported == .beingWritten
    }

    /// Whether both are about one file that was not written in between.
    func hasContent(of other: FileRecord) -> Bool {
        guard let identity, let other = other.identity else { return identity == other.identity }
        return identity.inode == other.inode && identity.device == other.device && identity.size == other.size
            && identity.modified == other.modified
    }

    var isFailure: Bool {
        switch state {
        case .failed, .quarantined: true
        default: false
        }
    }

    var generation: Generation? { if case .active(let generation, _) = state { generation } else { nil } }

    /// The module in the file, if it could be loaded.
    var module: LoadedModule? {
        switch state {
        case .loaded(let module), .active(_, let module), .superseded(let module, _), .retired(let module): module
        case .beingWritten, .failed, .quarantined, .library: nil
        }
    }
}

extension FileRecord {
    var status: ModuleStatus {
        var status = ModuleStatus(state: "", file: path, since: since)
        if let manifest = module?.manifest {
            status.name = manifest.name
            status.version = manifest.version.description
            status.targets = manifest.targets.map(\.name)
        }
        switch state {
        case .beingWritten:
            status.state = "waiting"
            status.error = PluginError(.unreadable, "\(path) is being written; it is taken when its writer closes it.")
        case .failed(let error): (status.state, status.error) = ("failed", error)
        case .quarantined(let error): (status.state, status.error) = ("quarantined", error)
        case .loaded: status.state = "loaded"
        case .superseded(_, let other):
            status.state = "superseded"
            status.note = "\(other) serves"
        case .active(let generation, _):
            status.state = "active"
            status.generation = generation.number
        case .library(let owner):
            status.state = "library"
            status.note = "needed by \(owner)"
        case .retired: status.state = "retired"
        }
        switch reported {
        case .changed: status.note = "the file has changed since it was loaded"
        case .deleted: status.note = "the file is gone"
        case .beingWritten, nil: break
        }
        return status
    }
}
