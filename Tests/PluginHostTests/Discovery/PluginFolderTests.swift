import Foundation
import PluginABI
import Testing

@testable import PluginHost

@Suite struct PluginFolderTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `Visible names that end in .so are listed, sorted`() throws {
        for name in ["b.so", "a.so", ".hidden.so", "a.txt", "c.so.1", ".so"] { try folder.file(name) }
        try folder.folder("x.so")
        #expect(try PluginFolder.list(folder.path).map(\.name) == ["a.so", "b.so", "x.so"])
        #expect(try PluginFolder.list(folder.path + "/").first?.path == "\(folder.path)/a.so")
    }

    @Test func `A dangling link and a link loop are problems of their entries`() throws {
        symlink("missing", "\(folder.path)/a.so")
        symlink("b.so", "\(folder.path)/b.so")
        symlink(try folder.file("good"), "\(folder.path)/c.so")
        let entries = try PluginFolder.list(folder.path)
        let messages = entries.map { entry in
            switch entry.identity {
            case .success(let identity): "\(identity.size)"
            case .failure(let error): error.message
            }
        }
        #expect(messages.count == 3)
        #expect(messages[0].contains("link to a file that does not exist"))
        #expect(messages[1].contains("leads back to itself"))
        #expect(messages[2] == "0")
    }

    @Test(.enabled(if: geteuid() != 0, "root can read everything"))
    func `A file without read permission is a problem of its entry`() throws {
        try folder.file("a.so", mode: 0)
        let entry = try #require(try PluginFolder.list(folder.path).first)
        let error = #expect(throws: PluginError.self) { try entry.identity.get() }
        #expect(error?.message.contains("Permission denied") == true)
    }

    @Test func `A folder that does not exist or is none is an error`() throws {
        let file = try folder.file("file")
        for (path, text) in [("\(folder.path)/missing", "does not exist"), (file, "is not a folder")] {
            let error = #expect(throws: PluginError.self) { try PluginFolder.list(path) }
            #expect(error?.code == .unreadable)
            #expect(error?.message.contains(text) == true)
        }
    }

    @Test func `The identity changes with the content`() throws {
        let path = try folder.file("a.so", Data("1".utf8))
        let before = try PluginFolder.list(folder.path)[0].identity.get()
        #expect(try PluginFolder.list(folder.path)[0].identity.get() == before)
        try Data("22".utf8).write(to: URL(fileURLWithPath: path))
        #expect(try PluginFolder.list(folder.path)[0].identity.get() != before)
    }
}
