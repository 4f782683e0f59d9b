internal import PluginABI
internal import PluginHost

extension ParsedArguments {
    /// Returns the host configuration that the options describe. The host's diagnostics go to `log`.
    func configuration(
        environment: [String: String], log: @escaping @Sendable (LogEntry) -> Void
    ) throws(PluginError) -> PluginHost.Configuration {
        var configuration = PluginHost.Configuration(folders: try folders(environment: environment))
        configuration.includesSubfolders = has(.recursive)
        configuration.trustsEveryone = has(.trust)
        configuration.retriesQuarantined = has(.retry)
        configuration.isolation.modules = isolatedModules
        configuration.safeScan = has(.safeScan)
        configuration.isolation.debuggedModules = Set(values(of: .debugWorker))
        if has(.lazy) {
            configuration.start = .lazy
            configuration.registryCache = PluginHost.Configuration.defaultRegistryCache
        }
        configuration.log = log
        if let size = try wholeNumber(of: .maxFileSize, "bytes", in: 1...Int.max) {
            configuration.maximumFileBytes = size
        }
        if let schemes = try schemes { configuration.schemes = schemes }
        if let file = value(of: .config) {
            let contents = try ConfigurationFile(path: file).read()
            configuration.moduleConfiguration = contents.modules
            configuration.interceptors = contents.interceptors
            configuration.isolation.rules = contents.isolation
            if let length = contents.maximumURLLength { configuration.maximumURLLength = length }
            for (deadline, durations) in contents.deadlines { deadline.apply(durations, to: &configuration) }
        }
        if let length = try urlLength { configuration.maximumURLLength = length }
        try setDeadlines(of: &configuration)
        if let timeout = try timeout { configuration.asyncTimeout = timeout }
        return configuration
    }

    /// Returns the host's log, which writes to standard error in the form that the options choose, from the given level
    /// on.
    ///
    /// - Parameter hasTimes: Whether lines of text begin with the time.
    func log(
        to console: Console, from level: LogLevel, hasTimes: Bool = false
    ) throws(PluginError) -> @Sendable (LogEntry) -> Void {
        if has(.jsonLog), value(of: .log) ?? "json" != "json" {
            throw .usage("'\(OptionSpecification.jsonLog.name)' and '--log text' exclude each other.")
        }
        let form = has(.jsonLog) ? "json" : value(of: .log) ?? "text"
        let least = value(of: .logLevel).flatMap { word in LogLevel.allCases.first { "\($0)" == word } } ?? level
        return { entry in
            guard entry.level >= least else { return }
            if form == "json" { console.diagnose(entry.record.json) } else { console.log(entry, hasTime: hasTimes) }
        }
    }
}
