import Foundation
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

/// The article about the control socket describes what the code does.
@Suite struct ControlSocketArticleTests {
    private let article: String

    init() throws {
        article = try String(
            contentsOfFile: "\(repository)/Sources/PluginHost/PluginHost.docc/ControlSocket.md", encoding: .utf8)
    }

    /// Returns the cells of the table with these headings.
    private func table(_ headings: String...) throws -> [[String]] {
        let lines = article.split(separator: "\n", omittingEmptySubsequences: false)
        let head = "| \(headings.joined(separator: " | ")) |"
        let start = try #require(lines.firstIndex { $0 == head }, "\(head)")
        return lines[(start + 2)...].prefix { $0.hasPrefix("|") }.map { line in
            line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
                .map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    private func codes(_ cell: String) -> [String] { cell.matches(of: /`([^`]*)`/).map { String($0.1) } }

    @Test func `The methods and their parameters are those of the host`() throws {
        let rows = try table("method", "parameters", "result")
        #expect(rows.map { codes($0[0]) } == HostMethod.all.map { [$0.name] })
        for (row, method) in zip(rows, HostMethod.all) {
            #expect(codes(row[1]) == method.parameters, "\(method.name)")
            #expect(!row[2].isEmpty, "\(method.name)")
        }
        let described = try table("parameter", "type", "meaning").flatMap { codes($0[0]) }
        #expect(Set(described) == Set(HostMethod.all.flatMap(\.parameters)) && Set(described).count == described.count)
        let waiting = HostMethod.all.filter(\.runsModules).map { "`\($0.name)`" }
        let list = waiting.dropLast().joined(separator: ", ") + " and " + waiting.last!
        #expect(article.contains("\n\(list) run code of modules"), "\(list)")
    }

    @Test func `The events are those of the records`() throws {
        let records = try String(
            contentsOfFile: "\(repository)/Sources/PluginHostCLI/Output/Records.swift", encoding: .utf8)
        let names = Set(records.matches(of: /"event": "(\w+)"/).map { String($0.1) }).subtracting(["profile"])
        let start = try #require(article.range(of: "`text`, and `event`: ")).upperBound
        let listed = codes(String(article[start...].prefix { $0 != "." }))
        #expect(Set(listed) == names && listed.count == names.count)
    }

    @Test func `The errors are those of the endpoint`() throws {
        let codes = try table("code", "meaning").map { $0[0] }
        let errors: [RPCError] = [
            .parse(""), .invalidRequest(""), .unknownMethod(""), .invalidParameters(""), .overloaded(""),
        ]
        #expect(codes == errors.map { "\($0.code)" })
    }

    @Test func `The limits are those of the server`() throws {
        let limits = ControlServer.Limits()
        let rows = Dictionary(uniqueKeysWithValues: try table("what", "limit").map { ($0[0], $0[1]) })
        func expect(_ row: String, _ texts: String...) {
            for text in texts { #expect(rows[row]?.contains(text) == true, "\(row): \(text)") }
        }
        expect("clients", "\(limits.connections), ", "\(limits.reserve) more")
        expect("a line", "\(limits.lineBytes >> 20) MiB", "\(limits.lineTime.components.seconds) seconds")
        expect("running requests of one client", "\(limits.requestsInFlight);")
        expect("running calls", "\(limits.calls.shared) more", "0.1 seconds")
        expect("unread answers", "\(limits.unreadBytes >> 20) MiB", "\(limits.unreadBytesInAll >> 20) MiB")
        expect("a client that does not read", "\(limits.readTime.components.seconds) seconds")
        #expect(limits.calls.patience == .milliseconds(100))
        #expect(article.contains("array of 1\nto \(RPCEndpoint.batchLimit / 1000),000 requests"))
        #expect(article.contains("keeps the last \(EventLog.limit / 1000),000. `events`"))
        #expect(article.contains("the host keeps the last \(KeptObjects.limit / 1000),000\nobjects"))
    }

    @Test func `Results have the keys that the table lists`() async throws {
        let folder = try TemporaryFolder()
        let plugins = try folder.folder("plugins")
        for name in ["libModuleA.so", "libModuleB.so"] { try folder.copy(built(name), as: "plugins/\(name)") }
        var configuration = PluginHost.Configuration(folders: [plugins])
        configuration.trustsEveryone = true
        configuration.watches = false
        configuration.stagingFolder = "\(folder.path)/staging"
        configuration.stateFolder = "\(folder.path)/state"
        for path in [configuration.stagingFolder, configuration.stateFolder] { mkdir(path!, 0o700) }
        configuration.log = { _ in }
        let local = try LocalHost(starting: configuration)
        defer { local.end() }
        let rows = try table("method", "parameters", "result")
        func keys(_ method: String) -> Set<String> {
            Set(codes(rows.first { codes($0[0]) == [method] }?[2] ?? ""))
        }
        for (method, parameters) in [
            ("list", [:]), ("problems", [:]), ("routes", [:]), ("services", [:]), ("stats", [:]),
            ("resolve", ["url": "app://shop/detail/lamp"]), ("post", ["event": "shop.sold"]), ("events", [:]),
            ("actions", ["target": "A"]), ("manifest", ["name": "ModuleA"]),
        ] as [(String, [String: Value])] {
            let answer = try await local.answer(method, .map(parameters))
            let found = answer.list?.first?.map ?? answer.map ?? [:]
            #expect(!found.isEmpty || ["problems", "stats"].contains(method), "\(method)")
            let unknown = Set(found.keys).subtracting(keys(method)).subtracting(Self.further[method] ?? [])
            #expect(unknown.isEmpty, "\(method): \(unknown)")
        }
    }

    /// Keys that the article omits.
    private static let further: [String: Set<String>] = [
        "list": ["interceptors", "restarts", "residentBytes", "processorTime"],
        "routes": ["groups", "overlapsComplete", "transition"], "stats": ["measured"],
        "resolve": ["url", "fallback", "demands", "othersComplete"],
    ]
}
