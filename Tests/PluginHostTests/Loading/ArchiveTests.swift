import Foundation
import PluginABI
import PluginFile
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

#if arch(x86_64)
    /// The modules of `Tests/Archive`, which were built with the header of 1.0. They are never built again.
    @Suite(.timeLimit(.minutes(30))) struct ArchiveTests {
        private static let folder = "\(repository)/Tests/Archive/1.0"
        private static let swift = ["ModuleA", "ModuleB"]
        private static let others = ["ModuleC", "Words", "Tally"]

        /// A host with the archived modules; those in Swift only if the host can open them.
        private struct Archive {
            let test: TestHost
            let runsSwift: Bool
            var host: PluginHost { test.host }
        }

        /// - Parameter isIsolated: Whether the modules run in separate processes.
        private static func start(isIsolated: Bool) async throws -> Archive {
            let obstacle = obstacle(isIsolated: isIsolated)
            if let obstacle { print("Without the archived modules in Swift: \(obstacle)") }
            let names = (obstacle == nil ? swift : []) + others
            let test = try TestHost { configuration, folder in
                for name in names { try folder.copy("\(Self.folder)/lib\(name).so", as: "plugins/lib\(name).so") }
                configuration.watches = false
                if isIsolated { configuration.isolation.modules = .all }
            }
            try await test.startAside()
            #expect(test.states == Dictionary(uniqueKeysWithValues: names.map { ("lib\($0).so", "active") }))
            for module in test.host.modules { #expect(module.error == nil) }
            return Archive(test: test, runsSwift: obstacle == nil)
        }

        /// Why the modules in Swift cannot be opened; `nil` if they can.
        private static func obstacle(isIsolated: Bool) -> String? {
            let isIsolated = isIsolated || modulesAreIsolated
            if isIsolated, isSanitized { return "an isolated module in Swift has no runtime of the sanitizer." }
            // They were built with this version; see TOOLS.
            if !isIsolated, Toolchain.current != "swift 6.3" {
                return "they were built by Swift 6.3, and this is \(Toolchain.current). They run isolated."
            }
            let file = "\(folder)/libModuleA.so"
            let bytes = (try? Data(contentsOf: URL(filePath: file))) ?? Data()
            let folders = bytes.withUnsafeBytes { (try? ELFImage(reading: $0, path: file).runpath) ?? [] }
            let path = ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"]?.split(separator: ":").map(String.init)
            if isIsolated, !(folders + (path ?? [])).contains(where: { access("\($0)/libswiftCore.so", R_OK) == 0 }) {
                return "there is no libswiftCore.so in \(folders), where they look for it in processes of their own."
            }
            return nil
        }

        @Test func `The archive is as it was built`() throws {
            let sums = try String(contentsOfFile: "\(Self.folder)/SHA256SUMS", encoding: .utf8)
            let lines = sums.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
            #expect(Set(lines.map { $0[1] }) == Set((Self.swift + Self.others).map { "lib\($0).so" }))
            var total = 0
            for line in lines {
                let bytes = try Data(contentsOf: URL(filePath: "\(Self.folder)/\(line[1])"))
                total += bytes.count
                let tool = try #require(Tool("sha256sum"))
                #expect(try tool.run(["\(Self.folder)/\(line[1])"]).hasPrefix(line[0]), "\(line[1])")
            }
            #expect(total < 5 << 20)
        }

        @Test(arguments: [false, true]) func `Archived modules serve every kind of call`(isIsolated: Bool) async throws
        {
            let archive = try await Self.start(isIsolated: isIsolated)
            try await checkOthers(archive, isIsolated: isIsolated)
            if archive.runsSwift { try await checkSwift(archive) }
            archive.host.shutdown()
        }

        /// Checks, for the modules in C, C++ and Rust: actions by name, position and binding, URLs, instances,
        /// asynchronous replies from a thread, errors, calls to other modules, events, and bytes.
        private func checkOthers(_ archive: Archive, isIsolated: Bool) async throws {
            let host = archive.host
            #expect(try host.perform("C", "add", ["a": 2, "b": 3]) == 5)
            #expect(try host.perform("C", "add", [2]) == 3)
            #expect(try host.bind("C", "add").perform([40, 2]) == 42)
            #expect(try await host.open("app://C/add?a=4", origin: .remote) == 5)
            #expect(try archive.test.failure("C", "add", [.int(.max)]).code == "overflow")
            #expect(try host.perform("C", "measure", [.bytes(Bytes([1, 2, 3]))])["count"] == 3)
            let large = Bytes(Array(repeating: UInt8(7), count: 3 << 20))
            #expect(try host.perform("C", "measure", [.bytes(large)])["count"] == .int(3 << 20))
            let before = try host.perform("C", "sold").int ?? -1
            _ = try await host.post("shop.sold", ["item": "pear"])
            #expect(try host.perform("C", "sold").int == before + 1)

            #expect(try host.perform("Words", "count", ["a rose is a rose"]) == ["a": 2, "is": 1, "rose": 2])
            #expect(try await host.open("app://words/a%20b%20a") == ["a": 2, "b": 1])
            try host.perform("Glossary", "define", ["rose", "a flower"])
            #expect(try host.perform("Glossary", "meaning", ["rose"]) == "a flower")
            #expect(try archive.test.failure("Glossary", "meaning", ["tulip"]).code == "unknownWord")

            #expect(try host.perform("Tally", "add") == 1)
            #expect(try await host.open("app://tally/4") == 5)
            // The module replies from a thread, which the thread sanitizer of a worker does not know.
            if !(isIsolated && sanitizer == "thread") {
                #expect(try await host.call("Tally", "reverse", ["über"]) == "rebü")
            }
            #expect(try archive.test.failure("Tally", "add", [.int(.max)]).source == "Tally")
            #expect(archive.test.log.contains { $0.module == "Tally" && $0.message == "Tally is ready." })
        }

        /// Checks records, services, objects, callbacks, pages, events along a chain, tasks, and calls from module to
        /// module and back, with a context that these modules do not know.
        private func checkSwift(_ archive: Archive) async throws {
            let host = archive.host
            let detail: Value = ["title": "Detail of lamp", "page": 2]
            #expect(try host.perform("A", "fetchDetail", ["key": "lamp", "page": 2]) == detail)
            #expect(try await host.open("app://shop/detail/lamp/2", origin: .remote) == detail)
            #expect(try host.service("HomeService", from: "1.2.0").perform("fetchDetail", ["lamp", 2]) == detail)
            #expect(try host.perform("A", "price", ["apple"]) == "0.5 euro")
            let price = try host.withCallContext(CallContext(caller: "ada")) { try $0.perform("A", "price", ["apple"]) }
            #expect(price == "0.5 euro")
            #expect(try archive.test.failure("A", "currencyName", ["XXX"]).code == "unknownCurrency")
            #expect(try host.perform("A", "nothing") == "A has no page called “nothing”")
            #expect(try host.perform("A", "buy", ["apple"]).int ?? 0 >= 2)
            #expect(archive.test.log.contains { $0.module == "ModuleB" && $0.message == "Sold: apple" })

            let cursor = try #require(try host.perform("Counter", "search", ["text": "ap"]).object)
            #expect(try cursor.perform("next") == "apple" && cursor.perform("next") == "apricot")
            #expect(try cursor.perform("next").isNull)
            #expect(try await host.call("B", "slowly", ["stressed", 1]) == "desserts")
            let late = await #expect(throws: PluginError.self) {
                try await host.call("B", "slowly", ["text", 3_600_000], timeout: .milliseconds(1))
            }
            #expect(late?.code == .deadlineExceeded)
            #expect(try host.perform("B", "sum", [.bytes(Bytes([1, 2, 3]))]) == 6)
            #expect(try host.perform("B", "advertise", ["lamp"]) == "Look: Detail of lamp!")
            #expect(try host.perform("C", "relay", ["Ada"]) == "Hello, Ada!")
            let heard = Mutex<[Value]>([])
            let callback = host.callback { arguments in
                heard.withLock { $0 += arguments }
                return .null
            }
            try host.perform("B", "remember", [.object(callback.object)])
            #expect(try await host.call("B", "callBack", ["hello"]) == 1)
            #expect(heard.withLock { $0 } == ["hello"])
            let page = try #require(try host.perform("A", "article", ["pear"]).object)
            #expect(try page.perform("choose") == false)
        }
    }
#endif
