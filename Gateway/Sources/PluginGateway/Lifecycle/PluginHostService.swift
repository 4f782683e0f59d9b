import Foundation
import GatewayThreads
import PluginABI
import PluginHost
public import ServiceLifecycle
import Synchronization

/// A gateway's host as a service of a `ServiceGroup`: starts the host, and shuts it down at the end.
///
/// It comes before the service of the HTTP server in the group, and ``PluginGateway/readiness`` after it;
/// ``PluginGateway/services(_:)`` puts them into this order. A group ends its services in reverse order, so the end is:
/// not ready; no new connections, streams closed, calls finished, within ``GatewayConfiguration/drainTimeout``; modules
/// torn down.
public struct PluginHostService: ServiceLifecycle.Service {
    private let gateway: PluginGateway

    /// - Parameter gateway: The gateway.
    public init(_ gateway: PluginGateway) { self.gateway = gateway }

    /// Runs until the group ends.
    ///
    /// - Throws: The errors of ``PluginHost/start()``.
    public func run() async throws {
        let (host, gateway) = (gateway.host, gateway)
        gateway.traceModules()
        try await onThread { try host.start() }
        let changes = host.changes
        gateway.catalog.invalidate()
        gateway.enter(.ready)
        let watching = Task { await gateway.watch(changes) }
        let beating = Task { try await gateway.beat() }
        try? await gracefulShutdown()
        gateway.end()
        try await onThread { host.shutdown() }
        beating.cancel()
        await watching.value
    }
}

extension PluginGateway {
    /// The service that makes the gateway not ready as the first step of its end. It comes after the service of the
    /// HTTP server in the group.
    public var readiness: some ServiceLifecycle.Service { Readiness(gateway: self) }

    /// The services of a group, in order: the host, the given ones, and ``readiness``. Tasks of the given services run
    /// on the gateway's threads for requests, so that short calls need no other thread.
    ///
    /// - Parameter servers: The services that serve this gateway: the application.
    public func services(_ servers: any ServiceLifecycle.Service...) -> [any ServiceLifecycle.Service] {
        [PluginHostService(self)] + servers.map { Serving(server: $0) } + [readiness]
    }

    /// Accepts no more calls, and ends the event streams. Calls in flight may continue for a while.
    fileprivate func drain() {
        enter(.draining)
        events.end()
        let (calls, departures, timeout) = (calls, departures, configuration.drainTimeout)
        Task {
            try await Task.sleep(for: timeout)
            calls.endAll()
            departures.endAll()
        }
    }

    fileprivate func end() {
        enter(.ended)
        events.end()
        calls.endAll()
        departures.endAll()
    }

    fileprivate func watch(_ changes: AsyncStream<HostChange>) async {
        for await change in changes {
            catalog.invalidate()
            let event = change.event
            events.add(event.name, event.data.adding("time", .time(Date())))
            count(event.name)
        }
    }

    fileprivate func beat() async throws {
        while true {
            try await Task.sleep(for: configuration.heartbeat)
            events.beat()
        }
    }
}

/// A service whose tasks run on the threads for requests.
private struct Serving: ServiceLifecycle.Service, CustomStringConvertible {
    let server: any ServiceLifecycle.Service

    var description: String { String(describing: server) }

    func run() async throws {
        try await withTaskExecutorPreference(RequestThreads.process) { try await server.run() }
    }
}

private struct Readiness: ServiceLifecycle.Service {
    let gateway: PluginGateway

    func run() async throws {
        try? await gracefulShutdown()
        // Not ready, but still serving, until the load balancers have noticed.
        gateway.enter(.notReady)
        try? await Task.sleep(for: gateway.configuration.drainDelay)
        gateway.drain()
    }
}

/// Runs a body that blocks on a thread of its own.
private func onThread(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}
