import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// How often the program's guard is asked about a page that is opened from outside.
@Suite struct GuardedPagesTests {
    /// A guard that records the URLs it is asked about, and redirects one of them.
    private final class Gatekeeper: Sendable {
        let asked = Mutex<[String]>([])

        func decide(_ call: RemoteCall) -> RemoteDecision {
            asked.withLock { $0.append(call.url) }
            return call.url.hasSuffix("basket") ? .redirect("app://shop/article/apple?note=red") : .pass
        }
    }

    private let test: TestHost
    private let navigator: Navigator
    private let gatekeeper = Gatekeeper()

    init() throws {
        test = try TestHost(["ModuleA", "ModuleB"].map { built("lib\($0).so") })
        navigator = Navigator(test.host, presenter: RecordingPresenter())
        test.host.onRemoteCall { [gatekeeper] in gatekeeper.decide($0) }
    }

    @Test func `The guard is asked once for each page that is opened from outside, and for no other`() async throws {
        let pear = try await navigator.open("app://shop/article/pear?note=ripe", by: .present, origin: .remote)
        #expect(pear.parameters == ["key": "pear", "note": "ripe"])
        #expect(gatekeeper.asked.withLock { $0 } == ["app://shop/article/pear?note=ripe"])
        try await navigator.open("app://shop/article/pear", by: .present)
        #expect(gatekeeper.asked.withLock { $0.count } == 1)
    }

    @Test func `A page to which the guard redirects has its own parameters`() async throws {
        let apple = try await navigator.open("app://basket", by: .present, origin: .remote)
        #expect(apple.type == "Article" && apple.parameters == ["key": "apple", "note": "red"])
        #expect(gatekeeper.asked.withLock { $0 } == ["app://basket"])
    }
}
