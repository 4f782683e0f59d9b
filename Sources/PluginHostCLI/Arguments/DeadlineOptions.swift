internal import PluginABI
internal import PluginHost

/// A deadline of the host that an option of 'run', or a number of seconds in the configuration file, sets.
struct Deadline: Sendable {
    /// The name of the number in the configuration file, which is that of the property of the host's configuration.
    let name: String
    let option: OptionSpecification
    private let set: @Sendable (inout PluginHost.Configuration, Duration) -> Void

    private init(
        _ name: String, _ option: String, _ help: String,
        _ set: @escaping @Sendable (inout PluginHost.Configuration, Duration) -> Void
    ) {
        (self.name, self.set) = (name, set)
        self.option = OptionSpecification(name: option, value: "seconds", help: help)
    }

    static let all = [
        Deadline(
            "hookPatience", "--hook-patience",
            "How long the start waits for a hook before it goes on without the module, which joins the others when the "
                + "hook returns. (default: 2)"
        ) { $0.hookPatience = $1 },
        Deadline(
            "hookTimeout", "--hook-timeout",
            "How long constructors, the entry function or a hook may take; then the module has failed. (default: 30)"
        ) { $0.hookTimeout = $1 },
        Deadline(
            "scanTimeout", "--scan-timeout",
            "How long constructors or the entry function may take in a scan process. (default: 10)"
        ) { $0.scanTimeout = $1 },
        Deadline(
            "shutdownTimeout", "--shutdown-timeout",
            "How long the shutdown waits for running calls, and for each 'willStop' and 'tearDown'. (default: 5)"
        ) { $0.shutdownTimeout = $1 },
        Deadline(
            "handOverTimeout", "--hand-over-timeout",
            "How long a replacement waits for running calls of the module, and for each of its hooks 'suspend', "
                + "'resume' and 'unsuspend'. (default: 5)"
        ) { $0.handOverTimeout = $1 },
        Deadline(
            "drainTimeout", "--drain-timeout",
            "How long a replaced or removed module may stay in use before the host reports it. (default: 30)"
        ) { $0.drainTimeout = $1 },
        Deadline(
            "objectTimeout", "--object-timeout",
            "How long objects of a replaced or removed module answer. (default: as long as they are held)"
        ) { $0.objectTimeout = $1 },
        Deadline(
            "callTimeout", "--call-timeout",
            "How long a synchronous call of an isolated module may take. (default: 30)"
        ) { $0.isolation.callTimeout = $1 },
        Deadline(
            "hangGrace", "--hang-grace",
            "How much longer than '--call-timeout' a synchronous call of an isolated module may run before the host "
                + "ends its process. (default: 5)"
        ) { $0.isolation.hangGrace = $1 },
        Deadline(
            "stableTime", "--stable-time",
            "How long an isolated module must run before its earlier crashes are forgotten. (default: 60)"
        ) { $0.isolation.stableTime = $1 },
    ]

    /// The deadline of asynchronous calls, whose option several commands have.
    static let asyncTimeout = Deadline("asyncTimeout", OptionSpecification.timeout.name, "") { $0.asyncTimeout = $1 }

    /// Takes the deadlines from the entries of a configuration file, and removes them there.
    ///
    /// - Throws: `invalidConfiguration` if one is not positive.
    static func take(
        from entries: inout [String: Value], of file: String
    ) throws(PluginError) -> [(Deadline, Duration)] {
        var deadlines: [(Deadline, Duration)] = []
        for deadline in all + [asyncTimeout] {
            // The configuration of a module that has this name is a map.
            guard let value = entries[deadline.name], value.map == nil else { continue }
            guard let duration = value.double.flatMap(Duration.init(timeout:)) else {
                throw PluginError(
                    .invalidConfiguration,
                    "In the configuration \(file), \(deadline.name) is \(value.json.shortened); it must be a positive "
                        + "number of seconds.")
            }
            entries[deadline.name] = nil
            deadlines.append((deadline, duration))
        }
        return deadlines
    }

    func apply(_ duration: Duration, to configuration: inout PluginHost.Configuration) {
        set(&configuration, duration)
    }
}

extension ParsedArguments {
    /// Sets the deadlines that are given as options.
    func setDeadlines(of configuration: inout PluginHost.Configuration) throws(PluginError) {
        for deadline in Deadline.all {
            guard let duration = try duration(of: deadline.option) else { continue }
            deadline.apply(duration, to: &configuration)
        }
    }

    /// Returns the value of an option in seconds; `nil` if it is not given.
    func duration(of option: OptionSpecification) throws(PluginError) -> Duration? {
        guard let text = value(of: option) else { return nil }
        guard let seconds = Double(text), let duration = Duration(timeout: seconds) else {
            throw .usage("The value '\(text.shortened)' of '\(option.name)' is not a positive number of seconds.")
        }
        return duration
    }
}
