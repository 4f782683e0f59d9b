import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Files that an earlier host has read.
@Suite(.timeLimit(.minutes(30))) struct KnownFilesTests {
    private let folder: TemporaryFolder
    /// The file in which modules note that they are opened.
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = "\(folder.path)/notes"
    }

    private var notes: String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }

    private func module(_ name: String, more: String = "") -> CModule {
        CModule(name: name, answer: name, moreManifest: more, entry: "note(\"\(path)\", \"open:\(name) \");")
    }

    @Test func `A warm start opens no file, and what it believes is replaced by what a file says`() throws {
        let unsealed = module("A")
        let more = "\"routes\": [{\"pattern\": \"app://b\", \"action\": \"B/answer\"}],"
        let second = module("B", more: more)
        let plugins = try folder.folder("plugins")
        try unsealed.build(into: plugins, as: "A.so")
        try second.build(into: plugins, as: "B.so")
        try "no module".write(toFile: "\(plugins)/C.so", atomically: true, encoding: .utf8)
        usleep(30_000)  // A file that has just changed is not noted.
        func run(_ body: (TestHost) throws -> Void) throws {
            let host = try TestHost { configuration, _ in
                configuration.folders = [plugins]
                configuration.start = .lazy
                configuration.watches = false
                configuration.registryCache = "\(self.folder.path)/cache"
            }
            try host.start()
            #expect(host.host.problems.isEmpty)
            #expect(host.status("C.so")?.error?.code == .invalidFile)
            try body(host)
            host.host.shutdown()
        }
        try run { #expect($0.states == ["A.so": "active", "B.so": "active", "C.so": "failed"]) }
        let before = notes
        try run { host in
            #expect(host.states == ["A.so": "registered", "B.so": "registered", "C.so": "failed"])
            #expect(host.host.routes.map(\.pattern) == ["app://b"])
            #expect(notes == before)
            #expect(host.answer("A") == "A")
            let answer = try host.host.open("app://b").string
            #expect(answer == "B")
        }
        // What is not intact is not believed.
        let file = try #require(
            FileManager.default.contentsOfDirectory(atPath: "\(folder.path)/cache").first { $0.hasPrefix("registry-") })
        let handle = try #require(FileHandle(forUpdatingAtPath: "\(folder.path)/cache/\(file)"))
        try handle.truncate(atOffset: 100)
        try handle.close()
        let host = try TestHost { configuration, _ in
            configuration.folders = [plugins]
            configuration.start = .lazy
            configuration.watches = false
            configuration.registryCache = "\(self.folder.path)/cache"
        }
        try host.start()
        #expect(host.states == ["A.so": "active", "B.so": "active", "C.so": "failed"])
    }

    @Test func `A failure because of another file is not kept, and other settings have their own record`() throws {
        let plugins = try folder.folder("plugins")
        let good = try CFixture.build("int helper(void) { return 7; }", ["-Wl,-soname,help.so"])
        var needing = module("A")
        needing.code = "extern int helper(void); int use(void) { return helper(); }"
        try needing.build(into: plugins, as: "A.so", [good, "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed"])
        try "no library".write(toFile: "\(plugins)/help.so", atomically: true, encoding: .utf8)
        usleep(30_000)  // A file that has just changed is not noted.
        func run(_ configure: (inout PluginHost.Configuration) -> Void = { _ in }) throws -> String? {
            let host = try TestHost { configuration, _ in
                configuration.folders = [plugins]
                configuration.start = .lazy
                configuration.watches = false
                configuration.registryCache = "\(self.folder.path)/cache"
                configure(&configuration)
            }
            try host.start()
            defer { host.host.shutdown() }
            return host.states["A.so"]
        }
        func records() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "\(folder.path)/cache").count {
                $0.hasPrefix("registry-")
            }
        }
        #expect(try run() == "failed")
        try FileManager.default.removeItem(atPath: "\(plugins)/help.so")
        try FileManager.default.copyItem(atPath: good, toPath: "\(plugins)/help.so")
        usleep(30_000)
        #expect(try run() == "active")
        #expect(try records() == 1)
        _ = try run { $0.includesSubfolders = true }
        _ = try run { $0.scanTimeout = .seconds(100) }
        #expect(try records() == 3)
    }
}
