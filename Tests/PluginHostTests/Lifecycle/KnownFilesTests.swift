import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// Files that an earlier host has read.
@Suite(.timeLimit(.minutes(30))) struct KnownFilesTests {
    private let folder: TemporaryFolder
    /// The file in which modules note that they were opened.
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
        usleep(30_000)  // A file that has just changed is not recorded.
        func run(_ body: (TestHost) throws -> Void) throws {
            let host = try self.host(plugins)
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
        // A file of the cache that is not intact is ignored.
        let file = try #require(
            FileManager.default.contentsOfDirectory(atPath: "\(folder.path)/cache").first { $0.hasPrefix("registry-") })
        let handle = try #require(FileHandle(forUpdatingAtPath: "\(folder.path)/cache/\(file)"))
        try handle.truncate(atOffset: 100)
        try handle.close()
        let host = try self.host(plugins)
        #expect(host.states == ["A.so": "active", "B.so": "active", "C.so": "failed"])
    }

    @Test func `A start with the files that an earlier host has read plans nothing, unless one has changed`() throws {
        let plugins = try folder.folder("plugins")
        for name in ["A", "B"] { try module(name).build(into: plugins, as: "\(name).so") }
        try "no module".write(toFile: "\(plugins)/C.so", atomically: true, encoding: .utf8)
        usleep(30_000)  // A file that has just changed is not recorded.
        try host(plugins).host.shutdown()
        func planned(_ states: [String: String]) throws -> Int {
            let host = try host(plugins)
            defer { host.host.shutdown() }
            #expect(host.states == states)
            #expect(["A", "B"].map { host.answer($0) } == ["A", states["B.so"] == nil ? nil : "B"])
            return host.host.lifecycle.examined.modules
        }
        let all = ["A.so": "registered", "B.so": "registered", "C.so": "failed"]
        #expect(try planned(all) <= 4)  // Only those that the calls start are planned.
        chmod("\(plugins)/B.so", 0o755)
        usleep(30_000)
        #expect(try planned(all.merging(["B.so": "active"]) { $1 }) > 0)
        try FileManager.default.removeItem(atPath: "\(plugins)/B.so")
        #expect(try planned(["A.so": "registered", "C.so": "failed"]) > 0)
    }

    @Test func `A failure because of another file is not kept, and other settings have their own record`() throws {
        let plugins = try folder.folder("plugins")
        let good = try CFixture.build("int helper(void) { return 7; }", ["-Wl,-soname,help.so"])
        var needing = module("A")
        needing.code = "extern int helper(void); int use(void) { return helper(); }"
        try needing.build(into: plugins, as: "A.so", [good, "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed"])
        try "no library".write(toFile: "\(plugins)/help.so", atomically: true, encoding: .utf8)
        usleep(30_000)  // A file that has just changed is not recorded.
        func run(_ configure: (inout PluginHost.Configuration) -> Void = { _ in }) throws -> String? {
            let host = try self.host(plugins, configure)
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

    /// A host with the files in a folder, which starts modules when they are first needed.
    private func host(_ plugins: String, _ configure: (inout PluginHost.Configuration) -> Void = { _ in }) throws
        -> TestHost
    {
        let host = try TestHost { configuration, _ in
            configuration.folders = [plugins]
            configuration.start = .lazy
            configuration.watches = false
            configuration.registryCache = "\(self.folder.path)/cache"
            configure(&configuration)
        }
        try host.start()
        return host
    }

    private func known(_ host: TestHost) -> [LoadedModule] { host.host.calls.registry.table.contents.known.modules }

    @Test func `A warm start reads no manifests, except those with dead routes`() throws {
        let plugins = try folder.folder("plugins")
        let live = "\"routes\": [{\"pattern\": \"app://a\", \"action\": \"A/answer\"}],"
        let dead = "\"routes\": [{\"pattern\": \"app://b/:x\", \"action\": \"B/answer\"}],"
        try module("A", more: live).build(into: plugins, as: "A.so")
        try module("B", more: dead).build(into: plugins, as: "B.so")
        usleep(30_000)  // A file that has just changed is not recorded.
        let first = try host(plugins)
        let problems = first.host.problems.map(\.message)
        #expect(problems.count == 1)
        first.host.shutdown()
        for _ in 0..<2 {
            let host = try host(plugins)
            #expect(host.host.problems.map(\.message) == problems)
            #expect(host.host.routes.map(\.pattern).sorted() == ["app://a", "app://b/:x"])
            #expect(known(host).map { "\($0.name) \($0.hasOnlyLiveRoutes)" } == ["A true", "B false"])
            #expect(known(host).first?.manifest.targets.first?.actions.map(\.name) == ["answer"])
            host.host.shutdown()
        }
    }

    @Test func `What is recorded of other bytes with the same identity is corrected by the first call`() async throws {
        let plugins = try folder.folder("plugins")
        try module("A").build(into: plugins, as: "A.so")
        usleep(30_000)
        try host(plugins).host.shutdown()
        let probe = try host(plugins)
        let cache = RegistryCache(folder: "\(folder.path)/cache", key: probe.host.configuration.registryKey)
        probe.host.shutdown()
        let file = try #require(cache.files.first)
        guard case .module(let facts) = file.outcome else { throw PluginError(.invalidFile, "") }
        let lie = facts.manifest.string.replacing("\"A\"", with: "\"B\"")
        let manifest = try Array(lie.utf8).withUnsafeBytes { try ModuleManifest(parsing: $0, abiMinor: 0) }
        let outline = try #require(ModuleOutline(manifest).bytes)
        cache.record(
            KnownFile(
                path: file.path, identity: file.identity, digest: file.digest ^ 1,
                outcome: .module(
                    .init(
                        abi: facts.abi, toolchain: facts.toolchain, manifest: KnownText(lie),
                        index: KnownText(outline), libraries: []))))
        cache.write()
        #expect(cache.problems == [])
        let host = try host(plugins)
        #expect(host.status("A.so")?.name == "B")
        #expect(host.failure("B")?.code == .unknownTarget || host.failure("B")?.code == .moduleUnavailable)
        #expect(host.status("A.so")?.name == "A")
        #expect(host.answer("A") == "A")
        host.host.shutdown()
        let next = try self.host(plugins)
        #expect(next.status("A.so")?.name == "A")
        #expect(next.states["A.so"] == "registered")
    }

    @Test(.disabled(if: isSanitized || modulesAreIsolated))
    func `Files that crash and hang are not opened by the next start`() throws {
        let plugins = try folder.folder("plugins")
        let good = try Data(contentsOf: URL(filePath: module("Mod00").build()))
        for number in 10..<97 {
            var copy = good
            while let place = copy.range(of: Data("Mod00".utf8)) {
                copy.replaceSubrange(place, with: Data("Mod\(number)".utf8))
            }
            try copy.write(to: URL(filePath: "\(plugins)/\(number).so"))
        }
        func bad(_ name: String, _ code: String) throws {
            let constructor = "__attribute__((constructor)) static void begin(void) { \(code) }"
            try CModule(name: name, code: constructor).build(into: plugins, as: "\(name).so")
        }
        for number in 0..<2 { try bad("crash\(number)", "note(\"\(path)\", \"crash \"); abort();") }
        for number in 0..<2 { try bad("hang\(number)", "note(\"\(path)\", \"hang \"); for (;;) pause();") }
        usleep(30_000)
        func start() throws -> [String: PluginError.Code] {
            let host = try host(plugins) { configuration in
                configuration.safeScan = true
                configuration.scanTimeout = .seconds(1)
                configuration.isolation.workerPath = built("pluginhost-worker")
            }
            defer { host.host.shutdown() }
            #expect(host.answer("Mod96") == "Mod96")
            return host.host.modules.reduce(into: [:]) { codes, module in
                codes[(module.file as NSString).lastPathComponent] = module.error?.code
            }
        }
        let named = try start()
        #expect(
            named == [
                "crash0.so": .moduleCrashed, "crash1.so": .moduleCrashed,
                "hang0.so": .deadlineExceeded, "hang1.so": .deadlineExceeded,
            ])
        let before = notes
        // The first file is opened once with others and once alone; the last one, which follows it, is alone.
        #expect(before.components(separatedBy: "hang ").count == 4)
        #expect(try start() == named)
        // Only the module that is called is opened, first in a scan process and then in the host.
        #expect(notes.dropFirst(before.count).components(separatedBy: "open:").count == 3)
        #expect(!notes.dropFirst(before.count).contains("crash"))
    }
}
