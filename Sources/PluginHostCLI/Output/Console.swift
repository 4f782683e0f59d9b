internal import Glibc
internal import PluginABI
internal import Synchronization

/// The program's standard output and standard error. Lines from different threads do not mix.
final class Console: Sendable {
    let outputStyle: Style
    let errorStyle: Style
    /// The number of columns of the terminal; `nil` if the output is not a terminal.
    let width: Int?

    /// The present number of rows of the terminal; 24 if it is unknown.
    var height: Int {
        var size = winsize()
        return ioctl(1, UInt(TIOCGWINSZ), &size) == 0 && size.ws_row > 0 ? Int(size.ws_row) : 24
    }

    private let output = ConsoleStream(1)
    private let errors = ConsoleStream(2)
    /// The prompt on the terminal's last line; empty if there is none.
    private let prompt = Mutex("")

    init(environment: [String: String]) {
        let mayColour = environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
        outputStyle = Style(isEnabled: mayColour && isatty(1) == 1)
        errorStyle = Style(isEnabled: mayColour && isatty(2) == 1)
        var size = winsize()
        let isKnown = isatty(1) == 1 && ioctl(1, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
        width = isKnown ? Int(size.ws_col) : nil
    }

    /// Whether some output was lost, for example on a full disk.
    var hasFailed: Bool { output.hasFailed }

    /// Whether the reader of the output has closed it.
    var isClosed: Bool { output.isClosed }

    /// Makes printing independent of the reader from now on: output goes to a buffer of ``ConsoleStream/bufferLimit``
    /// bytes. Lines that do not fit are lost, and a note states how many.
    func beginBuffering(
        _ outputNote: @escaping @Sendable (_ lines: Int) -> String,
        _ errorNote: @escaping @Sendable (_ lines: Int) -> String
    ) {
        output.beginBuffering(outputNote)
        errors.beginBuffering(errorNote)
    }

    /// Waits until everything is written, for at most a second.
    func flush() {
        let end = ContinuousClock.now + .seconds(1)
        _ = output.flush(until: end)
        _ = errors.flush(until: end)
    }

    /// Writes a line to standard output.
    func print(_ line: String) { write(line.harmless, to: 1) }

    /// Writes text to standard output, unchanged unless standard output is a terminal.
    func printUnchanged(_ text: String) { write(isatty(1) == 1 ? text.harmless : text, to: 1) }

    /// Clears the terminal of standard output, and writes text to it.
    func redraw(_ text: String) { output.write("\u{1B}[H\u{1B}[J\(text.harmless)\n") }

    /// Prints the result of an action.
    func printResult(_ result: Value, asJSON: Bool) {
        if asJSON { print(Value.map(["result": result]).json) } else { printUnchanged(result.readable) }
    }

    /// Writes a line to standard error.
    func diagnose(_ line: String) { write(line.harmless, to: 2) }

    /// Reports the error of a command: as text on standard error or, for programs, as JSON on standard output.
    func report(_ error: PluginError, asJSON: Bool) {
        if asJSON {
            print(Value.map(["error": error.record]).json)
        } else {
            diagnose(errorStyle("Error:", .red) + " " + error.line)
        }
    }

    /// Shows `text` on the last line of the terminal, below everything that is printed, until ``promptAnswered()``.
    func prompt(_ text: String) {
        prompt.withLock { prompt in
            prompt = text
            (isatty(1) == 1 ? output : errors).write(text)
        }
    }

    /// Removes the prompt. Called when a line was entered, so that the cursor is on a new line.
    func promptAnswered() { prompt.withLock { $0 = "" } }

    private func write(_ line: String, to descriptor: CInt) {
        let stream = descriptor == 1 ? output : errors
        guard isatty(descriptor) == 1 else { return stream.write(line + "\n") }
        // The lock keeps the prompt and the lines in order.
        prompt.withLock { prompt in
            stream.write(prompt.isEmpty ? line + "\n" : "\r\u{1B}[K\(line)\n\(prompt)")
        }
    }
}
