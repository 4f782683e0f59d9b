import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Versions that are kept when they no longer serve, and can be put back.
@Suite(.timeLimit(.minutes(30)), .serialized) struct RollbackTests {
    let test: TestHost

    init() throws { test = try TestHost() }

    private func module(_ version: String, name: String = "A") -> CModule {
        CModule(name: name, version: version, answer: version)
    }

    private func put(_ version: String, as file: String = "A.so") throws {
        try module(version).build(into: test.plugins, as: file)
    }

    /// Installs versions under one name, one after the other.
    private func replace(_ versions: String...) throws {
        for version in versions {
            try put(version)
            try #require(eventually { test.answer("A") == version })
        }
    }

    private var names: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: test.plugins).sorted()) ?? []
    }

    private var kept: [String] { test.host.keptVersions(of: "A").map(\.version) }

    private func error(_ body: () throws -> Void) throws -> PluginError {
        try #require(#expect(throws: PluginError.self) { try body() })
    }

    @Test func `A kept file that contains another module than before is named, and not put back`() throws {
        var module = module("1.0.0")
        let flag = "\(test.folder.path)/flag"
        module.entry = """
            static const char other[] = "{\\"name\\": \\"Other\\", \\"version\\": \\"1.0.0\\", \\"targets\\": "
                "[{\\"name\\": \\"A\\", \\"actions\\": [{\\"name\\": \\"answer\\"}]}]}";
            if (access("\(flag)", F_OK) == 0) module.manifest = (plugin_string){other, sizeof other - 1};
            """
        try module.build(into: test.plugins, as: "A.so")
        try test.start()
        try #require(eventually { test.answer("A") == "1.0.0" })
        try replace("2.0.0")
        try #require(eventually { kept == ["1.0.0"] })
        try test.folder.file("flag")
        let message = try error { try test.host.rollback("A") }.message
        #expect(message.contains("A 1.0.0 is not put back: The file kept at \(test.folder.path)/state/"), "\(message)")
        #expect(message.contains("contains the module Other, not A. Put another version back"), "\(message)")
    }

    @Test func `A version belongs to its own plugins folder, whatever other folders are called`() throws {
        let test = try TestHost { configuration, folder in
            configuration.folders.append(try folder.folder("plugins/A"))
        }
        try module("1.0.0").build(into: test.plugins, as: "A.so")
        try test.start()
        try #require(eventually { test.answer("A") == "1.0.0" })
        try module("2.0.0").build(into: test.plugins, as: "A.so")
        try #require(eventually { test.answer("A") == "2.0.0" })
        try test.host.rollback("A")
        #expect(test.answer("A") == "1.0.0" && test.host.problems.isEmpty)
    }

    // MARK: Keeping

    @Test func `Replaced and deleted versions are kept, but not those that only wait or were renamed`() throws {
        try test.start()
        try replace("1.0.0", "1.1.0")
        #expect(eventually { kept == ["1.0.0"] })
        rename("\(test.plugins)/A.so", "\(test.plugins)/B.so")
        #expect(try test.waitForChanges())
        #expect(kept == ["1.0.0"] && test.answer("A") == "1.1.0")
        unlink("\(test.plugins)/B.so")
        #expect(eventually { kept == ["1.1.0", "1.0.0"] })
        #expect(test.host.problems.isEmpty)
    }

    @Test func `As many versions are kept as the configuration says`() throws {
        let test = try TestHost { configuration, _ in configuration.keptVersions = 2 }
        try test.start()
        for minor in 0...4 {
            try module("1.\(minor).0").build(into: test.plugins, as: "A.so")
            try #require(eventually { test.answer("A") == "1.\(minor).0" })
        }
        #expect(eventually { test.host.keptVersions(of: "A").map(\.version) == ["1.3.0", "1.2.0"] })
    }

    @Test func `A version that cannot be kept is reported as a problem, and the replacement still happens`() throws {
        try test.folder.folder("state")
        try test.folder.file("state/versions")
        try test.start()
        try replace("1.0.0", "1.1.0", "1.2.0")
        #expect(eventually { test.host.problems.count { $0.message.contains("cannot be kept") } == 1 })
        #expect(eventually { test.changes.contains(where: \.isProblem) })
    }

    // MARK: Back and forward

    @Test func `The previous version is put back under its name, and a second rollback goes forward again`() throws {
        try test.start()
        try replace("1.0.0", "1.1.0")
        let change = try test.host.rollback("A")
        #expect(change.restored == "\(test.plugins)/A.so" && change.moved.isEmpty && change.stopping.isEmpty)
        #expect(change.starting.map(\.version) == ["1.0.0"] && change.starting[0].previous == "1.1.0")
        #expect(test.answer("A") == "1.0.0" && names == ["A.so"])
        #expect(test.host.keptVersions(of: "A").map(\.isServing) == [false, true])
        try test.host.rollback("A")
        #expect(test.answer("A") == "1.1.0" && names == ["A.so"])
    }

    @Test func `The folder is the only source of truth, also for the next host`() throws {
        try test.start()
        try replace("1.0.0", "1.1.0")
        try test.host.rollback("A")
        test.host.shutdown()
        let next = PluginHost(test.host.configuration)
        defer { next.shutdown() }
        try next.start()
        #expect(try next.perform("A", "answer") == "1.0.0")
        #expect(try next.rollback("A").starting.map(\.version) == ["1.1.0"])
    }

    @Test func `Any kept version can be put back`() throws {
        try test.start()
        try replace("1.0.0", "1.1.0", "1.2.0")
        try test.host.rollback("A", to: "1.0.0")
        #expect(test.answer("A") == "1.0.0")
        let error = try error { try test.host.rollback("A", to: "3.0.0") }
        #expect(error.code == .noVersionKept && error.message.contains("kept: 1.2.0, 1.1.0"))
    }

    @Test func `A module that was removed can be put back`() throws {
        try put("1.0.0")
        try test.start()
        try test.host.remove("A")
        let change = try test.host.rollback("A")
        #expect(change.starting.map(\.previous) == [nil])
        #expect(test.answer("A") == "1.0.0" && names == ["A.so"])
    }

    @Test func `Without a kept version, the superseded one serves, and a second rollback goes forward again`() throws {
        try put("1.0.0", as: "A-1.0.so")
        try put("1.1.0", as: "A-1.1.so")
        try test.start()
        let change = try test.host.rollback("A")
        #expect(change.moved == ["\(test.plugins)/A-1.1.so"] && change.restored == nil)
        #expect(test.answer("A") == "1.0.0" && names == ["A-1.0.so"])
        try test.host.rollback("A")
        #expect(test.answer("A") == "1.1.0" && names == ["A-1.0.so", "A-1.1.so"])
    }

    @Test func `Files that would serve instead of the version put back are moved to the store`() throws {
        try test.start()
        try replace("1.0.0", "1.1.0")
        rename("\(test.plugins)/A.so", "\(test.plugins)/A-1.1.so")
        #expect(try test.waitForChanges())
        let change = try test.host.rollback("A")
        #expect(change.moved == ["\(test.plugins)/A-1.1.so"] && change.restored == "\(test.plugins)/A.so")
        #expect(test.answer("A") == "1.0.0" && kept.first == "1.1.0")
        #expect(!names.contains("A-1.1.so"))
    }

    @Test func `A dry run reports the planned change and does nothing`() throws {
        try test.start()
        try replace("1.0.0", "1.1.0")
        let change = try test.host.rollback("A", dryRun: true)
        #expect(
            change.description == """
                puts back \(test.plugins)/A.so
                replaces A 1.1.0 with 1.0.0 from \(test.plugins)/A.so
                """)
        #expect(test.answer("A") == "1.1.0" && kept == ["1.0.0"] && names == ["A.so"])
    }

    @Test func `With only one kept version a rollback can still be undone`() throws {
        let test = try TestHost { configuration, _ in configuration.keptVersions = 1 }
        try test.start()
        for version in ["1.0.0", "1.1.0"] {
            try module(version).build(into: test.plugins, as: "A.so")
            try #require(eventually { test.answer("A") == version })
        }
        try test.host.rollback("A")
        #expect(test.answer("A") == "1.0.0")
        try test.host.rollback("A")
        #expect(test.answer("A") == "1.1.0")
    }

    @Test func `A module in a subfolder is put back there`() throws {
        let test = try TestHost { configuration, _ in
            configuration.includesSubfolders = true
            configuration.folders = configuration.folders.map { $0 + "/" }
        }
        let below = try test.folder.folder("plugins/below")
        try module("1.0.0").build(into: below, as: "A.so")
        try test.start()
        try test.host.remove("A")
        #expect(test.host.keptVersions(of: "A").map(\.file) == ["\(below)/A.so"])
        #expect(try test.host.rollback("A").restored == "\(below)/A.so")
        #expect(test.answer("A") == "1.0.0")
    }

    // MARK: Failures

    @Test func `A new version that failed to start is moved to the store, and the file is the serving version`()
        throws
    {
        try test.start()
        try replace("1.0.0", "1.1.0")
        var broken = module("2.0.0")
        broken.activate = "return 1;"
        try broken.build(into: test.plugins, as: "A.so")
        try #require(eventually { test.status("A.so")?.error?.code == .activationFailed })
        try test.host.rollback("A")
        #expect(test.status("A.so")?.error == nil && test.answer("A") == "1.1.0")
        #expect(kept.first == "2.0.0" && names == ["A.so"])
        try test.host.rollback("A", to: "1.0.0")
        #expect(test.answer("A") == "1.0.0")
    }

    @Test func `A broken file gets the content of the serving version`() throws {
        try test.start()
        try replace("1.0.0", "1.1.0")
        let generation = test.status("A.so")?.generation
        try test.folder.file("plugins/.new", Data("text".utf8))
        rename("\(test.plugins)/.new", "\(test.plugins)/A.so")
        try #require(eventually { test.status("A.so")?.error?.code == .invalidFile })
        let change = try test.host.rollback("A")
        #expect(change.starting.isEmpty && change.restored == "\(test.plugins)/A.so")
        #expect(test.status("A.so")?.error == nil && test.status("A.so")?.generation == generation)
        #expect(test.answer("A") == "1.1.0" && names == ["A.so"])
    }

    @Test func `A version that no longer starts leaves everything as it was`() throws {
        let flag = "\(test.folder.path)/refuse"
        var old = module("1.0.0")
        old.hooks = ["init": "if (access(\"\(flag)\", F_OK) == 0) { refuse(call, \"not any more\"); return; }"]
        try old.build(into: test.plugins, as: "A.so")
        try test.start()
        try replace("1.1.0")
        let generation = test.status("A.so")?.generation
        let content = try Data(contentsOf: URL(fileURLWithPath: "\(test.plugins)/A.so"))
        try test.folder.file("refuse")
        let error = try error { try test.host.rollback("A") }
        #expect(error.message.contains("not any more") && error.message.contains("1.1.0 continues to serve"))
        #expect(test.answer("A") == "1.1.0" && test.status("A.so")?.generation == generation)
        #expect(test.status("A.so")?.error == nil && names == ["A.so"])
        #expect(try Data(contentsOf: URL(fileURLWithPath: "\(test.plugins)/A.so")) == content)
        unlink(flag)
        try test.host.rollback("A")
        #expect(test.answer("A") == "1.0.0")
    }

    @Test func `If the serving version cannot be kept, nothing is put back, and the error says only that`() throws {
        try test.start()
        try replace("1.0.0", "1.1.0")
        try #require(eventually { kept == ["1.0.0"] })
        let lock = "\(test.folder.path)/state/versions/lock"
        unlink(lock)
        mkdir(lock, 0o700)
        let error = try error { try test.host.rollback("A") }
        #expect(error.message.hasPrefix("A 1.0.0 is not put back"), "\(error.message)")
        #expect(error.message.contains("Is a directory") && !error.message.contains("was put back"))
        #expect(test.answer("A") == "1.1.0" && names == ["A.so"])
    }

    @Test func `If only the serving version cannot be kept, the error does not say that anything was put back`()
        throws
    {
        try test.start()
        try replace("1.0.0", "1.1.0")
        try #require(eventually { kept == ["1.0.0"] })
        // A folder takes the place of the copy that serves.
        let content = try Data(contentsOf: URL(fileURLWithPath: "\(test.plugins)/A.so"))
        let staging = "\(test.folder.path)/staging"
        let copies = try FileManager.default.subpathsOfDirectory(atPath: staging).map { "\(staging)/\($0)" }.filter {
            (try? Data(contentsOf: URL(fileURLWithPath: $0))) == content
        }
        try #require(copies.count == 1 && unlink(copies[0]) == 0 && mkdir(copies[0], 0o700) == 0)
        let error = try error { try test.host.rollback("A") }
        #expect(error.message.hasPrefix("A 1.0.0 is not put back. The files are as before"), "\(error.message)")
        #expect(error.message.contains("A 1.1.0 cannot be kept") && !error.message.contains("was put back"))
        #expect(test.answer("A") == "1.1.0" && names == ["A.so"])
    }

    @Test func `A rollback is refused if others depend on the serving version, unless it is forced`() throws {
        try test.start()
        try replace("1.0.0", "1.1.0")
        var dependent = module("1.0.0", name: "B")
        dependent.moreManifest = "\"requires\": [{\"module\": \"A\", \"version\": \"^1.1\"}], "
        try dependent.build(into: test.plugins, as: "B.so")
        try #require(eventually { test.answer("B") == "1.0.0" })
        let error = try error { try test.host.rollback("A") }
        #expect(error.code == .required && error.message.contains("B 1.0.0 depends"))
        #expect(error.message.contains("only 1.0.0 is available"))
        #expect(test.answer("A") == "1.1.0" && test.answer("B") == "1.0.0")
        #expect(try test.host.rollback("A", force: true).stopping.map(\.name) == ["B"])
        #expect(test.answer("A") == "1.0.0" && test.states["B.so"] == "waiting")
    }

    @Test func `A version with unmet requirements is not put back`() throws {
        try module("1.0.0", name: "Base").build(into: test.plugins, as: "Base.so")
        var old = module("1.0.0")
        old.moreManifest = "\"requires\": [{\"module\": \"Base\", \"version\": \"*\"}], "
        try old.build(into: test.plugins, as: "A.so")
        try test.start()
        try replace("1.1.0")
        try test.host.remove("Base")
        let error = try error { try test.host.rollback("A") }
        #expect(error.message.contains("requires the module Base"))
        #expect(test.answer("A") == "1.1.0" && names == ["A.so"])
    }

    @Test func `Another module's file is not overwritten`() throws {
        try put("1.0.0")
        try test.start()
        try test.host.remove("A")
        try module("1.0.0", name: "Other").build(into: test.plugins, as: "A.so")
        try #require(eventually { test.answer("Other") == "1.0.0" })
        #expect(try error { try test.host.rollback("A") }.code == .conflict)
        #expect(test.answer("Other") == "1.0.0")
    }

    @Test func `If no version is kept, the error says so`() throws {
        try put("1.0.0")
        try test.start()
        #expect(try error { try test.host.rollback("A") }.code == .noVersionKept)
        #expect(try error { try test.host.rollback("Nobody") }.code == .noVersionKept)
        #expect(test.answer("A") == "1.0.0")
    }

    @Test func `If kept versions are left out, the error says how many, and why`() throws {
        try test.start()
        try replace("1.0.0", "1.1.0", "1.2.0")
        try #require(eventually { kept == ["1.1.0", "1.0.0"] })
        let store = try #require(test.host.lifecycle.store)
        let paths = store.versions(of: "A").map(\.path)
        for path in paths { unlink("\(path)/version.json") }
        for version in [nil, "1.0.0"] {
            let error = try error { try test.host.rollback("A", to: version) }
            #expect(error.code == .noVersionKept)
            for words in paths + ["2 kept versions are left out", "is damaged", "Remove the folder"] {
                #expect(error.message.contains(words), "\(error.message)")
            }
        }
        #expect(test.host.keptVersionsLeftOut(of: "A").count == 2 && test.host.keptVersionsLeftOut(of: "B").isEmpty)
    }

    @Test func `A link is put back as a file, and as a link when that fails`() throws {
        let versions = try test.folder.folder("versions")
        let flag = "\(test.folder.path)/refuse"
        var old = module("1.0.0")
        old.hooks = ["init": "if (access(\"\(flag)\", F_OK) == 0) { refuse(call, \"no\"); return; }"]
        try old.build(into: versions, as: "A-1.0.so")
        try module("1.1.0").build(into: versions, as: "A-1.1.so")
        symlink("\(versions)/A-1.0.so", "\(test.plugins)/A.so")
        try test.start()
        symlink("\(versions)/A-1.1.so", "\(test.plugins)/.new")
        rename("\(test.plugins)/.new", "\(test.plugins)/A.so")
        try #require(eventually { test.answer("A") == "1.1.0" })
        try test.folder.file("refuse")
        _ = try error { try test.host.rollback("A") }
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: "\(test.plugins)/A.so").hasSuffix("A-1.1.so"))
        #expect(test.answer("A") == "1.1.0")
        unlink(flag)
        try test.host.rollback("A")
        #expect(test.answer("A") == "1.0.0" && names == ["A.so"])
        #expect(FileManager.default.fileExists(atPath: "\(versions)/A-1.1.so"))
    }

    @Test func `Libraries that came with a version are put back with it`() throws {
        let library = { (number: Int) in try CFixture.build("int beside(void) { return \(number); }") }
        func put(_ version: String, _ number: Int) throws {
            unlink("\(test.plugins)/libbeside-\(number).so")
            try copyFile(library(number), to: "\(test.plugins)/libbeside-\(number).so")
            var module = module(version)
            module.code = "int beside(void);"
            module.body = "if (beside() != \(number)) { reply(call, \"wrong\"); return; }"
            try module.build(
                into: test.plugins, as: "A.so",
                ["-L\(test.plugins)", "-l:libbeside-\(number).so", "-Wl,-rpath,$ORIGIN"])
        }
        try test.start()
        try put("1.0.0", 1)
        try #require(eventually { test.answer("A") == "1.0.0" })
        try put("1.1.0", 2)
        try #require(eventually { test.answer("A") == "1.1.0" })
        unlink("\(test.plugins)/libbeside-1.so")
        try test.host.rollback("A")
        #expect(test.answer("A") == "1.0.0" && names.contains("libbeside-1.so"))
    }
}
