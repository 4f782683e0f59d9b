import PluginABI

extension HostTable {
    /// The extension for the log.
    nonisolated(unsafe) static let log = UnsafePointer.immortal(
        plugin_log(size: UInt32(MemoryLayout<plugin_log>.size), reserved: 0) { host, call, level, message in
            let generation = caller(host).takeUnretainedValue()
            generation.core.settings.log(
                LogEntry(
                    level: LogLevel(rawValue: Int(level)) ?? .error,
                    module: generation.sourceName, call: CallRecord.name(of: call), message: message.text))
        })
}
