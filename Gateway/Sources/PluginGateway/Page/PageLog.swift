import Foundation
import Logging
import PluginABI
import Synchronization

/// The last changes of modules that were made from the page, or refused, with the clients that requested them.
final class PageLog: Sendable {
    struct Entry: Sendable {
        let time = Date()
        let kind: PageChange
        let module: String
        let version: String?
        let force: Bool
        /// The name of the token or certificate; `nil` if there is none.
        let caller: String?
        /// The address of the client, if it is known.
        let address: String?
        fileprivate(set) var number = 0
        fileprivate(set) var error: PluginError?

        init(kind: PageChange, module: String, version: String?, force: Bool, caller: String?, address: String?) {
            (self.kind, self.module, self.version, self.force) = (kind, module, version, force)
            (self.caller, self.address) = (caller, address)
        }
    }

    /// How many changes are kept.
    static let limit = 100

    private let entries = Mutex<(next: Int, kept: [Entry])>((0, []))

    /// Adds a finished change, and writes it to the log of the program.
    ///
    /// - Parameter error: Why it was not made; `nil` if it was made.
    func add(_ entry: Entry, _ error: PluginError?, to logger: Logger) {
        entries.withLock { entries in
            entries.next += 1
            var entry = entry
            (entry.number, entry.error) = (entries.next, error)
            entries.kept.append(entry)
            if entries.kept.count > Self.limit { entries.kept.removeFirst() }
        }
        var metadata: Logger.Metadata = [
            "change": "\(entry.kind.rawValue)", "module": "\(entry.module.onOneLine)",
            "caller": "\((entry.caller ?? "unnamed").onOneLine)", "result": "\(error?.code.rawValue ?? "done")",
        ]
        if let version = entry.version { metadata["version"] = "\(version.onOneLine)" }
        if let address = entry.address { metadata["address"] = "\(address)" }
        if entry.force { metadata["force"] = "true" }
        logger.notice("A change of modules from the page", metadata: metadata)
    }

    /// The last changes, the newest first.
    var last: [Entry] { entries.withLock { $0.kept.reversed() } }
}

extension PageLog.Entry {
    var record: Value {
        var entries: [String: Value] = [
            "number": .int(number), "time": .time(time), "kind": .string(kind.rawValue), "module": .cut(module),
        ]
        if let version { entries["version"] = .cut(version) }
        if force { entries["force"] = true }
        if let caller { entries["caller"] = .cut(caller) }
        if let address { entries["address"] = .string(address) }
        if let error { entries["error"] = error.record }
        return .map(entries)
    }
}

extension String {
    /// The beginning of the text for a line of a log, without characters that end the line or cannot be seen.
    fileprivate var onOneLine: String {
        String(
            String.UnicodeScalarView(
                unicodeScalars.prefix(200).map { scalar in
                    switch scalar.properties.generalCategory {
                    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: "\u{FFFD}"
                    default: scalar
                    }
                }))
    }
}
