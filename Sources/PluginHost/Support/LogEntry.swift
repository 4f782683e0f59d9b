public import PluginABI

/// A line for the log.
public struct LogEntry: Sendable {
    /// How much it matters.
    public var level: LogLevel
    /// The module that wrote it, or that it is about; nil for the host itself.
    public var module: String?
    /// Target and action of the call that it is about; nil where it is about none that still runs.
    public var call: String?
    /// What there is to say.
    public var message: String

    /// Makes a line.
    public init(level: LogLevel, module: String? = nil, call: String? = nil, message: String) {
        self.level = level
        self.module = module
        self.call = call
        self.message = message
    }
}
