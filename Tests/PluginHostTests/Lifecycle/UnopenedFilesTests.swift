import Foundation
import Glibc
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Files that a lazy host neither opens nor copies.
@Suite(.timeLimit(.minutes(30))) struct UnopenedFilesTests {
    private let lazy: LazyModules

    init() throws { lazy = try LazyModules() }

    /// Counts how often the files of a folder are opened, in any process.
    private struct Openings: ~Copyable {
        private let descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))

        init(in folder: String) throws {
            guard inotify_add_watch(descriptor, folder, UInt32(IN_OPEN)) >= 0 else { throw POSIXError(.EIO) }
        }

        deinit { close(descriptor) }

        /// Returns the names of the files that have been opened since the last call.
        func next() -> Set<String> {
            var names: Set<String> = []
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)
            defer { buffer.deallocate() }
            while case let count = read(descriptor, buffer.baseAddress, buffer.count), count > 0 {
                var offset = 0
                while offset < count {
                    let length = buffer.load(fromByteOffset: offset, as: inotify_event.self).len
                    offset += MemoryLayout<inotify_event>.size
                    let name = buffer[offset...].prefix { $0 != 0 }
                    if length > 0 { names.insert(String(decoding: name, as: UTF8.self)) }
                    offset += Int(length)
                }
            }
            return names
        }
    }

    @Test func `A warm start opens no file of the folder`() throws {
        let folder = try TemporaryFolder()
        let plugins = try folder.folder("plugins")
        for name in ["A", "B", "C"] {
            var module = lazy.module(name)
            module.isSealed = name == "C"
            try module.build(into: plugins, as: "\(name).so")
        }
        try "no module".write(toFile: "\(plugins)/D.so", atomically: true, encoding: .utf8)
        usleep(30_000)  // A file that has just changed is not recorded.
        let openings = try Openings(in: plugins)
        func start() throws -> TestHost {
            let host = try TestHost { configuration, _ in
                configuration.folders = [plugins]
                configuration.start = .lazy
                configuration.watches = false
                configuration.registryCache = "\(folder.path)/cache"
            }
            try host.start()
            return host
        }
        try start().host.shutdown()
        #expect(openings.next() == ["A.so", "B.so", "C.so", "D.so"])
        let host = try start()
        #expect(host.states == ["A.so": "registered", "B.so": "registered", "C.so": "registered", "D.so": "failed"])
        #expect(openings.next() == [])
        #expect(host.answer("B") == "B")
        #expect(openings.next() == ["B.so"])
    }

    @Test func `A lazy host copies only the files of modules that are called`() throws {
        let host = try lazy.makeHost(["A", "B", "C"].map { lazy.module($0) })
        func copies() throws -> [String] {
            let paths = FileManager.default.enumerator(atPath: "\(host.folder.path)/staging")
            let names = try #require(paths).compactMap { ($0 as? NSString)?.lastPathComponent }
            return names.filter { $0.hasSuffix(".so") }
        }
        #expect(host.states.values.allSatisfy { $0 == "registered" })
        #expect(try copies() == [])
        #expect(host.answer("B") == "B")
        #expect(try copies() == ["B.so"])
    }

    @Test func `A sealed module with didStart starts with the host, unless its manifest says that it is lazy`() throws {
        var (eager, patient) = (lazy.module("A"), lazy.module("B", more: "\"start\": \"lazy\","))
        eager.hooks = ["didStart": "note(\"\(lazy.path)\", \"A.didStart \");"]
        patient.hooks = ["didStart": "note(\"\(lazy.path)\", \"B.didStart \");"]
        let host = try lazy.makeHost([eager, patient])
        #expect(host.states == ["A.so": "active", "B.so": "registered"])
        #expect(lazy.notes == "open:A A A.didStart ")
        #expect(host.answer("B") == "B")
    }

    // MARK: - Asynchronous calls

    /// A lazy host with a module whose start waits for a file, and which notes each call.
    private func hostWithSlowStart() throws -> TestHost {
        var slow = lazy.module("A", setUp: "while (access(\"\(lazy.path).go\", F_OK)) usleep(1000);")
        slow.body = "note(\"\(lazy.path)\", \"called \");"
        return try lazy.makeHost([slow])
    }

    private func finishStart(of host: TestHost) async throws {
        try Data().write(to: URL(filePath: "\(lazy.path).go"))
        #expect(await becomesTrue { host.states["A.so"] == "active" })
        #expect(host.answer("A") == "A")
        #expect(lazy.notes == "open:A A called ")
    }

    @Test func `An asynchronous call waits for a start no longer than its timeout`() async throws {
        let host = try hostWithSlowStart()
        let error = await #expect(throws: PluginError.self) {
            try await host.host.call("A", "answer", timeout: .milliseconds(20))
        }
        #expect(error?.code == .deadlineExceeded)
        #expect(host.states["A.so"] != "active")
        try await finishStart(of: host)
    }

    @Test func `An asynchronous call that waits for a start can be cancelled`() async throws {
        let host = try hostWithSlowStart()
        let call = Task { try await host.host.call("A", "answer") }
        #expect(await becomesTrue { lazy.setUps == ["A"] })
        call.cancel()
        let error = await #expect(throws: PluginError.self) { try await call.value }
        #expect(error?.code == .cancelled)
        #expect(host.states["A.so"] != "active")
        try await finishStart(of: host)
    }
}
