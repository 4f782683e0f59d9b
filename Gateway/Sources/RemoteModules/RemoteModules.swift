import Foundation
public import Logging
public import PluginABI
public import PluginHost
public import ServiceLifecycle
import Synchronization

/// Targets of another host as if they were this one's: `context.perform("B", "greet")` is the same line, whether `B` is
/// in this process, in a process of its own, or on another machine.
///
///     let remote = try RemoteModules(of: "https://balancer.example", targets: ["B"], in: host)
///     let services = ServiceGroup(services: [remote] + gateway.services(application), logger: logger)
///
/// The other host is a `PluginGateway`, or several of them behind a balancer. The mount asks it which remote actions it
/// offers (`/modules.json`), registers a module for each target in this host, `remote.B`, and replaces it when the
/// declarations change. While the other host is away, or does not offer a target, calls of the target fail with
/// ``/PluginABI/PluginError/Code/moduleUnavailable`` and the reason.
///
/// A call is sent once. If it certainly had no effect, or if its action is idempotent, it is sent a second time, over a
/// new connection; otherwise the error says that it is unknown whether it took effect. Calls carry their deadline,
/// their trace, and the mounts that they have passed. Calls of synchronous actions block their thread, until their
/// deadline at most.
///
/// All functions may be called from any thread.
public final class RemoteModules: ServiceLifecycle.Service, Sendable {
    private struct State {
        /// The offers with which the modules that stand for targets were registered, by the names of the targets.
        var registered: [String: OfferedTarget] = [:]
        /// The manifests that were refused, with the reasons.
        var refused: [String: (manifest: String, reason: String)] = [:]
        /// The last answer that is in effect.
        var applied: Offers?
        /// An answer that differs from the one in effect, and has been received only once.
        var pending: Offers?
        var problem: String?
        /// How often modules were replaced recently, by the names of the targets.
        var replacements: [String: Replacements] = [:]
        /// The targets whose modules are to be replaced later.
        var delayed: Set<String> = []
    }

    private struct Replacements {
        var count = 0
        var last = ContinuousClock.now
    }

    /// The names of the mounted targets.
    public let targets: [String]
    private let host: PluginHost
    let mount: Mount
    private let state = Mutex(State())

    /// The largest number of targets of a mount.
    public static let targetLimit = 256
    /// How much memory the modules of all mounts may take, in bytes. The memory is never freed.
    private static let registeredLimit = 256 << 20
    private static let registeredBytes = Mutex(0)
    /// How often the module of a target is replaced without a pause.
    private static let replacementLimit = 8

    /// Mounts targets. Their calls fail with ``/PluginABI/PluginError/Code/moduleUnavailable`` until ``run()`` has
    /// reached the other host.
    ///
    /// - Parameters:
    ///   - url: The URL of the other host or its balancer, `https://HOST`, possibly with a port and a path; at most 2,048
    ///     bytes.
    ///   - targets: The names of its targets, 1 to ``targetLimit``. No module of this host may offer one of the same name.
    ///   - host: The host in which they are mounted.
    ///   - configuration: The settings.
    ///   - logger: The log for what changes.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidConfiguration`` for a URL, a name or a token file that cannot be
    ///   used; the errors of `PluginHost.register`, such as ``/PluginABI/PluginError/Code/conflict`` if this
    ///   host already has a target of the same name.
    public init(
        of url: String, targets: [String], in host: PluginHost, _ configuration: RemoteConfiguration = .init(),
        logger: Logger = Logger(label: "RemoteModules")
    ) throws(PluginError) {
        guard (1...Self.targetLimit).contains(targets.count), Set(targets).count == targets.count else {
            throw PluginError(
                .invalidConfiguration,
                "A mount has 1 to \(Self.targetLimit) targets, each once. This one has \(targets.count).")
        }
        for name in targets + [configuration.modulePrefix + "A"] { try Self.check(target: name) }
        (self.targets, self.host) = (targets, host)
        mount = try Mount(url, configuration, logger)
        for (number, target) in targets.enumerated() {
            mount.setAbsence(target, "it has not been reached yet.")
            do throws(PluginError) {
                try host.register(ProxyModule.description(mount, target, nil))
            } catch {
                for target in targets[..<number] { _ = try? host.unregister(moduleName(target)) }
                throw error
            }
        }
    }

    /// Checks a URL of another host, as ``init(of:targets:in:_:logger:)`` does.
    ///
    /// - Parameter url: The URL.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidConfiguration``.
    public static func check(url: String) throws(PluginError) { _ = try Mount.checked(url) }

    /// Checks a name of a target, as ``init(of:targets:in:_:logger:)`` does.
    ///
    /// - Parameter target: The name.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidConfiguration``.
    public static func check(target: String) throws(PluginError) {
        guard !ForeignText.isName(target) else { return }
        throw PluginError(
            .invalidConfiguration,
            "“\(ForeignText.excerpt(target.utf8))” is not a name of a target: [A-Za-z_][A-Za-z0-9_.-]*, at most 256 bytes."
        )
    }

    private func moduleName(_ target: String) -> String { mount.configuration.modulePrefix + target }

    /// Follows the other host until the service ends. Then the modules are unregistered, and the connections closed.
    ///
    /// In a group, it comes before the host, so that modules can still make calls while they are torn down.
    public func run() async throws {
        mount.open()
        await cancelWhenGracefulShutdown { await self.follow() }
        await onThread { for target in self.targets { _ = try? self.host.unregister(self.moduleName(target)) } }
        await mount.close()
    }

    private func follow() async {
        while !Task.isCancelled {
            let isSettled = await update()
            // A change takes effect when two answers in a row agree: behind a balancer, hosts can differ for a while.
            let pause = isSettled ? mount.configuration.interval : min(mount.configuration.interval, .seconds(1))
            try? await Task.sleep(for: max(pause, .milliseconds(10)))
        }
    }

    // MARK: Following

    /// Requests the offers, and brings the modules in line with them. Returns whether nothing is pending.
    private func update() async -> Bool {
        let known = state.withLock { $0.pending == nil && $0.delayed.isEmpty ? $0.applied?.tag : nil }
        let answer = await Offers.fetch(mount, targets, known: known)
        if Task.isCancelled { return true }
        switch answer {
        case .unchanged:
            setProblem(nil)
            return true
        case .failed(let problem):
            setProblem(problem)
            // Until the other host is reached, the reason should be one that people can act on.
            for target in targets where state.withLock({ $0.registered[target] == nil && $0.applied == nil }) {
                mount.setAbsence(target, problem)
            }
            return true
        case .offers(let offers):
            setProblem(nil)
            let isInEffect = state.withLock { state in
                let isKnown = state.applied.map { $0.isSame(as: offers) } ?? true
                let isSecond = state.pending.map { $0.isSame(as: offers) } ?? false
                state.pending = isKnown || isSecond ? nil : offers
                if isKnown || isSecond { state.applied = offers }
                return isKnown || isSecond
            }
            if isInEffect { await onThread { self.apply(offers) } }
            return isInEffect
        }
    }

    private func setProblem(_ problem: String?) {
        let last = state.withLock { state in
            defer { state.problem = problem }
            return state.problem
        }
        guard problem != last else { return }
        if let problem {
            mount.logger.warning("\(problem)")
        } else {
            mount.logger.notice("\(mount.url) answers again what it offers.")
        }
    }

    private func apply(_ offers: Offers) {
        for target in targets {
            switch offers.targets[target] {
            case .success(let offer)?: apply(offer)
            case .failure(let error)?: setAbsence(target, error.message)
            case nil: setAbsence(target, "it offers no remote actions of that name at present.")
            }
        }
    }

    private func setAbsence(_ target: String, _ reason: String?) {
        guard mount.absence(of: target) != reason else { return }
        mount.setAbsence(target, reason)
        if let reason {
            mount.logger.warning("“\(target)” of \(mount.url) cannot be called: \(reason)")
        } else {
            mount.logger.notice("“\(target)” of \(mount.url) can be called.")
        }
    }

    private func apply(_ offer: OfferedTarget) {
        let (present, refusal) = state.withLock { state in
            state.delayed.remove(offer.name)
            return (state.registered[offer.name], state.refused[offer.name])
        }
        if present?.manifest == offer.manifest { return setAbsence(offer.name, nil) }
        if let refusal, refusal.manifest == offer.manifest { return setAbsence(offer.name, refusal.reason) }
        guard mayReplace(offer.name) else { return }
        // Including what the host and the functions keep of it, a manifest takes about four times its size.
        let size = 4 * (offer.manifest.utf8.count + 256 * (offer.actions.count + 4))
        let hasRoom = Self.registeredBytes.withLock { bytes in
            guard bytes + size <= Self.registeredLimit else { return false }
            bytes += size
            return true
        }
        guard hasRoom else {
            return setAbsence(
                offer.name, "the mounted targets have changed too often. Restart this program to follow them again.")
        }
        do throws(PluginError) {
            try host.register(ProxyModule.description(mount, offer.name, offer), replaces: true)
            state.withLock { state in
                state.registered[offer.name] = offer
                state.refused[offer.name] = nil
            }
            setAbsence(offer.name, nil)
        } catch {
            let reason = "its declarations were refused. \(ForeignText.message(error.message))"
            state.withLock { $0.refused[offer.name] = (offer.manifest, reason) }
            setAbsence(offer.name, reason)
        }
    }

    /// Returns whether the module of a target may be replaced. If it has been replaced too often recently, another
    /// attempt is made later; until then, the module stays as it is.
    private func mayReplace(_ target: String) -> Bool {
        let pause = max(mount.configuration.replacementPause, .milliseconds(1))
        let isDelayed = state.withLock { state in
            var replacements = state.replacements[target] ?? Replacements()
            let pauses = replacements.last.duration(to: .now) / pause
            replacements.count = max(0, replacements.count - Int(min(pauses, 1000)))
            guard replacements.count < Self.replacementLimit else {
                state.delayed.insert(target)
                return true
            }
            state.replacements[target] = Replacements(count: replacements.count + 1)
            return false
        }
        if isDelayed {
            mount.logger.debug(
                "“\(target)” of \(mount.url) changes often. This change is followed within \(pause).")
        }
        return !isDelayed
    }

    // MARK: Status

    /// The state of the mount.
    public var status: RemoteStatus {
        let (registered, problem) = state.withLock { ($0.registered, $0.problem) }
        let counts = mount.counts
        return RemoteStatus(
            url: mount.url,
            targets: targets.map { target in
                RemoteStatus.Target(
                    name: target, module: registered[target]?.module, version: registered[target]?.version,
                    problem: mount.absence(of: target))
            },
            problem: problem, breaker: RemoteStatus.Breaker(rawValue: mount.breaker.state.rawValue) ?? .closed,
            lastFailure: mount.breaker.reason, callsInFlight: counts.inFlight, sent: counts.sent,
            retried: counts.retried, unanswered: counts.unanswered)
    }
}

/// The state of a mount at one moment.
public struct RemoteStatus: Sendable {
    /// A mounted target.
    public struct Target: Sendable {
        /// The name of the target.
        public let name: String
        /// The module that offers the target; `nil` if the other host has not been reached yet.
        public let module: String?
        /// The version of that module.
        public let version: String?
        /// Why the target cannot be called; `nil` if it can.
        public let problem: String?
    }

    /// The states of a circuit breaker.
    public enum Breaker: String, Sendable {
        /// Calls are sent.
        case closed
        /// Calls fail immediately.
        case open
        /// One call is sent as a probe.
        case halfOpen
    }

    /// The URL of the other host.
    public let url: String
    /// The targets.
    public let targets: [Target]
    /// Why the last request for the offers of the other host failed; `nil` if it succeeded.
    public let problem: String?
    /// The state of the circuit breaker.
    public let breaker: Breaker
    /// Why the circuit breaker last opened; empty if it never has.
    public let lastFailure: String
    /// How many calls are in flight.
    public let callsInFlight: Int
    /// How many requests were sent for calls, including calls that were sent again.
    public let sent: Int
    /// How many calls were sent again.
    public let retried: Int
    /// How many of the requests have not been answered by a gateway.
    public let unanswered: Int
}

/// Runs `body`, which may block, on a thread of its own.
private func onThread(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread {
            body()
            continuation.resume()
        }
    }
}
