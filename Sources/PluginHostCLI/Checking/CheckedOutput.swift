internal import Glibc

/// What a module writes to standard output, which is the program's own.
struct CheckedOutput {
    private let descriptor: CInt

    /// Takes the process's standard output to a file of a folder.
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
            "It writes to standard output (“\(text)”), which belongs to the program: what others read from it breaks. Use "
                + "the host's log.")
    }
}
