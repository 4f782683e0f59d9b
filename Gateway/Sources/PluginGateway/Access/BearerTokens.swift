import Foundation
public import Logging
public import PluginABI
import Synchronization

/// The tokens in a file, one in each line, possibly after a name for its client and a space: `ada 3f9c…`. Modules see
/// the name as the caller of a call, never the token. Empty lines, and lines that begin with `#`, are skipped. The file
/// is read again when it has changed. If it is then missing or unusable, no token is valid until it is usable, and the
/// log says why.
public final class BearerTokens: Sendable {
    private struct State {
        var tokens: [Token]
        var stamp: Stamp
        var checked: ContinuousClock.Instant
        /// Why there are no tokens.
        var problem: String?
    }

    private struct Token {
        let name: String?
        let bytes: [UInt8]

        /// - Parameter line: A line of the file, without spaces at its ends.
        init(_ line: String) {
            let parts = line.split(separator: " ", maxSplits: 1)
            name = parts.count == 2 ? String(parts[0]) : nil
            bytes = Array(parts.last.map { $0.trimmingSpaces.utf8 } ?? "".utf8[...])
        }
    }

    private struct Stamp: Equatable {
        var modified: Date?
        var size: Int?
        var number: Int?
        var mode: Int?
        var owner: Int?
    }

    private let file: String
    private let logger: Logger
    private let state: Mutex<State>

    /// The minimum length of a token, in bytes.
    public static let shortest = 16
    /// The maximum length of a name, in bytes.
    public static let longestName = 256

    /// Reads a file of tokens.
    ///
    /// - Parameters:
    ///   - file: The path of the file. It must belong to the user of the program, and nobody else may read it.
    ///   - logger: The log for problems with the file that arise later.
    /// - Throws: `invalidConfiguration` if the file cannot be read, has no tokens or one that is too short, belongs to
    ///   another user, or can be read by others.
    public init(file: String, logger: Logger = Logger(label: "PluginGateway")) throws(PluginError) {
        (self.file, self.logger) = (file, logger)
        let stamp = Self.stamp(of: file)
        state = Mutex(State(tokens: try Self.read(file), stamp: stamp, checked: .now))
    }

    private static func stamp(of file: String) -> Stamp {
        // The attributes of a link would be its own.
        let target = URL(filePath: file).resolvingSymlinksInPath().path
        let attributes = try? FileManager.default.attributesOfItem(atPath: target)
        func number(_ key: FileAttributeKey) -> Int? { (attributes?[key] as? NSNumber)?.intValue }
        return Stamp(
            modified: attributes?[.modificationDate] as? Date, size: number(.size), number: number(.systemFileNumber),
            mode: number(.posixPermissions), owner: number(.ownerAccountID))
    }

    private static func read(_ file: String) throws(PluginError) -> [Token] {
        func invalid(_ message: String) -> PluginError {
            PluginError(.invalidConfiguration, "The token file “\(file)” \(message)")
        }
        let stamp = stamp(of: file)
        guard let mode = stamp.mode, let owner = stamp.owner, let size = stamp.size, size <= 1 << 20,
            let data = FileManager.default.contents(atPath: file)
        else { throw invalid("cannot be read, or is larger than 1 MiB.") }
        guard [0, Int(geteuid())].contains(owner) else {
            throw invalid("belongs to another user. It must belong to the user that runs the gateway.")
        }
        guard mode & 0o077 == 0 else { throw invalid("can be read by others. Run: chmod 600 '\(file)'") }
        let lines = String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline)
            .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty && !$0.hasPrefix("#") }
        guard !lines.isEmpty else { throw invalid("has no token. Write one in each line.") }
        let tokens = lines.map(Token.init)
        guard tokens.allSatisfy({ $0.bytes.count >= shortest }) else {
            throw invalid("has a token of fewer than \(shortest) bytes. Use longer, random ones.")
        }
        guard
            tokens.allSatisfy({ token in
                token.name?.utf8.count ?? 0 <= longestName && token.bytes.allSatisfy { (0x21...0x7E).contains($0) }
            })
        else {
            throw invalid(
                "has a line that is neither a token nor a name, a space and a token. Tokens are printable ASCII; names "
                    + "have at most \(longestName) bytes.")
        }
        return tokens
    }

    /// Returns the client that has a token; `nil` if it is not one of the tokens. Takes the same time for every text of
    /// the same length.
    func client(_ token: Substring) -> Client? {
        let given = Array(token.utf8)
        let tokens = state.withLock { state in
            if .now - state.checked > .seconds(1) { reload(&state) }
            return state.tokens
        }
        var found: Client?
        for token in tokens where Self.isEqual(token.bytes, given) { found = Client(name: token.name) }
        return found
    }

    private func reload(_ state: inout State) {
        state.checked = .now
        let stamp = Self.stamp(of: file)
        guard stamp != state.stamp || state.problem != nil else { return }
        do throws(PluginError) {
            (state.tokens, state.stamp, state.problem) = (try Self.read(file), stamp, nil)
        } catch {
            if error.message != state.problem { logger.error("No token is valid. \(error.message)") }
            (state.tokens, state.stamp, state.problem) = ([], stamp, error.message)
        }
    }

    private static func isEqual(_ token: [UInt8], _ given: [UInt8]) -> Bool {
        var difference = UInt(bitPattern: token.count ^ given.count)
        for index in given.indices { difference |= UInt(given[index] ^ token[index % token.count]) }
        return difference == 0
    }
}
