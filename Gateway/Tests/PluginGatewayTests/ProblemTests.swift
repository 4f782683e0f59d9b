import Foundation
import PluginABI
import Testing

@testable import PluginGateway

@Suite struct ProblemTests {
    private static let readMe = URL(filePath: #filePath).appending(path: "../../../README.md").standardized

    @Test func `the statuses are those of the table in the README`() throws {
        let text = try String(contentsOf: Self.readMe, encoding: .utf8)
        let section = try #require(text.components(separatedBy: "\n## ").first { $0.hasPrefix("Errors\n") })
        var rows = 0
        var unlisted = Set(Problem.statuses.keys.map(\.rawValue))
        for line in section.split(separator: "\n") where line.hasPrefix("| ") {
            let cells = line.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
            let statuses = cells[1].split { !$0.isNumber }.compactMap { Int($0) }
            // Another rule determines the status of errors of changes of modules.
            let words = cells[2].components(separatedBy: "of a change of modules")[0].split(
                separator: "`", omittingEmptySubsequences: false)
            let codes = words.enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) }
                .filter { $0.allSatisfy(\.isLetter) && $0.first?.isLowercase == true }
            if statuses.isEmpty { continue }
            rows += 1
            unlisted.subtract(codes)
            for code in codes {
                let status = Problem.statuses[.init(rawValue: code)]?.code
                #expect(status.map(statuses.contains) == true, "\(code): \(status ?? 0), not \(statuses)")
                let isFault = (statuses.first ?? 0) >= 500
                let ofModule = Problem.status(of: PluginError(.init(rawValue: code), "", source: "M")).code
                #expect(ofModule == (isFault ? status : 422), "\(code) of a module")
            }
        }
        #expect(rows == 12)
        #expect(unlisted.sorted() == [])
    }
}
