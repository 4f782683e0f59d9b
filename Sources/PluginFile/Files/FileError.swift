package import FoundationEssentials
import Glibc

extension CocoaError {
    /// Returns what went wrong with a file, for people: "No such file or directory".
    ///
    /// - Parameter error: An error of `FileManager`, or of reading or writing a file with `Data` or `String`.
    package static func text(_ error: any Error) -> String {
        if let error = error as? POSIXError { return describe(errno: error.code.rawValue) }
        guard let error = error as? CocoaError else { return "\(error)" }
        return error.underlying.map(text) ?? "\(error)"
    }
}
