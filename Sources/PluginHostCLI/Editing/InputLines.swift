internal import Glibc
internal import PluginABI

/// The lines of standard input, which may be a terminal or a pipe.
struct InputLines {
    /// The bytes that were read but not yet returned as lines.
    private var rest: [UInt8] = []
    /// Edits the lines; `nil` if they are read as they come.
    private let editor: LineEditor?

    init(editor: LineEditor? = nil) { self.editor = editor }

    /// Reads and performs commands, each a line of words, and reports those that fail. Shows the prompt on a terminal.
    /// Returns at the end of the input, and after `quit` or `exit`. Blocks this thread while it waits for input.
    mutating func takeCommands(
        _ prompt: String, _ console: Console, asJSON: Bool,
        perform: (_ name: String, _ words: [String]) async throws(PluginError) -> Void
    ) async {
        while true {
            guard let line = editor.map({ $0.next(prompt) }) ?? nextPlain(prompt, console) else { return }
            do throws(PluginError) {
                let words = try shellWords(line)
                guard let name = words.first else { continue }
                if name == "quit" || name == "exit" { return }
                try await perform(name, Array(words.dropFirst()))
            } catch {
                console.report(error, asJSON: asJSON)
            }
        }
    }

    private mutating func nextPlain(_ prompt: String, _ console: Console) -> String? {
        if isatty(0) == 1 { console.prompt(prompt) }
        defer { console.promptAnswered() }
        return next()
    }

    /// Returns the next line without its line feed; `nil` at the end of the input.
    private mutating func next() -> String? {
        while true {
            if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                defer { rest.removeSubrange(...end) }
                return String(decoding: rest[..<end], as: UTF8.self)
            }
            if readMore(0, into: &rest) > 0 { continue }
            defer { rest = [] }
            return rest.isEmpty ? nil : String(decoding: rest, as: UTF8.self)
        }
    }
}
