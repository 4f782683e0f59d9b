internal import Dispatch
internal import Foundation
internal import PluginABI

/// Lets as many threads read and write long JSON at a time as there are processors: more would be no faster, and keep the
/// processors from short requests.
final class LongTexts: Sendable {
    /// How many bytes are long.
    static let limit = 64 << 10

    private let permits = DispatchSemaphore(value: max(2, ProcessInfo.processInfo.activeProcessorCount))

    /// Does work on a text of so many bytes; blocks this thread until it is its turn.
    static func work<Result>(_ texts: LongTexts?, _ bytes: Int, _ body: () -> Result) -> Result {
        guard let texts, bytes > limit else { return body() }
        texts.permits.wait()
        defer { texts.permits.signal() }
        return body()
    }
}

extension Value {
    /// How many bytes its JSON has at least.
    var leastJSONBytes: Int {
        switch self {
        case .string(let text): 2 + text.utf8.count
        case .bytes(let bytes): 2 + bytes.count
        case .list(let values): values.reduce(2) { $0 + $1.leastJSONBytes }
        case .map(let entries): entries.reduce(2) { $0 + $1.key.utf8.count + $1.value.leastJSONBytes }
        default: 1
        }
    }
}
