import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// Changes of a few files, which must have the same results as scans of whole folders.
@Suite(.timeLimit(.minutes(30))) struct ChangesOfFilesTests {
    private func module(_ name: String, _ version: String = "1.0.0", requires: String? = nil) -> CModule {
        let requirement = requires.map { "\"requires\": [{\"module\": \"\($0)\", \"version\": \"^1\"}]," }
        return CModule(name: name, version: version, moreManifest: requirement ?? "")
    }

    private func generation(_ name: String, of host: TestHost) -> Int? {
        host.host.lifecycle.served(name)?.generation.number
    }

    @Test func `A module that waited or failed is no longer named when its file is gone`() throws {
        let host = try TestHost()
        try module("Waiting", requires: "Missing").build(into: host.plugins, as: "waiting.so")
        var failing = module("Failing")
        failing.setUp = "refuse(call, \"no\"); return;"
        try failing.build(into: host.plugins, as: "failing.so")
        try host.start()
        #expect(host.states == ["waiting.so": "waiting", "failing.so": "failed"])
        for name in ["Waiting", "Failing"] {
            #expect(host.failure(name)?.code == .moduleUnavailable)
            try FileManager.default.removeItem(atPath: "\(host.plugins)/\(name.lowercased()).so")
            #expect(eventually { host.failure(name).map { $0.code != .moduleUnavailable } == true })
        }
    }

    @Test func `Changes while the host is busy are one change`() throws {
        let host = try TestHost()
        try module("A").build(into: host.plugins, as: "a.so")
        try module("C").build(into: host.plugins, as: "c.so")
        try module("D", requires: "C").build(into: host.plugins, as: "d.so")
        try host.start()
        let before = generation("A", of: host)
        let (newer, dependent) = (try module("C", "2.0.0").build(), try module("D", "2.0.0").build())
        host.host.lifecycle.queue.sync {
            rename("\(host.plugins)/a.so", "\(host.plugins)/.a")
            try? replace("c.so", by: newer, in: host)
            usleep(200_000)  // By now, the watcher has reported the rename; if not, the test has no effect.
            rename("\(host.plugins)/.a", "\(host.plugins)/b.so")
            try? replace("d.so", by: dependent, in: host)
        }
        #expect(eventually { host.states == ["b.so": "active", "c.so": "active", "d.so": "active"] })
        #expect(eventually { host.host.lifecycle.served("D")?.version.description == "2.0.0" })
        #expect(generation("A", of: host) == before)
        #expect(try host.waitForChanges())
        #expect(!host.changes.contains { $0.isRemoval })
    }

    private func replace(_ file: String, by library: String, in host: TestHost) throws {
        try host.put(Data(contentsOf: URL(filePath: library)), file)
    }

    @Test(arguments: [false, true])
    func `A module continues to serve when its file is moved to the target of a link`(isCopied: Bool) throws {
        let host = try TestHost()
        try module("A").build(into: host.plugins, as: "a.so")
        let (old, new) = ("\(host.plugins)/a.so", "\(host.folder.path)/elsewhere.so")
        symlink("../elsewhere.so", "\(host.plugins)/b.so")
        try host.start()
        #expect(host.states["a.so"] == "active")
        let before = generation("A", of: host)
        if isCopied {
            // The copy is made within the second until links are checked.
            host.host.lifecycle.queue.sync {
                try? copyFile(old, to: new)
                unlink(old)
            }
        } else {
            rename(old, new)
        }
        #expect(eventually { host.states == ["b.so": "active"] })
        #expect(generation("A", of: host) == before)
        #expect(try host.waitForChanges())
        #expect(!host.changes.contains { $0.isRemoval })
    }

    @Test func `A new file below an untrusted folder is not loaded`() throws {
        let host = try TestHost { configuration, folder in
            configuration.includesSubfolders = true
            try folder.folder("plugins/s/t")
            chmod("\(folder.path)/plugins/s", 0o1777)
        }
        try host.start()
        #expect(host.status("s")?.error?.code == .untrusted)
        try module("A").build(into: "\(host.plugins)/s/t", as: "a.so")
        #expect(try host.waitForChanges())
        #expect(host.states["a.so"] == nil)
        #expect(host.answer("A") == nil)
    }

    @Test func `Of several modules that offer a required service, the same one starts whatever has changed`() throws {
        let modules = try LazyModules()
        func offering(_ name: String, _ priority: Int, more: String = "") -> CModule {
            modules.module(
                name,
                more: """
                    "services": [{"name": "S", "version": "1.0.0", "priority": \(priority), "target": "\(name)"}],\(more)
                    """)
        }
        let host = try modules.makeHost([
            offering("A", 1, more: "\"requires\": [{\"module\": \"Z\"}],"), offering("B", 2),
            modules.module("M", more: "\"requires\": [{\"service\": \"S\"}],"), modules.module("Z"),
        ])
        #expect(host.answer("Z") == "Z")
        #expect(host.answer("M") == "M")
        #expect(host.states == ["A.so": "registered", "B.so": "active", "M.so": "active", "Z.so": "active"])
    }
}
