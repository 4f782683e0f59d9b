import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Calls from many threads at once, while modules are added.
@Suite struct ManyThreadsTests {
    private static func module(_ number: Int) -> CModule {
        CModule(
            name: "M\(number)", code: "static atomic_int calls;",
            targets: [
                .init(
                    name: "T\(number)",
                    actions: [
                        .init(
                            name: "count", parameters: ["n": "int"],
                            body: "atomic_fetch_add(&calls, 1); reply_int(call->token, arguments[0].as.integer);"),
                        .init(name: "calls", body: "reply_int(call->token, calls);"),
                    ])
            ])
    }

    @Test func `Every call runs once and gets its own result while registries are published`() async throws {
        let libraries = try (0..<6).map { try Self.module($0).build() }
        let test = try TestHost(Array(libraries[0..<2])) { $0.watches = true }
        let host = test.host
        let rounds = 2000
        async let sums: [Void] = onThreads(4) { thread in
            for n in 0..<rounds {
                let result = try host.perform("T\((thread + n) % 2)", "count", [.int(n)])
                guard result == .int(n) else { throw PluginError("wrong", "\(result) instead of \(n)") }
            }
        }
        for (number, library) in libraries.enumerated().dropFirst(2) {
            let hidden = try test.folder.copy(library, as: "plugins/\(number).so.part")
            rename(hidden, "\(test.folder.path)/plugins/\(number).so")
            #expect(await becomesTrue { (try? host.perform("T\(number)", "count", [1])) == 1 })
        }
        #expect(try await sums.count == 4)
        let calls = try host.perform("T0", "calls").int! + host.perform("T1", "calls").int!
        #expect(calls == 4 * rounds)
    }

    @Test func `Asynchronous calls from many tasks get their own results`() async throws {
        let test = try TestHost.withSamples()
        let host = test.host
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask {
                    let text = "\(number)"
                    let result = try await host.call(
                        "B", "slowly", ["text": .string(text), "milliseconds": .int(number % 3)])
                    #expect(result == .string(String(text.reversed())))
                }
            }
            try await group.waitForAll()
        }
        #expect(test.staleReplies == 0)
    }

    @Test func `Calls that are cancelled and answered at the same time end once`() async throws {
        let test = try TestHost.withFixture()
        let host = test.host
        for _ in 0..<300 {
            let call = Task { try await host.call("Serial", "overlapLater", [50]) }
            if Bool.random() { try await Task.sleep(for: .microseconds(Int.random(in: 0...200))) }
            call.cancel()
            do { _ = try await call.value } catch let error as PluginError { #expect(error.code == .cancelled) }
        }
        #expect(try await host.call("Serial", "overlapLater", [0]) == 0)
    }

    @Test func `Every thread that has made calls leaves room for others when it ends`() async throws {
        let test = try TestHost.withFixture()
        let host = test.host
        for _ in 0..<30 {
            let results = try await onThreads(8) { number in try host.perform("Echo", "int", [.int(number)]) }
            #expect(Set(results) == Set((0..<8).map { .int($0) }))
        }
    }
}
