import CDispatch
import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

@Suite struct TrustTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `A folder that only its user can write is trusted, also inside a sticky one`() throws {
        try Trust.check(folder: folder.folder("a"))
    }

    @Test func `A folder that anybody or the group can write is refused, with its mode and the remedy`() throws {
        for (mode, who) in [(mode_t(0o777), "anybody"), (0o775, "group gid"), (0o1777, "anybody")] {
            let path = try folder.folder("open\(mode)", mode: mode)
            let error = #expect(throws: PluginError.self) { try Trust.check(folder: path) }
            #expect(error?.code == .untrusted)
            let text = error?.message ?? ""
            #expect(
                text.contains("mode 0\(String(mode, radix: 8))") && text.contains(who) && text.contains("chmod go-w"))
        }
    }

    @Test func `A folder inside one that anybody can write is refused, unless the outer one is sticky`() throws {
        let outer = try folder.folder("outer", mode: 0o777)
        let inner = try folder.folder("outer/inner")
        let error = #expect(throws: PluginError.self) { try Trust.check(folder: inner) }
        #expect(error?.message.contains("could replace \(inner)") == true)
        chmod(outer, 0o1777)
        try Trust.check(folder: inner)
    }

    @Test func `Links are resolved first`() throws {
        let open = try folder.folder("open", mode: 0o777)
        symlink(open, "\(folder.path)/link")
        #expect(throws: PluginError.self) { try Trust.check(folder: "\(folder.path)/link") }
        #expect(throws: PluginError.self) { try Trust.check(folder: "\(folder.path)/missing") }
    }

    @Test func `Every folder on the way of a link is checked, not only the last one`() throws {
        let safe = try folder.folder("safe")
        try folder.file("safe/a.so")
        let open = try folder.folder("open", mode: 0o777)
        symlink(safe, "\(open)/middle")
        symlink("open/middle", "\(folder.path)/first")
        let error = #expect(throws: PluginError.self) { try Trust.check(folder: "\(folder.path)/first") }
        #expect(error?.code == .untrusted && error?.message.contains("\(open) has mode 0777") == true)
        #expect(throws: PluginError.self) { try Trust.check(wayTo: "\(folder.path)/first/a.so") }
        chmod(open, 0o755)
        try Trust.check(folder: "\(folder.path)/first")
        try Trust.check(wayTo: "\(folder.path)/first/../safe/./a.so")
        symlink("loop", "\(folder.path)/loop")
        #expect(throws: PluginError.self) { try Trust.check(wayTo: "\(folder.path)/loop") }
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give files to another user"))
    func `A link of another user is refused, also in a sticky folder`() throws {
        let sticky = try folder.folder("sticky", mode: 0o1777)
        symlink(try folder.folder("safe"), "\(sticky)/link")
        try Trust.check(folder: "\(sticky)/link")
        try #require(lchown("\(sticky)/link", 4711, 4711) == 0)
        let error = #expect(throws: PluginError.self) { try Trust.check(folder: "\(sticky)/link") }
        #expect(error?.message.contains("owner uid 4711") == true)
    }

    @Test func `A file that others can write is refused`() throws {
        for (mode, isTrusted) in [(mode_t(0o644), true), (0o600, true), (0o664, false), (0o646, false), (0o777, false)]
        {
            let path = try folder.file("file\(mode)", mode: mode)
            let descriptor = open(path, O_RDONLY)
            defer { close(descriptor) }
            let result = Result { try Trust.check(fileDescriptor: descriptor, path: path) }
            #expect(((try? result.get()) != nil) == isTrusted)
        }
    }

    @Test func `A file or folder of another user is refused, but not one of root`() {
        var status = stat()
        status.st_mode = S_IFREG | 0o644
        status.st_uid = geteuid() &+ 4711
        let error = #expect(throws: PluginError.self) { try Trust.check(status: status, path: "x.so", above: nil) }
        #expect(error?.message.contains("owner uid \(status.st_uid)") == true)
        status.st_uid = 0
        #expect(throws: Never.self) { try Trust.check(status: status, path: "x.so", above: nil) }
    }
}
