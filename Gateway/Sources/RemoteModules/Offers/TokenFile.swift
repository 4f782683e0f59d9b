import Foundation
import PluginABI
import Synchronization

/// The bearer token of a mount, read from a file, and read again when the file has changed.
final class TokenFile: Sendable {
    private struct Stamp: Equatable {
        var modified: Date?
        var size: Int?
        var number: Int?
        var mode: Int?
        var owner: Int?
    }

    private struct State {
        var token: Result<String, PluginError>
        var stamp: Stamp
        var checked: ContinuousClock.Instant
    }

    let path: String
    private let state: Mutex<State>

    /// - Throws: `invalidConfiguration` if the file cannot be used.
    init(_ path: String) throws(PluginError) {
        self.path = path
        let stamp = Self.stamp(path)
        state = Mutex(State(token: .success(try Self.read(path)), stamp: stamp, checked: .now))
    }

    /// The token.
    ///
    /// - Throws: `unauthorized` while the file cannot be used.
    func token() throws(PluginError) -> String {
        let result = state.withLock { state in
            guard .now - state.checked > .milliseconds(500) else { return state.token }
            state.checked = .now
            let stamp = Self.stamp(path)
            if stamp != state.stamp {
                state.stamp = stamp
                do throws(PluginError) { state.token = .success(try Self.read(path)) } catch {
                    state.token = .failure(PluginError(.unauthorized, error.message))
                }
            }
            return state.token
        }
        return try result.get()
    }

    private static func stamp(_ path: String) -> Stamp {
        // The attributes of a link would be its own.
        let target = URL(filePath: path).resolvingSymlinksInPath().path
        let attributes = try? FileManager.default.attributesOfItem(atPath: target)
        func number(_ key: FileAttributeKey) -> Int? { (attributes?[key] as? NSNumber)?.intValue }
        return Stamp(
            modified: attributes?[.modificationDate] as? Date, size: number(.size), number: number(.systemFileNumber),
            mode: number(.posixPermissions), owner: number(.ownerAccountID))
    }

    private static func read(_ path: String) throws(PluginError) -> String {
        func invalid(_ message: String) -> PluginError {
            PluginError(.invalidConfiguration, "The token file “\(path)” \(message)")
        }
        guard let stamp = Optional(stamp(path)), let mode = stamp.mode, let size = stamp.size, size <= 1 << 20,
            let data = FileManager.default.contents(atPath: path)
        else { throw invalid("cannot be read, or is larger than 1 MiB.") }
        guard let owner = stamp.owner, [0, Int(geteuid())].contains(owner) else {
            throw invalid("belongs to another user. It must belong to the user that runs the program.")
        }
        guard mode & 0o077 == 0 else { throw invalid("can be read by others. Run: chmod 600 '\(path)'") }
        let line = String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline)
            .map { $0.trimmingCharacters(in: .whitespaces) }.first { !$0.isEmpty && !$0.hasPrefix("#") }
        guard let token = line?.split(separator: " ").last else { throw invalid("has no token.") }
        guard token.utf8.count <= 4096, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw invalid("has a token that is not printable ASCII of at most 4,096 bytes.")
        }
        return String(token)
    }
}
