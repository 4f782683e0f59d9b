import PluginABI
import PluginHost
import Synchronization

/// A presenter that records what it is asked to show.
final class RecordingPresenter: Presenter {
    private let notes = Mutex<[String]>([])
    /// The error that the presenter throws instead of showing a page.
    let failure = Mutex<(any Error)?>(nil)
    /// The code that the presenter runs while it is asked to show a page.
    let whileShowing = Mutex<(@Sendable () async throws -> Void)?>(nil)

    var shown: [String] { notes.withLock(\.self) }

    func opened(_ page: OpenPage, by transition: Transition, in layers: [PageLayer]) async throws {
        if let failure = failure.withLock({ $0 }) { throw failure }
        try await whileShowing.withLock { $0 }?()
        notes.withLock { $0.append("\(transition) \(page.type): \(layers.path)") }
    }

    func closed(_ pages: [OpenPage], in layers: [PageLayer]) async {
        notes.withLock { $0.append("closed \(pages.map(\.type).joined(separator: ", ")): \(layers.path)") }
    }
}

extension [PageLayer] {
    /// `Basket > Article | [Help]`: stacks and, in brackets, pages that are presented alone.
    var path: String {
        map { layer in
            let pages = layer.pages.map(\.type).joined(separator: " > ")
            return layer.isStack ? pages : "[\(pages)]"
        }.joined(separator: " | ")
    }
}

/// Runs a body that is expected to fail with a `PluginError`, and returns the error.
func pluginError(_ body: () async throws -> some Any) async -> PluginError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error as? PluginError
    }
}
