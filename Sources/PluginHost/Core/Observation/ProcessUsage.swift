/// The memory and the processor time of the process in which an isolated module runs.
public struct ProcessUsage: Sendable, Hashable {
    /// The id of the process.
    public let process: Int32
    /// The memory that the process has in use (its resident set), in bytes, including pages that it shares with others.
    public let residentBytes: Int
    /// The processor time that all threads of the process have used since it was started.
    public let processorTime: Duration
}
