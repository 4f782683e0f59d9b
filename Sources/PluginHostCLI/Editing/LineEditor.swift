internal import CPluginHost
internal import Dispatch
internal import Glibc
internal import PluginHost
internal import Synchronization

/// The editing of lines at the terminal, with history and completion. It needs libedit, which is opened at run time.
struct LineEditor: Sendable {
    typealias Completion = @Sendable (_ word: String, _ before: [String]) async -> [Candidate]

    /// The number of lines of the history.
    private static let historySize = 1000

    private let history: HistoryFile?
    private let completion: Completion

    /// Prepares the terminal. Returns `nil` if standard input or output is not a terminal that can move its cursor, or
    /// if there is no libedit. Must be called only once.
    ///
    /// - Parameters:
    ///   - history: The name of the file in the state folder that keeps the history.
    ///   - completion: Returns what a word can become.
    init?(history: String, _ variables: [String: String], completion: @escaping Completion) {
        guard isatty(0) == 1, isatty(1) == 1, !["", "dumb"].contains(variables["TERM", default: ""]),
            plugin_host_editor_open(CInt(Self.historySize)) != 0
        else { return nil }
        self.history = HistoryFile(named: history, variables, limit: Self.historySize)
        self.completion = completion
        for line in self.history?.lines ?? [] { plugin_host_editor_remember(line) }
    }

    /// Reads a line, and adds it to the history. Returns `nil` at the end of the input. Blocks this thread.
    func next(_ prompt: String) -> String? {
        let asked = Asked(completion: completion)
        let text = withExtendedLifetime(asked) {
            prompt.withCString { prompt in
                plugin_host_editor_read(
                    prompt, { line, columns, asked in Asked.answer(line, columns, asked) },
                    Unmanaged.passUnretained(asked).toOpaque())
            }
        }
        guard let text else { return nil }
        defer { free(text) }
        let line = String(cString: text)
        // A line that begins with a space is not kept, as in shells.
        let kept = String(line.reversed().drop(while: \.isWhitespace).reversed())
        if !kept.isEmpty, !kept.hasPrefix(" "), history?.lines.last != kept {
            plugin_host_editor_remember(kept)
            history?.append(kept)
        }
        return line
    }

    /// Restores the terminal before the process is suspended.
    static func suspend() { plugin_host_editor_suspend() }

    /// Continues editing after ``suspend()``.
    static func resume() { plugin_host_editor_resume() }

    /// Ends editing, and restores the terminal.
    static func close() { plugin_host_editor_close() }

    private final class Asked: Sendable {
        let completion: Completion

        init(completion: @escaping Completion) { self.completion = completion }

        static func answer(
            _ line: UnsafePointer<CChar>?, _ columns: CInt, _ asked: UnsafeMutableRawPointer?
        ) -> UnsafeMutablePointer<CChar>? {
            guard let line, let asked else { return nil }
            let own = Unmanaged<Asked>.fromOpaque(asked).takeUnretainedValue()
            let words = WordsOfLine(String(cString: line))
            let answer = own.wait(for: words)
            return CompletedLine(words, answer, columns: Int(columns)).map { strdup($0.text) } ?? nil
        }

        /// Waits on the thread of the editor, which belongs to the program.
        private func wait(for words: WordsOfLine) -> [Candidate] {
            let done = DispatchSemaphore(value: 0)
            let answer = Answer()
            Task(executorPreference: BlockingExecutor.shared) { [completion] in
                let candidates = await completion(words.words.last ?? "", words.words.dropLast())
                answer.candidates.withLock { $0 = candidates }
                done.signal()
            }
            done.wait()
            return answer.candidates.withLock { $0 }.filter { $0.text.hasPrefix(words.words.last ?? "") }
        }
    }
}
