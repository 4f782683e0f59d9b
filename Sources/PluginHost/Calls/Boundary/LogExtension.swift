import PluginABI

extension HostTable {
    /// The extension for the log.
    nonisolated(unsafe) static let log = UnsafePointer.immortal(
        plugin_log(size: UInt32(MemoryLayout<plugin_log>.size), reserved: 0) { host, call, level, message in
            let generation = caller(host).takeUnretainedValue()
            let action = CallRecord.name(of: call)
            var entry = LogEntry(
                level: LogLevel(rawValue: Int(level)) ?? .error, module: generation.sourceName, call: action,
                message: message.text)
            entry.callNumber = action == nil ? nil : call
            generation.core.settings.log(entry)
        })
}
