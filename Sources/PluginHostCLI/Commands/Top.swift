internal import FoundationEssentials
internal import Glibc
internal import PluginABI

/// `pluginhost top`
enum Top: Command {
    static let once = OptionSpecification(
        name: "--once", help: "Print one table and end, as if the output were not a terminal.")
    static let interval = OptionSpecification(
        name: "--interval", value: "seconds", help: "The time between two tables, 0.1 to 3600. (default: 1)")

    static let specification = CommandSpecification(
        name: "top",
        overview: "Show which actions of a running host are called now: calls per second, errors and durations.",
        discussion:
            "The actions with the most calls per second come first. On a terminal, the table is renewed until Ctrl-C; "
            + "otherwise, one table is printed after one interval. The number of calls and errors, and the durations, "
            + "are those since the host was started.",
        options: [once, interval, .attach, .json])

    static func run(_ invocation: Invocation) async throws(PluginError) {
        let interval = try interval(invocation.arguments)
        guard let host = try invocation.runningHost() else {
            throw .usage("'top' needs a running host; pass its socket with '\(OptionSpecification.attach.name)'.")
        }
        let console = invocation.console
        let isLive =
            console.width != nil && !invocation.has(once) && !invocation.isJSON && invocation.promptHost == nil
        var before = try await Sample(host)
        repeat {
            // Not Task.sleep, because at the prompt, modules can block all threads that it needs.
            usleep(UInt32(interval * 1e6))
            let sample = try await Sample(host)
            let rates = sample.rates(since: before)
            before = sample
            if invocation.isJSON {
                console.print(Value.list(rates).json)
            } else if isLive {
                console.redraw(text(rates, sample.date, console))
            } else {
                console.print(.rates, of: .list(rates))
            }
        } while isLive && !console.isClosed
    }

    private static func interval(_ arguments: ParsedArguments) throws(PluginError) -> Double {
        guard let text = arguments.value(of: interval) else { return 1 }
        guard let seconds = Double(text), (0.1...3600).contains(seconds) else {
            throw .usage("The value '\(text.shortened)' of '\(interval.name)' is not a number from 0.1 to 3600.")
        }
        return seconds
    }

    /// Returns a headline and as many rows as the terminal has room for.
    private static func text(_ rates: [Value], _ date: Date, _ console: Console) -> String {
        let calls = rates.reduce(0) { $0 + ($1["callsPerSecond"]?.double ?? 0) }
        let errors = rates.reduce(0) { $0 + ($1["errorsPerSecond"]?.double ?? 0) }
        let modules = Set(rates.map { $0.text("module") }).count
        let head =
            "\(date.timeOfDay)  \(counted(modules, "module")), \(inTenths(calls)) calls/s, \(inTenths(errors)) errors/s"
        return head + "\n\n" + console.text(of: .rates, .list(Array(rates.prefix(max(1, console.height - 4)))))
    }

    /// The figures of all actions at one moment.
    struct Sample {
        let date = Date.now
        let actions: [Value]
        private let time = ContinuousClock.now

        init(_ host: any HostService) async throws(PluginError) {
            self.init(try await host.request("stats", [:]).list ?? [])
        }

        init(_ actions: [Value]) { self.actions = actions }

        /// Returns the figures with the calls and errors per second since an earlier sample, the most called action
        /// first.
        func rates(since before: Sample) -> [Value] {
            rates(since: before, seconds: max(1e-3, (time - before.time) / .seconds(1)))
        }

        func rates(since before: Sample, seconds: Double) -> [Value] {
            let earlier = Dictionary(before.actions.map { (Self.key($0), $0) }) { first, _ in first }
            let rates = actions.map { action -> Value in
                let old = earlier[Self.key(action)] ?? [:]
                // The count is lower than before if the host was restarted in the meantime.
                let calls = max(0, action.number("calls") - old.number("calls"))
                let errors = max(0, action.number("errors") - old.number("errors"))
                let new: [String: Value] = [
                    "callsPerSecond": .double(Double(calls) / seconds),
                    "errorsPerSecond": .double(Double(errors) / seconds),
                ]
                return .map((action.map ?? [:]).merging(new) { $1 })
            }
            return rates.sorted { first, second in
                let (one, other) = (first["callsPerSecond"]?.double ?? 0, second["callsPerSecond"]?.double ?? 0)
                if one != other { return one > other }
                return first.number("calls") > second.number("calls")
            }
        }

        private static func key(_ action: Value) -> [String] { [action.text("module"), action.text("action")] }
    }
}
