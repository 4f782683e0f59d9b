import Testing

@testable import RemoteModules

/// The circuit breaker alone.
@Suite struct BreakerTests {
    private func breaker() -> CircuitBreaker {
        var settings = RemoteConfiguration.Breaker()
        (settings.failures, settings.pause) = (2, .zero)
        return CircuitBreaker(settings) { _, _ in }
    }

    @Test func `calls from before the opening say nothing about the probe`() throws {
        let breaker = breaker()
        let old = try (0..<6).map { _ in try #require(breaker.admit()) }
        for call in old[..<2] { breaker.fail(call, "lost", sent: nil) }
        #expect(breaker.state == .open)
        let probe = try #require(breaker.admit())
        #expect(breaker.admit() == nil)
        breaker.succeed(old[2])
        #expect(breaker.state == .halfOpen)
        breaker.abandon(old[3])
        #expect(breaker.state == .halfOpen)
        breaker.fail(old[4], "late", sent: nil)
        #expect(breaker.state == .halfOpen)
        #expect(breaker.admit() == nil)
        breaker.succeed(probe)
        #expect(breaker.state == .closed)
        // Late failures do not affect the closed breaker, either.
        breaker.fail(old[5], "late", sent: nil)
        breaker.fail(try #require(breaker.admit()), "lost", sent: nil)
        #expect(breaker.state == .closed)
    }

    @Test func `a probe that fails opens the breaker again, and one that is abandoned is made again`() throws {
        let breaker = breaker()
        for call in try (0..<2).map({ _ in try #require(breaker.admit()) }) { breaker.fail(call, "lost", sent: nil) }
        breaker.fail(try #require(breaker.admit()), "lost again", sent: nil)
        #expect(breaker.state == .open && breaker.reason == "lost again")
        breaker.abandon(try #require(breaker.admit()))
        #expect(breaker.state == .open)
        breaker.succeed(try #require(breaker.admit()))
        #expect(breaker.state == .closed)
    }
}
