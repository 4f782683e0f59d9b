public import PluginABI

/// An entry of the log.
public struct LogEntry: Sendable {
    /// The severity.
    public var level: LogLevel
    /// The module that wrote the entry, or that the entry is about; `nil` for the host itself.
    public var module: String?
    /// Target and action of the running call that the entry is about; `nil` if there is none.
    public var call: String?
    /// The number of that call, which all its entries have; `nil` if it is about no call, or unknown.
    public var callNumber: UInt64?
    /// The text.
    public var message: String

    /// Creates an entry.
    public init(level: LogLevel, module: String? = nil, call: String? = nil, message: String) {
        (self.level, self.module, self.call, self.message) = (level, module, call, message)
    }
}
