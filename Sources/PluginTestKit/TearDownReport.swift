/// The remains of a module after its removal.
///
///     let report = await bench.finish()
///     #expect(report.isClean, "\(report)")
public struct TearDownReport: Sendable, CustomStringConvertible {
    /// Objects of one type that still have a holder.
    public struct Held: Sendable, Hashable, CustomStringConvertible {
        /// The module that made the objects; `nil` for callbacks of the test itself.
        public let module: String?
        /// The name of the type in the manifest; `callback` for closures that were passed as values.
        public let type: String
        /// The number of objects.
        public let count: Int
        /// The modules that hold them; `nil` stands for the test itself. Empty if that is not known.
        public let holders: [String?]

        public var description: String {
            let names = holders.map { $0 ?? "the test" }.joined(separator: ", ")
            return "\(count) × \(type) of \(module ?? "the test")" + (names.isEmpty ? "" : ", held by \(names)")
        }
    }

    /// The name of the module.
    public let module: String
    /// The generations of the module that have not been torn down, each with the reason.
    public let alive: [GenerationStatus]
    /// The objects that still have a holder: the module's own, and those of its peers and of the test, which a removed
    /// module must not hold. A variable of the test is a holder, too: release its object first.
    public let held: [Held]
    /// Warnings and errors about the module that the host has logged since the removal: a `tearDown` that failed, a
    /// late reply.
    public let complaints: [LogEntry]

    /// Whether every generation was torn down, no object has a holder, and there are no complaints.
    public var isClean: Bool { alive.isEmpty && held.isEmpty && complaints.isEmpty }

    public var description: String {
        if isClean { return "\(module) was torn down cleanly." }
        var lines = alive.map {
            "\($0.name) \($0.version) (generation \($0.number)) was not torn down: \($0.reason)"
        }
        if !held.isEmpty {
            lines.append("Still held: \(held.map(\.description).joined(separator: "; ")). \(HeldObjects.advice)")
        }
        lines += complaints.map { "\($0.level): \($0.message)" }
        return "\(module) was not torn down cleanly.\n" + lines.joined(separator: "\n")
    }
}

extension TestBench {
    /// Removes the module, waits for its `tearDown`, shuts the host down, and reports what is left of the module.
    ///
    ///     let report = await bench.finish()
    ///     #expect(report.isClean, "\(report)")
    ///
    /// - Parameter limit: The longest time to wait until the last call has ended and the last object was released. Only
    ///   a module that leaves something behind takes that long. The time is counted in steps of two milliseconds, so on
    ///   a machine so busy that tasks wait for a thread, the limit is longer, too.
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
        host.heldObjects.map { objects in
            TearDownReport.Held(
                module: objects.module, type: objects.type, count: objects.count, holders: objects.holders)
        }
    }
}
