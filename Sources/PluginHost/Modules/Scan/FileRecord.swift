import Foundation
import PluginABI
import PluginFile

/// What the host knows of one file in a plugins folder. Of many files most hold a module: what the others have to say
/// takes memory of its own, so that a record is small.
struct FileRecord {
    let path: String
    let folder: String
    /// Which content this is about; nil when the file could not even be looked at.
    var identity: FileIdentity? { didSet { isFleeting = identity?.isRecent == true } }
    /// Whether the file may have changed since without showing it.
    private(set) var isFleeting = false
    private(set) var content: Content
    /// Since when its content, and what was decided about it, are what they are.
    private(set) var since = Date()

    enum Content: Sendable {
        /// Somebody writes it; it is taken when it is whole. With what it held before.
        case beingWritten(over: Loaded? = nil)
        /// With the module in it, if it came so far.
        indirect case failed(PluginError, LoadedModule?)
        indirect case quarantined(PluginError)
        /// No module, but a library that one finds beside itself.
        case library(of: String)
        case module(Loaded)
    }

    /// A module in a file, and what the last change decided about it.
    struct Loaded: Sendable {
        let module: LoadedModule
        var verdict = Verdict.undecided
    }

    /// What becomes of a file that holds a module.
    enum Verdict: Sendable, Equatable {
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

    init(path: String, folder: String, identity: FileIdentity?, content: Content = .beingWritten()) {
        (self.path, self.folder, self.identity, self.content) = (path, folder, identity, content)
    }

    /// The same file with other content, from now on.
    func with(_ content: Content) -> FileRecord {
        var record = self
        (record.content, record.since) = (content, Date())
        return record
    }

    /// The same file, of which something else is decided from now on; nil if that is decided already, or it holds no module.
    func decided(_ verdict: Verdict) -> FileRecord? {
        guard case .module(var loaded) = content, loaded.verdict != verdict else { return nil }
        loaded.verdict = verdict
        return with(.module(loaded))
    }

    /// The same module, after somebody has begun to write the file, or has written it again.
    mutating func keepModule(_ loaded: Loaded, isBeingWritten: Bool) {
        content = isBeingWritten ? .beingWritten(over: loaded) : .module(loaded)
    }

    var fileName: String { (path as NSString).lastPathComponent }

    /// Whether somebody writes the file, so that it has to be looked at again.
    var isAwaited: Bool { if case .beingWritten = content { true } else { false } }

    /// The module that it holds, or held when somebody began to write it.
    var loaded: Loaded? {
        switch content {
        case .module(let loaded), .beingWritten(over: let loaded?): loaded
        default: nil
        }
    }

    /// The module in the file, if it can be served.
    var module: LoadedModule? { if case .module(let loaded) = content { loaded.module } else { nil } }

    /// The module whose name stands in the file, even if it failed.
    var claimedModule: LoadedModule? { if case .failed(_, let module) = content { module } else { module } }

    /// What was decided about the module in it.
    var verdict: Verdict { if case .module(let loaded) = content { loaded.verdict } else { .undecided } }

    /// Whether both are about one file that was not written in between.
    func hasContent(of other: FileRecord) -> Bool {
        guard let identity, let other = other.identity else { return identity == other.identity }
        return identity.inode == other.inode && identity.device == other.device && identity.size == other.size
            && identity.modified == other.modified
    }

    /// Why its module, or whatever else it holds, is not served.
    var error: PluginError? {
        switch content {
        case .failed(let error, _), .quarantined(let error): error
        case .beingWritten:
            PluginError(.unreadable, "\(path) is being written; it is taken when its writer closes it.")
        case .library: nil
        case .module(let loaded): loaded.verdict.error
        }
    }

    var isFailure: Bool {
        switch content {
        case .failed, .quarantined: true
        case .module(let loaded): loaded.verdict.isRefusal
        case .beingWritten, .library: false
        }
    }
}

extension FileRecord.Verdict {
    /// Why the module does not serve, if it is to blame or wants for something.
    var error: PluginError? {
        switch self {
        case .waits(let error), .refused(let error): error
        case .undecided, .serves, .superseded, .ended: nil
        }
    }

    var isRefusal: Bool { if case .refused = self { true } else { false } }
}

extension FileRecord {
    /// - Parameter served: What serves and came from this path, even if the file holds something else by now.
    func status(_ served: Served?) -> ModuleStatus {
        let manifest = served?.module.manifest ?? claimedModule?.manifest
        var status = ModuleStatus(
            served == nil ? state : .active, file: path, since: served?.since ?? since, manifest, served?.generation)
        status.error = error
        switch content {
        case .module(let loaded):
            if case .superseded(let other) = loaded.verdict { status.note = "\(other) serves" }
        case .library(let owner): status.note = "needed by \(owner)"
        default: break
        }
        if let served, status.error != nil || module !== served.module {
            status.note = "the file has changed since it was loaded, and its new content is not served"
        }
        return status
    }

    private var state: ModuleStatus.State {
        switch content {
        case .beingWritten: .waiting
        case .failed: .failed
        case .quarantined: .quarantined
        case .library: .library
        case .module(let loaded):
            switch loaded.verdict {
            case .undecided: .loaded
            case .serves: .active
            case .superseded: .superseded
            case .waits: .waiting
            case .refused: .failed
            case .ended: .retired
            }
        }
    }

    /// What is to be told of a file about which something else was decided.
    var verdictChange: HostChange? {
        switch verdict {
        case .superseded: .superseded(status(nil))
        case .waits: .waiting(status(nil))
        case .refused: .failed(status(nil))
        case .undecided, .serves, .ended: nil
        }
    }
}
