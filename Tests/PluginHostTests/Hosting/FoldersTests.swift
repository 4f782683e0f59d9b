import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Folders that are unusual or wrong when a host starts.
@Suite(.timeLimit(.minutes(30)), .serialized) struct FoldersTests {
    @Test func `A folder that does not exist is a problem, and is used once it is created`() throws {
        let test = try TestHost { configuration, folder in configuration.folders.append("\(folder.path)/later") }
        try CModule(name: "First").build(into: test.plugins, as: "first.so")
        try test.start()
        #expect(test.answer("First") == "yes")
        #expect(test.host.problems.map(\.code) == [.unreadable])
        #expect(test.host.problems.first?.message.contains("\(test.folder.path)/later does not exist") == true)
        try CModule().build(into: try test.folder.folder("later"), as: "good.so")
        #expect(eventually { test.answer() == "yes" })
        #expect(eventually { test.host.problems.isEmpty })
    }

    @Test func `A folder that is a file is a problem`() throws {
        let test = try TestHost { configuration, folder in configuration.folders = [try folder.file("file")] }
        try test.start()
        #expect(test.host.problems.map(\.code) == [.unreadable])
        #expect(test.host.problems.first?.message.contains("is not a folder") == true)
        #expect(test.host.modules.isEmpty)
    }

    @Test func `Nothing is loaded from a folder that anybody can write`() throws {
        let test = try TestHost()
        try CModule().build(into: test.plugins, as: "good.so")
        chmod(test.plugins, 0o777)
        try test.start()
        #expect(test.host.problems.map(\.code) == [.untrusted])
        #expect(test.host.problems.first?.message.contains(test.plugins) == true)
        #expect(test.host.modules.isEmpty && test.answer() == nil)
    }

    @Test func `Nothing is loaded from a folder inside one that anybody can write`() throws {
        let test = try TestHost()
        try CModule().build(into: test.plugins, as: "good.so")
        chmod(test.folder.path, 0o777)
        try test.start()
        #expect(test.host.problems.map(\.code) == [.untrusted])
        #expect(test.answer() == nil)
    }

    @Test func `A program that trusts everyone loads what anybody can write`() throws {
        let test = try TestHost { configuration, _ in configuration.trustsEveryone = true }
        chmod(try CModule().build(into: test.plugins, as: "good.so"), 0o666)
        chmod(test.plugins, 0o777)
        try test.start()
        #expect(test.answer() == "yes" && test.host.problems.isEmpty)
    }

    @Test func `A file that anybody can write is refused, and the others load`() throws {
        let test = try TestHost()
        chmod(try CModule(name: "Open").build(into: test.plugins, as: "open.so"), 0o666)
        try CModule().build(into: test.plugins, as: "good.so")
        try test.start()
        #expect(test.status("open.so")?.error?.code == .untrusted)
        #expect(test.status("open.so")?.error?.message.contains("open.so") == true)
        #expect(test.answer() == "yes")
    }

    @Test func `Modules are loaded from several folders`() throws {
        let test = try TestHost { configuration, folder in configuration.folders.append(try folder.folder("more")) }
        try CModule(name: "One").build(into: test.plugins, as: "a.so")
        try CModule(name: "Two").build(into: "\(test.folder.path)/more", as: "a.so")
        try test.start()
        #expect(test.answer("One") == "yes" && test.answer("Two") == "yes")
        #expect(test.host.modules.count == 2)
    }

    @Test func `A folder that is named twice is one folder`() throws {
        let test = try TestHost { configuration, _ in configuration.folders += configuration.folders }
        try CModule().build(into: test.plugins, as: "a.so")
        try test.start()
        #expect(test.states == ["a.so": "active"])
    }

    @Test func `A folder can be a link`() throws {
        let test = try TestHost { configuration, folder in
            #expect(symlink("plugins", "\(folder.path)/link") == 0)
            configuration.folders = ["\(folder.path)/link"]
        }
        try test.start()
        try CModule().build(into: test.plugins, as: "a.so")
        #expect(eventually { test.answer() == "yes" })
    }

    @Test func `Hidden files and files with other names are ignored`() throws {
        let test = try TestHost()
        for name in [".hidden.so", "module.so.bak", "module.so.1", "so"] {
            try CModule().build(into: test.plugins, as: name)
        }
        try test.start()
        #expect(test.host.modules.isEmpty)
    }

    @Test func `Files with unusual names are loaded`() throws {
        let test = try TestHost()
        let names = ["with space.so", "läßt.so", "new\nline.so", "-rf.so", "$(true).so", "%s%n.so"]
        for (index, name) in names.enumerated() {
            try CModule(name: "Odd\(index)").build(into: test.plugins, as: name)
        }
        try test.start()
        for index in names.indices { #expect(test.answer("Odd\(index)") == "yes", "\(names[index])") }
    }

    @Test func `A file whose name is not UTF-8 fails, and the others load`() throws {
        let test = try TestHost()
        let good = try CModule().build(into: test.plugins, as: "good.so")
        let bytes = Array(test.plugins.utf8CString.dropLast()) + [0x2F, -1, 0x2E, 0x73, 0x6F, 0]
        #expect(link(good, bytes) == 0)
        try test.start()
        #expect(test.answer() == "yes")
        #expect(test.host.modules.map(\.state.rawValue).sorted() == ["active", "failed"])
        #expect(unlink(bytes) == 0)
    }

    // MARK: Libraries beside modules

    @Test(
        arguments: zip(1..., ["plugins", "./plugins", "plugins/", "plugins//.", "plugins/../plugins", "link"]).map(
            \.self))
    func `A library that a module finds beside itself is no failure, whatever the form of the folder's path`(
        number: Int, form: String
    ) throws {
        let test = try TestHost { configuration, folder in
            configuration.folders = ["\(folder.path)/\(form)"]
            #expect(symlink("plugins", "\(folder.path)/link") == 0)
        }
        // The dynamic linker keeps only one library of each name.
        let name = "libbeside\(number)-for-test"
        let library = try CFixture.build(
            "int beside(void) { return 7; }", ["-Wl,-soname,\(name).so"], name: "\(name).so")
        try test.folder.copy(library, as: "plugins/\(name)-1.so")
        #expect(symlink("\(name)-1.so", "\(test.plugins)/\(name).so") == 0)
        let module = CModule(body: "if (beside() != 7) { refuse(call, \"no\"); return; }", code: "int beside(void);")
        try module.build(into: test.plugins, as: "good.so", [library, "-Wl,-rpath,$ORIGIN"])
        try test.start()
        #expect(test.answer() == "yes")
        #expect(test.states == ["good.so": "active", "\(name).so": "library", "\(name)-1.so": "library"])
        #expect(test.status("\(name).so")?.note == "needed by Good")
        #expect(test.changes.filter(\.isFailure).isEmpty)
    }

    // MARK: Subfolders

    @Test func `Modules in subfolders are loaded if the host is configured to search them`() throws {
        let test = try TestHost { configuration, _ in configuration.includesSubfolders = true }
        try CModule(name: "First").build(into: try test.folder.folder("plugins/a/b"), as: "a.so")
        try test.start()
        #expect(test.answer("First") == "yes")
        let new = try test.folder.folder("new")
        for name in ["One", "Two"] { try CModule(name: name).build(into: new, as: "\(name).so") }
        #expect(rename(new, "\(test.plugins)/new") == 0)
        #expect(eventually { test.answer("One") == "yes" && test.answer("Two") == "yes" })
        #expect(
            symlink(
                try CModule(name: "Linked").build(into: try test.folder.folder("out"), as: "l.so")
                    .replacing("/l.so", with: ""), "\(test.plugins)/current") == 0)
        #expect(eventually { test.answer("Linked") == "yes" })
    }

    @Test func `Nothing is loaded from a subfolder that anybody can write, and the others load`() throws {
        let test = try TestHost { configuration, _ in configuration.includesSubfolders = true }
        try CModule(name: "Open").build(into: try test.folder.folder("plugins/open"), as: "a.so")
        try CModule().build(into: try test.folder.folder("plugins/safe"), as: "a.so")
        chmod("\(test.plugins)/open", 0o777)
        try test.start()
        #expect(test.answer() == "yes" && test.answer("Open") == nil)
        #expect(test.status("open")?.error?.code == .untrusted)
    }
}
