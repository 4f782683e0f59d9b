import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Changes that users make to a folder while its host runs.
@Suite(.timeLimit(.minutes(30)), .serialized) struct WatchingTests {
    let test: TestHost

    init() throws {
        test = try TestHost()
        try CModule(name: "First").build(into: test.plugins, as: "first.so")
        try test.start()
    }

    private func write(_ bytes: Data, to path: String, _ flags: Int32) throws -> Int32 {
        let descriptor = open(path, flags | O_CLOEXEC, 0o644)
        try #require(descriptor >= 0)
        bytes.withUnsafeBytes { #expect(Glibc.write(descriptor, $0.baseAddress, $0.count) == $0.count) }
        return descriptor
    }

    // MARK: Adding

    @Test func `A file that is renamed into the folder can be called`() throws {
        try CModule().build(into: test.plugins, as: "good.so")
        #expect(eventually { test.answer() == "yes" })
    }

    @Test func `A file that is copied into the folder can be called`() throws {
        try copyFile(CModule().build(), to: "\(test.plugins)/good.so")
        #expect(eventually { test.answer() == "yes" })
    }

    @Test func `A hard link can be called`() throws {
        let file = try CModule().build(into: test.folder.path, as: "elsewhere.so")
        #expect(link(file, "\(test.plugins)/good.so") == 0)
        #expect(eventually { test.answer() == "yes" })
    }

    @Test func `A symbolic link can be called`() throws {
        #expect(symlink(try CModule().build(), "\(test.plugins)/good.so") == 0)
        #expect(eventually { test.answer() == "yes" })
    }

    @Test func `A link that exists before its file is loaded when the file is added`() throws {
        let elsewhere = try test.folder.folder("elsewhere")
        #expect(symlink("\(elsewhere)/later.so", "\(test.plugins)/good.so") == 0)
        #expect(eventually { test.states["good.so"] == "failed" })
        try CModule().build(into: elsewhere, as: "later.so")
        #expect(eventually { test.answer() == "yes" })
    }

    @Test func `A file is not loaded while it is being written`() throws {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: CModule().build()))
        let file = "\(test.plugins)/good.so"
        // The file is complete, but its writer has not closed it.
        let descriptor = try write(bytes, to: file, O_WRONLY | O_CREAT)
        #expect(eventually { test.states["good.so"] == "waiting" })
        #expect(test.status("good.so")?.error?.message.contains("being written") == true)
        #expect(try test.waitForChanges())
        #expect(test.answer() == nil)
        close(descriptor)
        #expect(eventually { test.answer() == "yes" })
        #expect(!test.changes.contains { $0.isFailure })
    }

    @Test func `A file that is written through a hard link elsewhere is loaded when it is closed`() throws {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: CModule().build()))
        let elsewhere = "\(test.folder.path)/elsewhere"
        let descriptor = try write(bytes, to: elsewhere, O_WRONLY | O_CREAT)
        #expect(link(elsewhere, "\(test.plugins)/good.so") == 0)
        #expect(eventually { test.states["good.so"] == "waiting" })
        close(descriptor)
        #expect(eventually { test.answer() == "yes" })
    }

    @Test func `An incomplete file fails, and is loaded once it is complete`() throws {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: CModule().build()))
        let file = "\(test.plugins)/good.so"
        close(try write(bytes.prefix(bytes.count / 2), to: file, O_WRONLY | O_CREAT))
        #expect(eventually { test.states["good.so"] == "failed" })
        close(try write(bytes.dropFirst(bytes.count / 2), to: file, O_WRONLY | O_APPEND))
        #expect(eventually { test.answer() == "yes" })
        #expect(test.states["good.so"] == "active")
    }

    @Test func `Many files at once are all loaded`() throws {
        for number in 1...30 { try CModule(name: "Many\(number)").build(into: test.plugins, as: "m\(number).so") }
        for number in 1...30 { #expect(eventually { test.answer("Many\(number)") == "yes" }) }
    }

    @Test func `A module is tried again when its missing library is added`() throws {
        let library = try CFixture.build(
            "int late_for_test(void) { return 7; }", ["-Wl,-soname,liblate-for-test.so"], name: "liblate-for-test.so")
        var module = CModule()
        module.code = "int late_for_test(void);"
        module.body = "if (late_for_test() != 7) { refuse(call, \"no\"); return; }"
        try module.build(into: test.plugins, as: "good.so", [library, "-Wl,-rpath,$ORIGIN"])
        #expect(eventually { test.states["good.so"] == "failed" })
        try test.folder.copy(library, as: "plugins/liblate-for-test.so")
        #expect(eventually { test.answer() == "yes" })
    }

    // MARK: Broken files

    @Test func `A broken file is reported once`() throws {
        try test.folder.file("plugins/broken.so", Data("text".utf8))
        #expect(eventually { test.states["broken.so"] == "failed" })
        #expect(try test.waitForChanges())
        #expect(try test.waitForChanges())
        #expect(test.changes.filter { $0.file == "broken.so" }.count == 1)
    }

    @Test func `A broken file is tried again when it changes`() throws {
        let file = try test.folder.file("plugins/broken.so", Data("text".utf8))
        #expect(eventually { test.states["broken.so"] == "failed" })
        unlink(file)
        #expect(eventually { test.states["broken.so"] == nil })
        try CModule().build(into: test.plugins, as: "broken.so")
        #expect(eventually { test.answer() == "yes" })
    }

    @Test func `A file that anybody can write is refused, and loaded once that is repaired`() throws {
        let file = try CModule().build(into: test.folder.path, as: "elsewhere.so")
        chmod(file, 0o666)
        rename(file, "\(test.plugins)/good.so")
        #expect(eventually { test.status("good.so")?.error?.code == .untrusted })
        chmod("\(test.plugins)/good.so", 0o644)
        #expect(eventually { test.answer() == "yes" })
    }

    // MARK: The files of loaded modules

    @Test func `A module continues to serve when its file is overwritten with nonsense, which is reported once`()
        throws
    {
        let descriptor = try write(Data(repeating: 0, count: 4096), to: "\(test.plugins)/first.so", O_WRONLY | O_TRUNC)
        #expect(test.answer("First") == "yes")
        close(descriptor)
        #expect(eventually { test.changes.contains { $0.isFailure } })
        #expect(try test.waitForChanges())
        #expect(test.changes.filter(\.isFailure).map(\.file) == ["first.so"])
        #expect(test.changes.first(where: \.isFailure)?.description.contains("First 1.0.0 continues to serve") == true)
        #expect(test.answer("First") == "yes" && test.states["first.so"] == "active")
        #expect(test.status("first.so")?.note?.contains("changed") == true)
        #expect(test.status("first.so")?.error?.code == .invalidFile)
    }

    @Test func `A module is removed when its file is deleted, and the error of a call says that it was there`() throws {
        unlink("\(test.plugins)/first.so")
        #expect(eventually { test.changes.contains(where: \.isRemoval) })
        #expect(test.states.isEmpty)
        let error = test.failure("First")
        #expect(error?.code == .moduleUnavailable)
        #expect(error?.message.contains("First 1.0.0") == true && error?.message.contains("first.so is gone") == true)
        #expect(eventually { test.changes.contains(where: \.isRetirement) })
        #expect(test.host.generations.map(\.state) == [.retired])
    }

    @Test func `A module that is added again is a new generation`() throws {
        let first = try #require(test.status("first.so")?.generation)
        unlink("\(test.plugins)/first.so")
        #expect(eventually { test.answer("First") == nil })
        try CModule(name: "First").build(into: test.plugins, as: "first.so")
        #expect(eventually { test.answer("First") == "yes" })
        #expect(try #require(test.status("first.so")?.generation) > first)
    }

    @Test func `A file that replaces a module's file replaces the module`() throws {
        try CModule(name: "First", version: "9.0.0", answer: "new").build(into: test.plugins, as: "first.so")
        #expect(eventually { test.answer("First") == "new" })
        #expect(eventually { test.changes.contains(where: \.isRetirement) })
        #expect(test.changes.first(where: \.isReplacement)?.description.contains("First 1.0.0 with 9.0.0") == true)
        #expect(test.host.generations.map(\.state) == [.active, .retired])
    }

    @Test func `A downgrade is allowed and reported`() throws {
        try CModule(name: "First", version: "0.9.0", answer: "old").build(into: test.plugins, as: "first.so")
        #expect(eventually { test.answer("First") == "old" })
        #expect(eventually { test.changes.contains { $0.description.contains("First 1.0.0 with 0.9.0") } })
    }

    @Test func `A file that turns into another module is refused, and its own module continues to serve`() throws {
        try CModule(name: "Other").build(into: test.plugins, as: "first.so")
        #expect(eventually { test.status("first.so")?.error?.code == .conflict })
        let message = test.status("first.so")?.error?.message
        #expect(message?.contains("contained First 1.0.0") == true && message?.contains("Other 1.0.0") == true)
        #expect(test.answer("First") == "yes" && test.answer("Other") == nil)
    }

    @Test func `A file that turns into another module is served if its own module has moved to another file`() throws {
        try CModule(name: "Other").build(into: test.plugins, as: "first.so")
        #expect(eventually { test.status("first.so")?.error?.code == .conflict })
        try CModule(name: "First", version: "1.0.1", answer: "moved").build(into: test.plugins, as: "second.so")
        #expect(eventually { test.answer("First") == "moved" && test.answer("Other") == "yes" })
        #expect(test.states == ["first.so": "active", "second.so": "active"])
    }

    @Test func `Two files can exchange their modules`() throws {
        try CModule(name: "Second").build(into: test.plugins, as: "second.so")
        #expect(eventually { test.answer("Second") == "yes" })
        try CModule(name: "First", version: "2.0.0", answer: "new").build(into: test.plugins, as: "second.so")
        try CModule(name: "Second", version: "2.0.0", answer: "new").build(into: test.plugins, as: "first.so")
        #expect(eventually { test.answer("First") == "new" && test.answer("Second") == "new" })
        #expect(eventually { test.states == ["first.so": "active", "second.so": "active"] })
    }

    @Test func `A file that is touched, linked or written again with the same content counts as unchanged`() throws {
        let file = "\(test.plugins)/first.so"
        chmod(file, 0o600)
        utimes(file, nil)
        #expect(link(file, "\(test.folder.path)/second-name") == 0)
        #expect(try test.waitForChanges())
        try CModule(name: "First").build(into: test.plugins, as: "first.so")
        #expect(try test.waitForChanges())
        #expect(test.changes.filter { $0.file == "first.so" }.isEmpty)
        #expect(test.status("first.so")?.note == nil)
    }

    @Test func `A file that cannot be read is reported, and its module continues to serve`() throws {
        let generation = test.status("first.so")?.generation
        symlink("first.so", "\(test.plugins)/cycle")
        rename("\(test.plugins)/cycle", "\(test.plugins)/first.so")
        #expect(eventually { test.status("first.so")?.error?.code == .unreadable })
        #expect(test.answer("First") == "yes" && test.status("first.so")?.generation == generation)
        try CModule(name: "First").build(into: test.plugins, as: "first.so")
        #expect(eventually { test.status("first.so")?.error == nil })
        #expect(test.status("first.so")?.generation == generation)
    }

    // MARK: The folder

    @Test func `Modules continue to serve while their folder is renamed away, and new ones load once it is back`()
        throws
    {
        rename(test.plugins, "\(test.folder.path)/away")
        #expect(eventually { test.host.problems.contains { $0.message.contains(test.plugins) } })
        #expect(test.answer("First") == "yes")
        #expect(eventually { test.changes.contains { $0.isProblem } })
        try FileManager.default.createDirectory(atPath: test.plugins, withIntermediateDirectories: false)
        chmod(test.plugins, 0o755)
        try CModule().build(into: test.plugins, as: "good.so")
        #expect(eventually { test.answer() == "yes" })
        #expect(eventually { test.host.problems.isEmpty })
    }

    @Test func `A folder that becomes writable for anybody is reported, and ignored until that is repaired`() throws {
        chmod(test.plugins, 0o777)
        #expect(eventually { test.host.problems.contains { $0.code == .untrusted } })
        try CModule().build(into: test.plugins, as: "good.so")
        #expect(test.answer("First") == "yes")
        chmod(test.plugins, 0o755)
        #expect(eventually { test.answer() == "yes" })
        #expect(test.host.problems.isEmpty)
    }
}
