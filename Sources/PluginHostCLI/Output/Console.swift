internal import Glibc
internal import PluginABI
internal import Synchronization

/// The program's standard output and standard error. Lines from different threads do not mix.
final class Console: Sendable {
    let outputStyle: Style
    let errorStyle: Style
    /// The columns of the terminal; nil where the output is none.
    let width: Int?

    private let output = ConsoleStream(1)
    private let errors = ConsoleStream(2)
    /// What stands on the terminal's last line while a person is asked.
    private let prompt = Mutex("")

    init(environment: [String: String]) {
        let mayColour = environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
        outputStyle = Style(isEnabled: mayColour && isatty(1) == 1)
        errorStyle = Style(isEnabled: mayColour && isatty(2) == 1)
        var size = winsize()
        let isKnown = isatty(1) == 1 && ioctl(1, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
        width = isKnown ? Int(size.ws_col) : nil
    }

    /// Some output was lost, on a full disk for instance.
    var hasFailed: Bool { output.hasFailed }

    /// Nobody reads the output any more.
    var isClosed: Bool { output.isClosed }

    /// From now on nobody who prints waits for whoever reads: what does not fit into a buffer of
    /// ``ConsoleStream/bufferLimit`` bytes is lost, and a line says how much was.
    func beginBuffering(
        _ outputNote: @escaping @Sendable (_ lines: Int) -> String,
        _ errorNote: @escaping @Sendable (_ lines: Int) -> String
    ) {
        output.beginBuffering(outputNote)
        errors.beginBuffering(errorNote)
    }

    /// Waits until all is written, for a second at most.
    func flush() {
        let end = ContinuousClock.now + .seconds(1)
        _ = output.flush(until: end)
        _ = errors.flush(until: end)
    }

    /// Writes a line to standard output.
    func print(_ line: String) { write(line.harmless, to: 1) }

    /// Writes text to standard output: byte for byte where no terminal shows it.
    func printUnchanged(_ text: String) { write(isatty(1) == 1 ? text.harmless : text, to: 1) }

    /// Prints what an action has returned.
    func printResult(_ result: Value, asJSON: Bool) {
        if asJSON { print(Value.map(["result": result]).json) } else { printUnchanged(result.readable) }
    }

    /// Writes a line to standard error.
    func diagnose(_ line: String) { write(line.harmless, to: 2) }

    /// Reports why a command failed: in words on standard error or, for programs, on standard output.
    func report(_ error: PluginError, asJSON: Bool) {
        if asJSON {
            print(Value.map(["error": error.record]).json)
        } else {
            diagnose(errorStyle("Error:", .red) + " " + error.line)
        }
    }

    /// Shows `text` on the last line of the terminal, below whatever is printed, until it is empty.
    func prompt(_ text: String) {
        prompt.withLock { prompt in
            prompt = text
            (isatty(1) == 1 ? output : errors).write(text)
        }
    }

    /// The person has typed a line, so the terminal is on a fresh one.
    func promptAnswered() { prompt.withLock { $0 = "" } }

    private func write(_ line: String, to descriptor: CInt) {
        let stream = descriptor == 1 ? output : errors
        guard isatty(descriptor) == 1 else { return stream.write(line + "\n") }
        // The lock keeps the order in which prompt and lines are shown.
        prompt.withLock { prompt in
            stream.write(prompt.isEmpty ? line + "\n" : "\r\u{1B}[K\(line)\n\(prompt)")
        }
    }
}
