// Marks in the profile of the host. The model is the time profiler of BeeHive.

extension HostContext {
    /// Adds a mark of this module to the profile of the host.
    ///
    ///     context.mark("cache is warm")
    ///
    /// A module can set `PLUGIN_MARKS_MAX` marks; further ones are only counted. Marks are for occasional events, not
    /// for every call: each acquires a lock briefly.
    ///
    /// - Parameters:
    ///   - name: A name for people. At most `PLUGIN_MARK_NAME_MAX_BYTES` bytes of it are kept.
    ///   - duration: How long the work that has just ended took. Default: zero, which marks a moment.
    public func mark(_ name: String, lasting duration: Duration = .zero) {
        guard let profile = plugin_profile_of(host) else { return }
        name.withPluginString { profile.pointee.mark(host, $0, duration.nanoseconds) }
    }

    /// Runs `body`, and adds a mark with the time that it took, even if it throws.
    ///
    ///     let prices = try context.measure("read prices") { try readPrices() }
    public func measure<Result, Failure: Error>(
        _ name: String, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let start = ContinuousClock.now
        defer { mark(name, lasting: ContinuousClock.now - start) }
        return try body()
    }

    /// Runs `body`, and adds a mark with the time until its end, even if it throws.
    public func measure<Result, Failure: Error>(
        _ name: String, _ body: () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        let start = ContinuousClock.now
        defer { mark(name, lasting: ContinuousClock.now - start) }
        return try await body()
    }
}
