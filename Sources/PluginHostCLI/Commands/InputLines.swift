internal import Glibc
internal import PluginABI
internal import PluginHost
internal import Synchronization

/// The lines of standard input, be it a terminal or a pipe.
final class InputLines: Sendable {
    /// What was read, and belongs to lines that nobody has asked for yet.
    private let rest = Mutex<[UInt8]>([])

    /// The words of the next line that has some, for which a terminal is asked; nil at the end of the input.
    ///
    /// - Throws: `usage` for a line that cannot be divided into words.
    func words(_ prompt: String, _ console: Console) async throws(PluginError) -> [String]? {
        while true {
            if isatty(0) == 1 { console.prompt(prompt) }
            let line = await next()
            console.promptAnswered()
            guard let line else { return nil }
            let words = try shellWords(line)
            if !words.isEmpty { return words }
        }
    }

    /// The next line without its end; nil at the end of the input. One at a time.
    private func next() async -> String? {
        await withCheckedContinuation { continuation in
            ThreadPool.shared.run { continuation.resume(returning: self.read()) }
        }
    }

    private func read() -> String? {
        rest.withLock { rest in
            var chunk = [UInt8](repeating: 0, count: 4096)
            while true {
                if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    defer { rest.removeSubrange(...end) }
                    return String(decoding: rest[..<end], as: UTF8.self)
                }
                let count = Glibc.read(0, &chunk, chunk.count)
                if count > 0 {
                    rest += chunk[..<count]
                } else if count == 0 || errno != EINTR {
                    defer { rest = [] }
                    return rest.isEmpty ? nil : String(decoding: rest, as: UTF8.self)
                }
            }
        }
    }
}
