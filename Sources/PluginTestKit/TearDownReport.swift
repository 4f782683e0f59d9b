import PluginABI
public import PluginHost

/// What is left of a module that was taken away.
///
///     let report = await bench.finish()
///     #expect(report.isClean, "\(report)")
public struct TearDownReport: Sendable, CustomStringConvertible {
    /// Objects of one type that somebody still holds.
    public struct Held: Sendable, Hashable, CustomStringConvertible {
        /// The module whose objects they are; nil for callbacks of the test itself.
        public let module: String?
        /// The type as the manifest calls it; `callback` for closures that were passed as values.
        public let type: String
        /// How many there are.
        public let count: Int

        public var description: String { "\(count) × \(type) of \(module ?? "the test")" }
    }

    /// The name of the module.
    public let module: String
    /// Its generations that have not been torn down, with what keeps them.
    public let alive: [GenerationStatus]
    /// The objects that somebody still holds: the module's own, and those of its peers and of the test, which a module that
    /// is gone must not hold. A variable of the test is a holder, too: let go of it first.
    public let held: [Held]
    /// What the host had to say against it since it was taken away: a `tearDown` that failed, a late reply.
    public let complaints: [LogEntry]

    /// Whether every generation was torn down, nobody holds anything, and the host has nothing to complain about.
    public var isClean: Bool { alive.isEmpty && held.isEmpty && complaints.isEmpty }

    public var description: String {
        if isClean { return "\(module) was torn down, and nothing is left of it." }
        var lines = alive.map {
            "\($0.name) \($0.version) (generation \($0.number)) was not torn down: \($0.reason)"
        }
        if !held.isEmpty { lines.append("Still held: \(held.map(\.description).joined(separator: ", ")).") }
        lines += complaints.map { "\($0.level): \($0.message)" }
        return "\(module) leaves something behind.\n" + lines.joined(separator: "\n")
    }
}

extension TestBench {
    /// Takes the module away, waits for its `tearDown`, says what is left of it, and ends the host.
    ///
    ///     let report = await bench.finish()
    ///     #expect(report.isClean, "\(report)")
    ///
    /// - Parameter limit: How long it may take until the last call has ended and the last object was let go. Only a module
    ///   that leaves something behind takes that long. Counted in steps of two milliseconds: where the machine is so
    ///   busy that tasks wait for a thread, this one waits longer, too.
    public func finish(within limit: Duration = .seconds(30)) async -> TearDownReport {
        let logged = log.count
        try? remove(name)
        var steps = limit / .milliseconds(2)
        while !(alive.isEmpty && held.isEmpty), steps > 0 {
            try? await Task.sleep(for: .milliseconds(2))
            steps -= 1
        }
        let (alive, held) = (alive, held)
        let complaints = log.dropFirst(logged).filter { $0.module == name && [.warning, .error].contains($0.level) }
        host.shutdown()
        return TearDownReport(module: name, alive: alive, held: held, complaints: complaints)
    }

    private var alive: [GenerationStatus] { host.generations.filter { $0.name == name && $0.state != .retired } }

    private var held: [TearDownReport.Held] {
        host.liveObjects.map { objects in
            TearDownReport.Held(
                module: objects.module.isEmpty ? nil : objects.module, type: objects.type, count: objects.count)
        }
    }
}
