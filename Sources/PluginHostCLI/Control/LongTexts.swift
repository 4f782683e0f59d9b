internal import Dispatch
internal import FoundationEssentials
internal import PluginABI

/// Limits the number of threads that read and write long JSON at a time to the number of processors, at least two. More
/// threads would not be faster, and would delay short requests.
final class LongTexts: Sendable {
    /// A text with more bytes than this counts as long.
    static let limit = 64 << 10

    private let permits = DispatchSemaphore(value: max(2, ProcessInfo.processInfo.activeProcessorCount))

    /// Runs `body`, which works on a text of `bytes` bytes. If the text is long, first blocks this thread until enough
    /// other threads have finished.
    static func work<Result>(_ texts: LongTexts?, _ bytes: Int, _ body: () -> Result) -> Result {
        guard let texts, bytes > limit else { return body() }
        texts.permits.wait()
        defer { texts.permits.signal() }
        return body()
    }
}

extension Value {
    /// The minimum number of bytes of the value as JSON.
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
