import Foundation
import PluginHost
import Testing

@Suite struct ModuleStateTests {
    @Test func `The article lists every state that a module can be in, and no other`() throws {
        let article = try String(
            contentsOf: URL(
                filePath: "../../../Sources/PluginHost/PluginHost.docc/HowAFileBecomesAModule.md",
                relativeTo: URL(filePath: #filePath)),
            encoding: .utf8)
        let section = try #require(article.split(separator: "## States").last)
        let words = section.split(separator: "\n").filter { $0.hasPrefix("| `") }.map { row in
            String(row.split(separator: "`")[1])
        }
        #expect(words.sorted() == ModuleStatus.State.allCases.map(\.rawValue).sorted())
    }
}
