import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

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

    @Test func `A path that does not exist or is not a folder is an error`() throws {
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

    // MARK: Subfolders

    private func names() throws -> [String] { try PluginFolder.list(folder.path, includesSubfolders: true).map(\.name) }

    @Test func `Subfolders are searched on request, except hidden ones`() throws {
        for path in ["a/b", ".hidden", "x.so"] { try folder.folder(path) }
        for path in ["m.so", "a/m.so", "a/b/m.so", "a/b/r.routes.json", ".hidden/m.so", "x.so/m.so", "a/readme"] {
            try folder.file(path)
        }
        #expect(try names() == ["a/b/m.so", "a/b/r.routes.json", "a/m.so", "m.so", "x.so/m.so"])
        let entry = try PluginFolder.list(folder.path, includesSubfolders: true)[0]
        #expect(try entry.path == "\(folder.path)/a/b/m.so" && entry.identity.get().size == 0)
        #expect(try PluginFolder.list(folder.path).map(\.name) == ["m.so", "x.so"])
    }

    @Test func `Links to folders are followed, except cycles and second paths to a folder`() throws {
        let elsewhere = try TemporaryFolder()
        try elsewhere.file("m.so")
        try folder.folder("z")
        try folder.file("z/n.so")
        symlink(elsewhere.path, "\(folder.path)/current")
        symlink("z", "\(folder.path)/also")
        symlink("..", "\(folder.path)/z/up")
        symlink(".", "\(folder.path)/self")
        symlink("missing", "\(folder.path)/dangling")
        #expect(try names() == ["current/m.so", "z/n.so"])
    }

    @Test func `Subfolders that are nested too deep are reported`() throws {
        let deep = (0...FolderWalk.depthLimit).map { "d\($0)" }
        try folder.folder(deep.joined(separator: "/"))
        try folder.file(deep.dropLast().joined(separator: "/") + "/m.so")
        try folder.file(deep.joined(separator: "/") + "/n.so")
        let entries = try PluginFolder.list(folder.path, includesSubfolders: true)
        #expect(entries.map(\.isFolder) == [true, false])
        let error = #expect(throws: PluginError.self) { try entries[0].identity.get() }
        #expect(error?.message.contains("d8 is more than 8 levels deep") == true, "\(error?.message ?? "")")
    }

    @Test func `A subfolder that others can write is reported and not searched`() throws {
        for name in ["open", "safe"] {
            try folder.folder(name)
            try folder.file("\(name)/m.so")
        }
        chmod("\(folder.path)/open", 0o777)
        let entries = try PluginFolder.list(folder.path, includesSubfolders: true, checksTrust: true)
        #expect(entries.map(\.name) == ["open", "safe/m.so"])
        let error = #expect(throws: PluginError.self) { try entries[0].identity.get() }
        #expect(error?.code == .untrusted)
        #expect(try names() == ["open/m.so", "safe/m.so"])
    }

    @Test(.enabled(if: geteuid() != 0, "root can read everything"))
    func `A subfolder that cannot be read is reported, and the rest is listed`() throws {
        try folder.folder("closed", mode: 0)
        try folder.file("m.so")
        let entries = try PluginFolder.list(folder.path, includesSubfolders: true)
        #expect(entries.map(\.name) == ["closed", "m.so"] && entries.map(\.isFolder) == [true, false])
        let error = #expect(throws: PluginError.self) { try entries[0].identity.get() }
        #expect(error?.message.contains("closed cannot be read: Permission denied") == true)
        chmod("\(folder.path)/closed", 0o755)
    }
}
