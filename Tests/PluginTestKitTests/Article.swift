import Foundation

@testable import TestSupport

/// An article of the guide for module authors, read from the repository.
struct Article {
    let name: String
    private let lines: [Substring]

    /// - Parameters:
    ///   - name: Its file name without folder and extension.
    ///   - library: The library that it belongs to.
    init(_ name: String, of library: String = "PluginABI") throws {
        self.name = name
        lines = try String(
            contentsOfFile: "\(repository)/Sources/\(library)/\(library).docc/\(name).md", encoding: .utf8
        ).split(separator: "\n", omittingEmptySubsequences: false)
    }

    /// The code blocks in a language, in order.
    func blocks(_ language: String) -> [String] {
        var blocks: [String] = []
        var block: [Substring]?
        for line in lines {
            if line == "```\(language)" {
                block = []
            } else if line == "```", let text = block {
                blocks.append(text.joined(separator: "\n") + "\n")
                block = nil
            } else {
                block?.append(line)
            }
        }
        return blocks
    }
}
