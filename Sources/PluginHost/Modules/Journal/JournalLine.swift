import Glibc
import PluginABI

/// The lines of a journal. Each is a JSON object.
///
///     {"number":7,"step":"opening","file":"/plugins/a.so","digest":"2a","size":7816,"date":1795464000}
///     {"number":7,"over":"opening"}     the step has ended
///     {"number":7,"step":"entry"}       the next step begins
///     {"number":7}                      the start of the module is over
///     {"fatal":7}                       code of the module raised the signal that killed the host; 0: unknown code
///     {"exit":7}                        code of the module ended the host
///
/// The lines are not written by Foundation's encoder, because it uses dynamic casts: in a process that has just opened
/// a library, each cast searches the conformances of all libraries.
enum JournalLine {
    static func begin(_ step: Journal.Step, file: String, digest: UInt64, size: Int, number: UInt64) -> String {
        let name = Value.string(file).json
        return "{\"number\":\(number),\"step\":\"\(step.rawValue)\",\"file\":\(name),"
            + "\"digest\":\"\(String(digest, radix: 16))\",\"size\":\(size),\"date\":\(time(nil))}\n"
    }

    static func begin(_ step: Journal.Step, _ number: UInt64) -> String {
        "{\"number\":\(number),\"step\":\"\(step.rawValue)\"}\n"
    }

    static func end(_ step: Journal.Step, _ number: UInt64) -> String {
        "{\"number\":\(number),\"over\":\"\(step.rawValue)\"}\n"
    }

    static func end(_ number: UInt64) -> String { "{\"number\":\(number)}\n" }
}
