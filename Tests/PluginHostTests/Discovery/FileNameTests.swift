import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// File names are bytes.
@Suite struct FileNameTests {
    private let composed = "\u{E9}"
    private let decomposed = "e\u{301}"

    @Test func `Texts that look the same are different keys if their bytes differ`() {
        #expect(composed == decomposed && PathKey(composed) != PathKey(decomposed))
        #expect(Set(paths: [composed, decomposed, composed]).count == 2)
        #expect(PathKey("a") < PathKey("b") && PathKey(decomposed) < PathKey(composed))
        var table: [PathKey: Int] = [:]
        table[composed] = 1
        table[decomposed] = 2
        #expect(table[composed] == 1 && table.count == 2)
    }

    @Test func `Two normalization forms of one name are two files, each with its own module`() throws {
        let test = try TestHost()
        for (name, file) in [("Composed", composed), ("Decomposed", decomposed)] {
            try CModule(name: name, answer: "first").build(into: test.plugins, as: "\(file).so")
            try test.folder.file(
                "plugins/\(file).routes.json", Data("{\"app://\(name)\": \"\(name)/answer\"}".utf8))
        }
        try test.start()
        #expect(test.answer("Composed") == "first" && test.answer("Decomposed") == "first")
        #expect(test.host.modules.count == 2 && test.host.problems.isEmpty)
        #expect(test.host.routes.count == 2)
        try CModule(name: "Decomposed", answer: "second").build(into: test.plugins, as: "\(decomposed).so")
        #expect(eventually { test.answer("Decomposed") == "second" })
        unlink("\(test.plugins)/\(decomposed).so")
        unlink("\(test.plugins)/\(decomposed).routes.json")
        #expect(eventually { test.answer("Decomposed") == nil && test.host.routes.count == 1 })
        #expect(test.answer("Composed") == "first" && test.host.modules.count == 1)
    }

    @Test func `Each file whose name is not UTF-8 fails, and is identified by the bytes of its name`() throws {
        let test = try TestHost { configuration, _ in configuration.includesSubfolders = true }
        for byte in [0xE9, 0xE8] as [UInt8] {
            let path = Array("\(test.plugins)/".utf8) + [byte] + Array(".so".utf8) + [0]
            let descriptor = path.withUnsafeBytes {
                open($0.baseAddress!.assumingMemoryBound(to: CChar.self), O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
            }
            try #require(descriptor >= 0)
            close(descriptor)
        }
        let name = Array("\(test.plugins)/".utf8) + [0xFF, 0]
        try #require(
            name.withUnsafeBytes { mkdir($0.baseAddress!.assumingMemoryBound(to: CChar.self), 0o755) } == 0)
        try CModule().build(into: test.plugins, as: "Good.so")
        try test.start()
        #expect(test.answer() == "yes")
        let failed = test.host.modules.filter { $0.state == .failed }
        #expect(
            failed.map { ($0.file as NSString).lastPathComponent } == [
                "\\xe8.so (not UTF-8)", "\\xe9.so (not UTF-8)", "\\xff (not UTF-8)",
            ])
        #expect(failed.allSatisfy { $0.error?.message.contains("name is not valid UTF-8. Rename it") == true })
    }
}
