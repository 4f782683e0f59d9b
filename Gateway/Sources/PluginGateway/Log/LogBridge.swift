public import Logging
import PluginABI
public import PluginHost

extension HostConfiguration {
    /// Passes the host's log on to a logger. The metadata has the module, the call (`target/action`), and its number.
    ///
    ///     configuration.log(to: Logger(label: "plugins"))
    ///
    /// - Parameter logger: The logger.
    public mutating func log(to logger: Logger) {
        log = { entry in
            var metadata: Logger.Metadata = [:]
            if let module = entry.module { metadata["module"] = "\(module)" }
            if let call = entry.call { metadata["call"] = "\(call)" }
            if let number = entry.callNumber { metadata["call.number"] = "\(number)" }
            let level: Logger.Level =
                switch entry.level {
                case .debug: .debug
                case .info: .info
                case .warning: .warning
                case .error: .error
                }
            logger.log(level: level, "\(entry.message)", metadata: metadata, source: entry.module ?? "PluginHost")
        }
    }
}
