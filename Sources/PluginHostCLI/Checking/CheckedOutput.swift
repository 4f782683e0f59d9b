internal import Glibc

/// The text that a module writes to standard output, which belongs to the program.
struct CheckedOutput {
    private let descriptor: CInt

    /// Redirects the process's standard output to a file in a folder.
    init(folder: String) {
        descriptor = open(folder + "/output", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        if descriptor >= 0 { dup2(descriptor, 1) }
    }

    func examine(_ result: inout CheckResult) {
        fflush(nil)
        var bytes = [UInt8](repeating: 0, count: 60)
        let count = pread(descriptor, &bytes, bytes.count, 0)
        guard count > 0 else { return }
        let text = String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n").first ?? ""
        result.warn(
            "It writes to standard output (“\(text)”), which belongs to the program: this breaks readers of the program's "
                + "output. Use the host's log instead.")
    }
}
