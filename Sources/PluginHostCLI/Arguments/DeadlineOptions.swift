internal import PluginABI
internal import PluginHost

/// A deadline of the host, or another time, that an option of 'run', or an entry of the configuration file, sets in
/// seconds.
struct Deadline: Sendable {
    /// The form of a value.
    enum Form: Sendable {
        /// A number of seconds, more than 0.
        case positive
        /// A number of seconds, at least 1.
        case long
        /// A number of seconds from 0 to 0.1.
        case short
        /// Up to 100 numbers of seconds.
        case list

        /// The description for errors about options and about the configuration file.
        var expected: (option: String, entry: String) {
            switch self {
            case .positive: ("a positive number of seconds", "a positive number of seconds")
            case .long: ("a number of seconds, at least 1", "a number of seconds, at least 1")
            case .short: ("a number of seconds from 0 to 0.1", "a number of seconds from 0 to 0.1")
            case .list:
                (
                    "a list of up to 100 numbers of seconds, as in '0,0.5,10'; or 'none'",
                    "a list of up to 100 numbers of seconds"
                )
            }
        }
    }

    /// The name of the entry in the configuration file, which is that of the property of the host's configuration.
    let name: String
    let option: OptionSpecification
    let form: Form
    private let set: @Sendable (inout PluginHost.Configuration, [Duration]) -> Void

    private init(
        _ name: String, _ option: String, _ help: String,
        _ set: @escaping @Sendable (inout PluginHost.Configuration, Duration) -> Void
    ) {
        self.init(name, option, .positive, help) { set(&$0, $1[0]) }
    }

    private init(
        _ name: String, _ option: String, _ form: Form, _ help: String,
        _ set: @escaping @Sendable (inout PluginHost.Configuration, [Duration]) -> Void
    ) {
        (self.name, self.form, self.set) = (name, form, set)
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
        Deadline(
            "restartPauses", "--restart-pauses", .list,
            "The pauses before an isolated module that has crashed is started again, separated by commas. When all are "
                + "used, the next crash is final. 'none': never start it again. (default: 0,0.1,1,10,60)"
        ) { $0.isolation.restartPauses = $1 },
        Deadline(
            "restAfter", "--rest-after", .long,
            "How long an isolated module that is stateless must be idle before its process is ended; the next call starts "
                + "it again. At least 1; for '--lazy'. (default: never)"
        ) { $0.isolation.restAfter = $1[0] },
        Deadline(
            "quietTime", "--quiet-time", .short,
            "How long the folders must stay unchanged before a change is handled, from 0 to 0.1. (default: 0.005)"
        ) { $0.quietTime = $1[0] },
    ]

    /// The deadline of asynchronous calls, whose option several commands have.
    static let asyncTimeout = Deadline("asyncTimeout", OptionSpecification.timeout.name, "") { $0.asyncTimeout = $1 }

    /// All deadlines that a configuration file may contain.
    static var entries: [Deadline] { all + [asyncTimeout] }

    /// Takes the deadlines from the entries of a configuration file, and removes them there.
    ///
    /// - Throws: `invalidConfiguration` if one is not valid.
    static func take(
        from entries: inout [String: Value], of file: String
    ) throws(PluginError) -> [(Deadline, [Duration])] {
        var deadlines: [(Deadline, [Duration])] = []
        for deadline in self.entries {
            // The configuration of a module that has this name is a map.
            guard let value = entries[deadline.name], value.map == nil else { continue }
            let numbers = deadline.form == .list ? value.list : [value]
            guard let durations = numbers.flatMap({ deadline.durations($0.map(\.double)) }) else {
                throw PluginError(
                    .invalidConfiguration,
                    "In the configuration \(file), \(deadline.name) is \(value.json.shortened); it must be "
                        + "\(deadline.form.expected.entry).")
            }
            entries[deadline.name] = nil
            deadlines.append((deadline, durations))
        }
        return deadlines
    }

    /// Returns the durations of numbers of seconds; `nil` if they are not valid.
    func durations(_ seconds: [Double?]) -> [Duration]? {
        var durations: [Duration] = []
        for number in seconds {
            guard let number else { return nil }
            if number == 0, form == .short || form == .list {
                durations.append(.zero)
            } else if let duration = Duration(timeout: number), form != .short || number <= 0.1,
                form != .long || number >= 1
            {
                durations.append(duration)
            } else {
                return nil
            }
        }
        return form == .list ? (durations.count <= 100 ? durations : nil) : durations.count == 1 ? durations : nil
    }

    /// Returns the durations that the text of an option states; `nil` if it is not valid.
    fileprivate func durations(_ text: String) -> [Duration]? {
        guard form == .list else { return durations([Double(text)]) }
        if text == "none" { return [] }
        return durations(text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) })
    }

    func apply(_ durations: [Duration], to configuration: inout PluginHost.Configuration) {
        set(&configuration, durations)
    }
}

extension ParsedArguments {
    /// Sets the deadlines that are given as options.
    func setDeadlines(of configuration: inout PluginHost.Configuration) throws(PluginError) {
        for deadline in Deadline.all {
            guard let text = value(of: deadline.option) else { continue }
            guard let durations = deadline.durations(text) else {
                throw .usage(
                    "The value '\(text.shortened)' of '\(deadline.option.name)' is not "
                        + "\(deadline.form.expected.option).")
            }
            deadline.apply(durations, to: &configuration)
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
