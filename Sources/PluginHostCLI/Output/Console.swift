internal import Glibc
internal import PluginABI
internal import Synchronization

/// The program's standard output and standard error. Lines from different threads do not mix.
final class Console: Sendable {
    let outputStyle: Style
    let errorStyle: Style
    /// The columns of the terminal; nil where the output is none.
    let width: Int?

    private struct State {
        /// What stands on the terminal's last line while a person is asked.
        var prompt = ""
        var hasFailed = false
        var isClosed = false
    }
    private let state = Mutex(State())

    init(environment: [String: String]) {
        let mayColour = environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
        outputStyle = Style(isEnabled: mayColour && isatty(1) == 1)
        errorStyle = Style(isEnabled: mayColour && isatty(2) == 1)
        var size = winsize()
        let isKnown = isatty(1) == 1 && ioctl(1, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
        width = isKnown ? Int(size.ws_col) : nil
    }

    /// Some output was lost, on a full disk for instance.
    var hasFailed: Bool { state.withLock(\.hasFailed) }

    /// Nobody reads the output any more.
    var isClosed: Bool { state.withLock(\.isClosed) }

    /// Writes a line to standard output.
    func print(_ line: String) { write(line, to: 1) }

    /// Writes a line to standard error.
    func diagnose(_ line: String) { write(line, to: 2) }

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
        state.withLock { state in
            state.prompt = text
            Self.write(text, to: isatty(1) == 1 ? 1 : 2, &state)
        }
    }

    /// The person has typed a line, so the terminal is on a fresh one.
    func promptAnswered() { state.withLock { $0.prompt = "" } }

    private func write(_ line: String, to descriptor: CInt) {
        state.withLock { state in
            let isBelowPrompt = !state.prompt.isEmpty && isatty(descriptor) == 1
            let text = isBelowPrompt ? "\r\u{1B}[K\(line)\n\(state.prompt)" : line + "\n"
            Self.write(text, to: descriptor, &state)
        }
    }

    private static func write(_ text: String, to descriptor: CInt, _ state: inout State) {
        var text = text
        text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while !rest.isEmpty {
                let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
                if count > 0 {
                    rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                } else if errno == EAGAIN {
                    var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    poll(&ready, 1, -1)
                } else if errno != EINTR {
                    if descriptor == 1, errno == EPIPE { state.isClosed = true }
                    if descriptor == 1, errno != EPIPE { state.hasFailed = true }
                    return
                }
            }
        }
    }
}
