import Dispatch
import Testing

@testable import PluginHost

/// Looks at a semaphore before a thread sleeps.
@Suite struct ShortLookTests {
    private let look = ShortLook()
    private let semaphore = DispatchSemaphore(value: 0)

    @Test func `A look takes a signal`() {
        semaphore.signal()
        #expect(look.sees(semaphore))
        #expect(!look.sees(semaphore))
    }

    @Test func `After a look in vain, some waits are not looked at`() {
        #expect(!look.sees(semaphore))
        semaphore.signal()
        for _ in 0..<8 { #expect(!look.sees(semaphore)) }
        #expect(look.sees(semaphore))
    }
}
