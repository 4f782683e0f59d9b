import FoundationEssentials
import PluginABI
import PluginFile

/// The host's record of one file in a plugins folder. Records are copied often, so a record is a reference to fields
/// that do not change.
struct FileRecord: Sendable {
    private final class Fields: Sendable {
        let path: String
        let folder: String
        let identity: FileIdentity?
        let isFleeting: Bool
        let content: Content
        let since: Date
        let isUnsettled: Bool

        init(
            _ path: String, _ folder: String, _ identity: FileIdentity?, isFleeting: Bool, _ content: Content,
            since: Date
        ) {
            (self.path, self.folder, self.identity, self.isFleeting) = (path, folder, identity, isFleeting)
            (self.content, self.since, isUnsettled) = (content, since, content.isUnsettled)
        }
    }

    private var fields: Fields

    var path: String { fields.path }
    var folder: String { fields.folder }
    /// The identity of the content that the record describes; `nil` if the file could not be examined.
    var identity: FileIdentity? {
        get { fields.identity }
        set {
            fields = Fields(
                path, folder, newValue, isFleeting: newValue?.isRecent == true, content, since: since)
        }
    }
    /// Whether the file was changed so recently that a further change might have left its identity unchanged.
    var isFleeting: Bool { fields.isFleeting }
    var content: Content { fields.content }
    /// The time when the content or the verdict on it last changed.
    var since: Date { fields.since }

    enum Content: Sendable {
        /// The file is being written and is loaded when it is complete. Carries the module that it contained before.
        case beingWritten(over: Loaded? = nil)
        /// Loading or starting failed. Carries the module if the file could be loaded.
        indirect case failed(PluginError, LoadedModule?)
        /// Carries the paths of the libraries that the file finds beside itself.
        indirect case quarantined(PluginError, libraries: [String])
        /// The file is not a module, but a library that a module finds through `$ORIGIN`.
        case library(of: String)
        case module(Loaded)
    }

    /// A module in a file, and the last verdict on it.
    struct Loaded: Sendable {
        let module: LoadedModule
        var verdict = Verdict.undecided
    }

    /// The decision about a file that contains a module.
    enum Verdict: Sendable, Equatable {
        case undecided
        case serves
        /// Another file of the same module serves.
        case superseded(by: String)
        /// The module has an unmet requirement.
        indirect case waits(PluginError)
        /// A hook of the module, or of one that it requires, has not returned yet.
        indirect case starts(PluginError)
        /// The module claims a name that belongs to another module.
        indirect case refused(PluginError)
        /// The host has been shut down.
        case ended
    }

    init(path: String, folder: String, identity: FileIdentity?, content: Content = .beingWritten()) {
        fields = Fields(path, folder, identity, isFleeting: false, content, since: Date())
    }

    /// Returns a record of the same file with other content, valid from now on.
    func with(_ content: Content) -> FileRecord {
        var record = self
        record.fields = Fields(path, folder, identity, isFleeting: isFleeting, content, since: Date())
        return record
    }

    /// Returns a record of the same file with another verdict, valid from now on; `nil` if it already has that verdict,
    /// or the file contains no module.
    func decided(_ verdict: Verdict) -> FileRecord? {
        guard case .module(var loaded) = content, loaded.verdict != verdict else { return nil }
        loaded.verdict = verdict
        return with(.module(loaded))
    }

    /// Keeps the module in the record after the file was written again, or while it is being written.
    mutating func keepModule(_ loaded: Loaded, isBeingWritten: Bool) {
        fields = Fields(
            path, folder, identity, isFleeting: isFleeting,
            isBeingWritten ? .beingWritten(over: loaded) : .module(loaded), since: since)
    }

    /// Whether the file is being written, so that it must be scanned again.
    var isAwaited: Bool { if case .beingWritten = content { true } else { false } }

    /// Whether the file contains a module that serves, is registered or is superseded.
    var isSettled: Bool { verdict.isSettled }

    /// Whether the file contains no module, or one that was judged and is not settled.
    var isUnsettled: Bool { fields.isUnsettled }

    /// Whether the file is a library that a module needs.
    var isLibrary: Bool { if case .library = content { true } else { false } }

    /// The module in the file, or the one it contained before it was being written.
    var loaded: Loaded? {
        switch content {
        case .module(let loaded), .beingWritten(over: let loaded?): loaded
        default: nil
        }
    }

    /// The module in the file, if it can be served.
    var module: LoadedModule? { if case .module(let loaded) = content { loaded.module } else { nil } }

    /// The module in the file, even if it failed.
    var claimedModule: LoadedModule? { if case .failed(_, let module) = content { module } else { module } }

    /// The verdict on the module in the file.
    var verdict: Verdict { if case .module(let loaded) = content { loaded.verdict } else { .undecided } }

    /// Returns whether both are copies of one record.
    func isIdentical(to other: FileRecord) -> Bool { fields === other.fields }

    /// Returns whether both records describe the same file, which was not written in between.
    func hasContent(of other: FileRecord) -> Bool {
        guard let identity, let other = other.identity else { return identity == other.identity }
        return identity.inode == other.inode && identity.device == other.device && identity.size == other.size
            && identity.modified == other.modified
    }

    /// The reason why the content of the file is not served.
    var error: PluginError? {
        switch content {
        case .failed(let error, _), .quarantined(let error, _): error
        case .beingWritten:
            PluginError(.unreadable, "\(path) is being written; it is loaded when its writer closes it.")
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

extension FileRecord.Content {
    fileprivate var isUnsettled: Bool {
        guard case .module(let loaded) = self else { return true }
        return loaded.verdict != .undecided && !loaded.verdict.isSettled
    }
}

extension FileRecord.Verdict {
    fileprivate var isSettled: Bool {
        switch self {
        case .serves, .superseded: true
        default: false
        }
    }

    /// The reason why the module does not serve, if it has an unmet requirement or was refused.
    var error: PluginError? {
        switch self {
        case .waits(let error), .starts(let error), .refused(let error): error
        case .undecided, .serves, .superseded, .ended: nil
        }
    }

    var isRefusal: Bool { if case .refused = self { true } else { false } }
}

extension FileRecord {
    /// Returns the status of the file.
    ///
    /// - Parameter served: The module that serves and was loaded from this path, even if the file has changed since.
    func status(_ served: Served?) -> ModuleStatus {
        let outline = served?.module.outline ?? claimedModule?.outline
        var status = ModuleStatus(
            served == nil ? state : .active, file: path, since: served?.since ?? since, outline, served?.generation)
        status.error = error
        switch content {
        case .module(let loaded):
            if case .superseded(let other) = loaded.verdict { status.note = "\(other) serves" }
        case .library(let owner): status.note = "needed by \(owner)"
        default: break
        }
        if let served, served.module.hasEnded {
            status.note = "it has crashed, and waits until it is started again"
        } else if let served, status.error != nil || module !== served.module {
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
            case .serves: loaded.module.isOpen ? .active : .registered
            case .superseded: .superseded
            case .waits: .waiting
            case .starts: .starting
            case .refused: .failed
            case .ended: .retired
            }
        }
    }

    /// The change to report after the verdict has changed; `nil` if there is none.
    var verdictChange: HostChange? {
        switch verdict {
        case .superseded: .superseded(status(nil))
        case .waits: .waiting(status(nil))
        case .starts: .starting(status(nil))
        case .refused: .failed(status(nil))
        case .undecided, .serves, .ended: nil
        }
    }
}
