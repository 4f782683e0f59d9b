import PluginABI
import Synchronization

/// The page of one article. Other modules know its actions, but not its type.
final class ArticlePage: Sendable {
    let key: String
    private let state = Mutex((note: "", isChosen: false))

    init(_ key: String) { self.key = key }

    var isChosen: Bool { state.withLock(\.isChosen) }

    var content: PageContent {
        let state = state.withLock(\.self)
        return PageContent(
            key, summary: "\(prices[key] ?? 0)",
            lines: [state.note, state.isChosen ? "chosen" : ""].filter { !$0.isEmpty })
    }

    func note(_ text: String) { state.withLock { $0.note = text } }

    /// Emits an event up the chain, where a handler may collect the article. Returns whether one did.
    func choose(_ context: HostContext) throws -> Bool {
        let outcome = try context.emit("shop.choose", ["key": .string(key), "price": .double(prices[key] ?? 0)])
        if outcome.isHandled { state.withLock { $0.isChosen = true } }
        return outcome.isHandled
    }
}
