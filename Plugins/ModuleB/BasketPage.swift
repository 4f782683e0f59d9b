import PluginABI
import Synchronization

/// A page that collects the articles that are chosen on the pages above it, which may be of any module.
final class BasketPage: Sendable {
    private let chosen = Mutex<[String]>([])

    var items: [String] { chosen.withLock(\.self) }

    var content: PageContent { PageContent("Basket", summary: "\(items.count) chosen", lines: items) }

    func add(_ key: String) { chosen.withLock { $0.append(key) } }
}
