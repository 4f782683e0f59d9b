import Foundation
import PluginABI
import PluginFile
import Testing

@testable import PluginHost
@testable import TestSupport

/// Copies that are made while earlier ones are opened.
@Suite struct CopiesAheadTests {
    let folder: TemporaryFolder
    let staging: Staging

    init() throws {
        folder = try TemporaryFolder()
        try folder.folder("plugins")
        staging = try Staging(base: "\(folder.path)/staging")
    }

    private func modules(_ count: Int) throws -> [String] {
        let module = try CFixture.build(CFixture.entry)
        return try (0..<count).map { try folder.copy(module, as: "plugins/\($0).so") }
    }

    private func staged(_ index: Int, _ ahead: CopiesAhead) throws -> StagedFile {
        let begun = try #require(try ahead.take(index))
        return try #require(try staging.finish(begun))
    }

    @Test func `Each file gets its own copy, or its own error`() throws {
        var paths = try modules(40)
        for index in [3, 20, 39] { paths[index] = try folder.file("plugins/bad\(index).so", Data("no module".utf8)) }
        let ahead = CopiesAhead(paths, staging, checkTrust: true, Profiler())
        defer { ahead.end() }
        for (index, path) in paths.enumerated() {
            if [3, 20, 39].contains(index) {
                let error = #expect(throws: PluginError.self) { try ahead.take(index) }
                #expect(error?.code == .invalidFile && error?.message.contains(path) == true)
            } else {
                let copy = try staged(index, ahead)
                #expect(copy.original == path)
                #expect(FileManager.default.contentsEqual(atPath: copy.path, andPath: path))
            }
        }
    }

    @Test func `Only a few files are copied ahead, and copies that are not taken are removed`() throws {
        let paths = try modules(100)
        let ahead = CopiesAhead(paths, staging, checkTrust: true, Profiler())
        let first = try staged(0, ahead)
        #expect(staging.work.copies <= 16)
        // Some are not opened.
        let other = try staged(30, ahead)
        #expect(staging.work.copies <= 40)
        ahead.end()
        let copies = try FileManager.default.contentsOfDirectory(atPath: first.path.parentFolder)
        #expect(copies.sorted() == [first, other].map(\.path.fileName).sorted())
    }

    @Test func `The other thread copies ahead while nobody waits, and goes on when copies are taken`() throws {
        let paths = try modules(30)
        let ahead = CopiesAhead(paths, staging, checkTrust: true, Profiler())
        defer { ahead.end() }
        for index in paths.indices {
            _ = try staged(index, ahead)
            #expect(eventually { staging.work.copies >= min(index + 5, paths.count) })
            #expect(staging.work.copies <= index + 9)
        }
    }

    @Test func `A file that has changed since it was copied ahead is copied again`() throws {
        let paths = try modules(10)
        let ahead = CopiesAhead(paths, staging, checkTrust: true, Profiler())
        defer { ahead.end() }
        let first = try staged(0, ahead)
        try FileManager.default.removeItem(atPath: paths[5])
        let other = try CFixture.build(CFixture.entry + "int plugin_other_\(paths.count);")
        _ = try folder.copy(other, as: "plugins/5.so")
        try FileManager.default.removeItem(atPath: paths[6])
        let second = try staged(5, ahead)
        #expect(second.digest != first.digest)
        #expect(FileManager.default.contentsEqual(atPath: second.path, andPath: paths[5]))
        #expect(throws: PluginError.self) { try ahead.take(6) }
    }

    @Test func `Without files, nothing is copied`() throws {
        CopiesAhead([], staging, checkTrust: true, Profiler()).end()
        #expect(staging.work.copies == 0)
    }
}
