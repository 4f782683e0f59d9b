import Foundation
public import PluginABI
import Synchronization

/// The tokens in a file, one in each line. Empty lines, and lines that begin with `#`, are skipped. The file is read again
/// when it has changed.
public final class BearerTokens: Sendable {
    private struct State {
        var tokens: [[UInt8]]
        var stamp: Stamp
        var checked: ContinuousClock.Instant
    }

    private struct Stamp: Equatable {
        var modified: Date?
        var size: Int?
        var number: Int?
    }

    private let file: String
    private let state: Mutex<State>

    /// The shortest token, in bytes.
    public static let shortest = 16

    /// Reads a file of tokens.
    ///
    /// - Parameter file: The path of the file. Nobody but its owner may read it.
    /// - Throws: `invalidConfiguration` if the file cannot be read, has no tokens or one that is too short, or can be
    ///   read by others.
    public init(file: String) throws(PluginError) {
        self.file = file
        let stamp = Self.stamp(of: file)
        state = Mutex(State(tokens: try Self.read(file), stamp: stamp, checked: .now))
    }

    private static func stamp(of file: String) -> Stamp {
        let attributes = try? FileManager.default.attributesOfItem(atPath: file)
        return Stamp(
            modified: attributes?[.modificationDate] as? Date, size: (attributes?[.size] as? NSNumber)?.intValue,
            number: (attributes?[.systemFileNumber] as? NSNumber)?.intValue)
    }

    private static func read(_ file: String) throws(PluginError) -> [[UInt8]] {
        func invalid(_ message: String) -> PluginError {
            PluginError(.invalidConfiguration, "The token file “\(file)” \(message)")
        }
        let attributes = try? FileManager.default.attributesOfItem(atPath: file)
        guard let mode = (attributes?[.posixPermissions] as? NSNumber)?.intValue,
            let size = (attributes?[.size] as? NSNumber)?.intValue, size <= 1 << 20,
            let data = FileManager.default.contents(atPath: file)
        else { throw invalid("cannot be read, or is larger than 1 MiB.") }
        guard mode & 0o077 == 0 else { throw invalid("can be read by others. Run: chmod 600 '\(file)'") }
        let lines = String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline)
            .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty && !$0.hasPrefix("#") }
        guard !lines.isEmpty else { throw invalid("has no token. Write one in each line.") }
        guard lines.allSatisfy({ $0.utf8.count >= shortest }) else {
            throw invalid("has a token of fewer than \(shortest) bytes. Use longer, random ones.")
        }
        return lines.map { Array($0.utf8) }
    }

    /// Whether this is one of the tokens. Takes the same time for every text of the same length. If the file has become
    /// unusable, the last tokens stay in effect.
    func contains(_ token: Substring) -> Bool {
        let given = Array(token.utf8)
        let tokens = state.withLock { state in
            if .now - state.checked > .seconds(1) { reload(&state) }
            return state.tokens
        }
        var isFound = false
        for token in tokens where Self.isEqual(token, given) { isFound = true }
        return isFound
    }

    private func reload(_ state: inout State) {
        state.checked = .now
        let stamp = Self.stamp(of: file)
        guard stamp != state.stamp, let tokens = try? Self.read(file) else { return }
        (state.tokens, state.stamp) = (tokens, stamp)
    }

    private static func isEqual(_ token: [UInt8], _ given: [UInt8]) -> Bool {
        var difference = UInt(bitPattern: token.count ^ given.count)
        for index in given.indices { difference |= UInt(given[index] ^ token[index % token.count]) }
        return difference == 0
    }
}
