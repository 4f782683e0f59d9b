import Glibc
import PluginABI

/// The lines of a journal: JSON, one object each.
///
///     {"number":7,"step":"opening","file":"/plugins/a.so","digest":"2a","size":7816,"date":1795464000}
///     {"number":7,"over":"opening"}     no code of it runs now
///     {"number":7,"step":"entry"}       the next step begins
///     {"number":7}                      its start is over
///     {"fatal":7}                       the signal that killed the host was raised in its code; 0 for unknown code
///     {"exit":7}                        its code ended the host
///
/// Not written by Foundation, whose encoder casts: each cast of a process that has just opened a library searches the
/// conformances of all libraries.
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
