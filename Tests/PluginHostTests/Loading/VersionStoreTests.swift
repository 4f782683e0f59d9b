import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

@Suite struct VersionStoreTests {
    let folder: TemporaryFolder
    let plugins: String
    let staging: Staging

    init() throws {
        folder = try TemporaryFolder()
        plugins = try folder.folder("plugins")
        staging = try Staging(base: "\(folder.path)/staging")
    }

    private func store(_ limit: VersionStore.Limit = .init()) -> VersionStore {
        VersionStore(stateFolder: "\(folder.path)/state", limit: limit)
    }

    private func version(_ text: String) throws -> SemanticVersion { try #require(SemanticVersion(text)) }

    /// Puts a module into the plugins folder, a different one for each number.
    private func module(_ number: Int, as name: String = "M.so") throws -> String {
        let source = try CFixture.build(CFixture.entry + "int number_\(number) = \(number);")
        unlink("\(plugins)/\(name)")
        return try folder.copy(source, as: "plugins/\(name)")
    }

    private func stage(_ path: String) throws -> StagedFile {
        try staging.stageWhenWritten(path: path, checkTrust: false)
    }

    private func keep(_ number: Int, in store: VersionStore, module name: String = "M") throws {
        try store.keep(
            stage(module(number, as: "\(name).so")), module: name, version: version("1.\(number).0"), folder: plugins)
    }

    private func content(_ path: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path)) }

    private func names(_ path: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path).sorted()
    }

    /// The folder of the only module that is kept.
    private func home() throws -> String {
        let state = "\(folder.path)/state/versions"
        return "\(state)/\(try #require(try names(state).first { $0 != "lock" }))"
    }

    // MARK: Keep

    @Test func `Versions are kept by module and folder, the most recently kept first`() throws {
        let store = store()
        for number in 1...3 { try keep(number, in: store) }
        try keep(9, in: store, module: "Other")
        let versions = store.versions(of: "M", folder: plugins)
        #expect(versions.map(\.version.description) == ["1.3.0", "1.2.0", "1.1.0"])
        let newest = try #require(versions.first)
        #expect(newest.module == "M" && newest.fileName == "M.so" && abs(newest.date.timeIntervalSinceNow) < 3600)
        let original = try content(module(3))
        #expect(newest.bytes == original.count)
        #expect(newest.digest == (try stage("\(plugins)/M.so").digest))
        #expect(try content("\(newest.path)/0") == original)
        #expect(store.versions(of: "Other", folder: plugins).count == 1)
        #expect(store.versions(of: "M", folder: folder.path).isEmpty)
        symlink(plugins, "\(folder.path)/link")
        #expect(store.versions(of: "M", folder: "\(folder.path)/link") == versions)
        #expect(self.store().versions(of: "M", folder: plugins) == versions, "another host sees the same")
        #expect(store.problems.isEmpty)
    }

    @Test func `Content that is kept again gets a new time, and no second copy`() throws {
        let store = store()
        for number in [1, 2, 1] { try keep(number, in: store) }
        #expect(store.versions(of: "M", folder: plugins).map(\.version.description) == ["1.1.0", "1.2.0"])
    }

    @Test func `Only the user can enter the store`() throws {
        try keep(1, in: store())
        let home = try home()
        for path in ["\(folder.path)/state", "\(folder.path)/state/versions", home, "\(home)/\(try names(home)[0])"] {
            #expect(
                try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o700, "\(path)")
        }
    }

    @Test func `A module with a name of the maximum length is kept`() throws {
        let name = String(repeating: "M", count: 256)
        let store = store()
        try store.keep(stage(module(1)), module: name, version: version("1.0.0"), folder: plugins)
        #expect(store.versions(of: name, folder: plugins).count == 1)
    }

    // MARK: Limits

    @Test func `The oldest versions of a module are removed when there are too many`() throws {
        let store = store(.init(versions: 2))
        for number in 1...4 { try keep(number, in: store) }
        #expect(store.versions(of: "M", folder: plugins).map(\.version.description) == ["1.4.0", "1.3.0"])
    }

    @Test func `The oldest of all versions are removed when they are too large, but never a module's last one`()
        throws
    {
        let size = try content(module(0)).count
        let store = store(.init(versions: 5, bytes: size * 3 + size / 2))
        for number in 1...3 { try keep(number, in: store) }
        try keep(4, in: store, module: "Other")
        #expect(store.versions(of: "M", folder: plugins).map(\.version.description) == ["1.3.0", "1.2.0"])
        let tiny = self.store(.init(versions: 0, bytes: 0))
        try keep(5, in: tiny, module: "Third")
        for module in ["M", "Other", "Third"] {
            #expect(store.versions(of: module, folder: plugins).count == 1, "\(module)")
        }
    }

    // MARK: Restore

    @Test func `A version that is restored has the name and the content that it had`() throws {
        let store = store()
        let first = try content(module(1))
        try keep(1, in: store)
        try keep(2, in: store)
        let kept = try #require(store.versions(of: "M", folder: plugins).last)
        let before = try PluginFolder.list(plugins)[0].identity.get()
        try store.restore(kept, to: plugins)
        #expect(try content("\(plugins)/M.so") == first)
        #expect(try names(plugins) == ["M.so"])
        #expect(try PluginFolder.list(plugins)[0].identity.get().inode != before.inode, "by rename")
        try Trust.check(folder: plugins)
        _ = try staging.stageWhenWritten(path: "\(plugins)/M.so", checkTrust: true)
        unlink("\(plugins)/M.so")
        try store.restore(kept, to: plugins)
        #expect(try content("\(plugins)/M.so") == first)
    }

    @Test func `A version whose copy had another name is restored under its original name`() throws {
        let store = store()
        let name = "\u{1B}[2J.so"
        try store.keep(stage(module(1, as: name)), module: "M", version: version("1.0.0"), folder: plugins)
        let kept = try #require(store.versions(of: "M", folder: plugins).last)
        #expect(kept.fileName == name)
        unlink("\(plugins)/\(name)")
        try store.restore(kept, to: plugins)
        #expect(try names(plugins) == [name])
    }

    @Test func `Libraries that came with a module are kept and restored with it`() throws {
        let library = try CFixture.build(
            "int beside(void) { return 1; }", ["-Wl,-soname,libbeside-kept.so"], name: "libbeside-kept.so")
        let module = try CFixture.build(
            "int beside(void); int call(void) { return beside(); }" + CFixture.entry,
            [library, "-Wl,-rpath,$ORIGIN/../lib"], name: "libneeds-kept.so")
        let original = try folder.copy(module, as: "plugins/N.so")
        try folder.folder("lib")
        let beside = try folder.copy(library, as: "lib/libbeside-kept.so")
        let store = store()
        let staged = try stage(original)
        #expect(staged.libraries == [beside])
        try store.keep(staged, module: "N", version: version("1.0.0"), folder: plugins)
        let kept = try #require(store.versions(of: "N", folder: plugins).first)
        #expect(kept.files.map(\.path) == ["N.so", "../lib/libbeside-kept.so"])
        let contents = [try content(original), try content(beside)]
        // The module is removed with its file, and libraries that other modules may need stay.
        try store.keep(file: original, module: "N", version: version("1.0.0"), folder: plugins)
        #expect(store.versions(of: "N", folder: plugins).map(\.files) == [kept.files])
        try FileManager.default.removeItem(atPath: "\(folder.path)/lib")
        try store.restore(kept, to: plugins)
        #expect([try content(original), try content(beside)] == contents)
        #expect(try names("\(folder.path)/lib") == ["libbeside-kept.so"])
    }

    @Test func `The remains of an interrupted restore do no harm`() throws {
        let store = store()
        try keep(1, in: store)
        let kept = try #require(store.versions(of: "M", folder: plugins).first)
        let digits = String(kept.digest, radix: 16)
        let left = ".pluginhost-" + String(repeating: "0", count: 16 - digits.count) + digits + ".new"
        try folder.file("plugins/\(left)", Data("half".utf8))
        try store.restore(kept, to: plugins)
        #expect(try names(plugins) == ["M.so"])
    }

    // MARK: Files without a copy

    @Test func `A file can be kept directly from the folder and restored`() throws {
        let store = store()
        let path = try module(1)
        let original = try content(path)
        try store.keep(file: path, module: "M", version: version("1.0.0"), folder: plugins)
        #expect(try names(plugins) == ["M.so"])
        unlink(path)
        try store.restore(try #require(store.versions(of: "M", folder: plugins).first), to: plugins)
        #expect(try content(path) == original)
    }

    @Test func `The content of a link is kept`() throws {
        let store = store()
        let file = try module(1, as: "M-1.0")
        symlink("M-1.0", "\(plugins)/M.so")
        try store.keep(file: "\(plugins)/M.so", module: "M", version: version("1.0.0"), folder: plugins)
        let kept = try #require(store.versions(of: "M", folder: plugins).first)
        #expect(try kept.fileName == "M.so" && content("\(kept.path)/0") == content(file))
    }

    @Test func `A file that cannot be kept stays where it is`() throws {
        let path = try module(1)
        try folder.file("state")
        let error = #expect(throws: PluginError.self) {
            try store().keep(file: path, module: "M", version: version("1.0.0"), folder: plugins)
        }
        #expect(error?.message.contains("\(path) cannot be moved to the kept versions: ") == true)
        #expect(try names(plugins) == ["M.so"])
    }

    @Test func `A state folder that cannot be created is reported with the reason`() throws {
        // No user can create a folder there.
        let store = VersionStore(stateFolder: "/sys/pluginhost/state", limit: .init())
        let path = try module(1)
        let error = #expect(throws: PluginError.self) {
            try store.keep(file: path, module: "M", version: version("1.0.0"), folder: plugins)
        }
        #expect(error?.message.contains("cannot be moved to the kept versions: ") == true)
        #expect(error?.message.contains("No such file") == false, "\(error?.message ?? "")")
    }

    // MARK: Damage

    @Test func `Versions that were damaged by hand are left out and reported, and the rest is usable`() throws {
        let store = store()
        for number in 1...5 { try keep(number, in: store) }
        let paths = store.versions(of: "M", folder: plugins).map(\.path)
        unlink("\(paths[1])/0")
        try Data("{".utf8).write(to: URL(fileURLWithPath: "\(paths[2])/version.json"))
        try Data("short".utf8).write(to: URL(fileURLWithPath: "\(paths[3])/0"))
        let text = try String(contentsOfFile: "\(paths[4])/version.json", encoding: .utf8)
        try Data(text.replacing("M.so", with: "../../M.so").utf8)
            .write(to: URL(fileURLWithPath: "\(paths[4])/version.json"))
        #expect(store.versions(of: "M", folder: plugins).map(\.path) == [paths[0]])
        #expect(store.problems.count == 4)
        #expect(Set(store.leftOut(of: "M").map(\.message)) == Set(store.problems.map(\.message)))
        for other in ["", "M-", "N"] { #expect(store.leftOut(of: other).isEmpty) }
        for path in paths[1...] { #expect(store.problems.contains { $0.message.contains(path) }) }
        _ = store.versions(of: "M", folder: plugins)
        #expect(store.problems.count == 4)
        // Keeping it again repairs it.
        try keep(3, in: store)
        #expect(store.versions(of: "M", folder: plugins).map(\.version.description) == ["1.3.0", "1.5.0"])
        #expect(store.problems.count == 3)
    }

    @Test func `A copy whose content was changed is not restored`() throws {
        let store = store()
        try keep(1, in: store)
        let now = try content(module(2))
        let kept = try #require(store.versions(of: "M", folder: plugins).first)
        var bytes = try content("\(kept.path)/0")
        bytes[bytes.count / 2] ^= 0xFF
        chmod("\(kept.path)/0", 0o600)
        try bytes.write(to: URL(fileURLWithPath: "\(kept.path)/0"))
        let error = #expect(throws: PluginError.self) { try store.restore(kept, to: plugins) }
        #expect(error?.message.contains("M 1.1.0 cannot be put into \(plugins)") == true)
        for words in ["its copy in the store, \(kept.path), is damaged", "Remove that folder"] {
            #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
        }
        #expect(error?.message.contains("Bad message") == false)
        #expect(try content("\(plugins)/M.so") == now)
        #expect(try names(plugins) == ["M.so"])
    }

    @Test func `The unfinished files of a host that was killed are removed`() throws {
        let store = store()
        try keep(1, in: store)
        let home = try home()
        for name in [".new", ".old"] {
            try FileManager.default.createDirectory(atPath: "\(home)/\(name)", withIntermediateDirectories: false)
            try Data().write(to: URL(fileURLWithPath: "\(home)/\(name)/0"))
        }
        #expect(store.versions(of: "M", folder: plugins).count == 1 && store.problems.isEmpty)
        try keep(2, in: store)
        #expect(try names(home).filter { $0.hasPrefix(".") }.isEmpty)
        #expect(store.versions(of: "M", folder: plugins).count == 2)
    }

    @Test func `Several hosts can keep, list and restore versions at the same time`() throws {
        let sources = try (1...4).map { try stage(module($0)) }
        let version = try version("1.0.0")
        let stores = (0..<4).map { _ in store(.init(versions: 2)) }
        DispatchQueue.concurrentPerform(iterations: 40) { index in
            let store = stores[index % 4]
            do {
                try store.keep(sources[index % 4], module: "M", version: version, folder: plugins)
                // Another host may have removed the version meanwhile; then the error says so.
                if let kept = store.versions(of: "M", folder: plugins).first {
                    try? store.restore(kept, to: plugins)
                }
            } catch {
                Issue.record(error)
            }
        }
        #expect(store().versions(of: "M", folder: plugins).count == 2)
        #expect(stores.flatMap(\.problems).map(\.message) == [])
        #expect(try names(plugins) == ["M.so"])
        let digest = try stage("\(plugins)/M.so").digest
        #expect(sources.contains { $0.digest == digest })
    }
}

extension VersionStore {
    /// Returns the versions of a module that come from a plugins folder, the most recently kept first.
    func versions(of module: String, folder: String) -> [KeptVersion] {
        versions(of: module).filter { $0.folder.hasBytes(of: folder.withoutLinks) }
    }
}
