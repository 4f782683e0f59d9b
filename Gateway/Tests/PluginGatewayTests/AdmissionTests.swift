import Foundation
import Synchronization
import Testing

@testable import PluginGateway

@Suite struct AdmissionTests {
    @Test func `calls that a busy module refuses take no slot from other modules`() throws {
        let admission = Admission(total: 2, perModule: 1)
        let (busy, other) = (admission.share(of: "Busy"), admission.share(of: "Other"))
        let slot = try admission.enter(busy)
        let end = End()
        Thread.detachNewThread {
            for _ in 0..<100_000 { _ = try? admission.enter(busy) }
            end.isReached.store(true, ordering: .relaxed)
        }
        var refused = 0
        while !end.isReached.load(ordering: .relaxed) {
            if (try? admission.enter(other)) == nil { refused += 1 }
        }
        #expect(refused == 0)
        withExtendedLifetime(slot) {}
    }

    @Test func `a call that the limit in all refuses takes no slot of its module`() throws {
        let admission = Admission(total: 1, perModule: 1)
        let share = admission.share(of: "A")
        let slot = try admission.enter(nil)
        #expect((try? admission.enter(share)) == nil)
        withExtendedLifetime(consume slot) {}
        _ = try admission.enter(share)
    }

    @Test func `modules that have gone are forgotten after their last call`() throws {
        let admission = Admission(total: 2, perModule: 1)
        for number in 0..<100 { _ = admission.share(of: "\(number)") }
        let slot = try admission.enter(admission.share(of: "7"))
        admission.forget { $0 == "1" }
        #expect(admission.moduleCount == 2)
        #expect((try? admission.enter(admission.share(of: "7"))) == nil)
        withExtendedLifetime(consume slot) {}
        admission.forget { $0 == "1" }
        #expect(admission.moduleCount == 1)
    }
}

private final class End: Sendable {
    let isReached = Atomic(false)
}
