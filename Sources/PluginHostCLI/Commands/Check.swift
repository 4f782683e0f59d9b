internal import PluginABI
internal import PluginHost

extension PluginError.Code {
    /// A module does not do what it must; what that is was printed.
    static let checkFailed: Self = "checkFailed"
}

/// `pluginhost check FILE`
struct Check: Command {
    static let seed = OptionSpecification(
        name: "--seed", value: "number", help: "Where the generated parameters begin; a run prints its own.")
    static let noCalls = OptionSpecification(
        name: "--no-calls", help: "Perform no action: for modules whose actions change things outside of them.")
    static let with = OptionSpecification(
        name: "--with", value: "file", repeats: true,
        help: "A module that this one requires; can be given more than once.")

    static let specification = CommandSpecification(
        name: "check",
        overview: "Check a module before it is shipped: what it says, and what it does when it is called.",
        discussion:
            "It performs every action of targets and of the objects that they give, many times, with parameters that are "
            + "generated: give '--no-calls' for a module that must not do what it can. Hooks for replacement "
            + "('suspend', 'resume', 'unsuspend') and interceptors are not run. Each check runs in a process of its "
            + "own, so that a crash is a finding. It says for each check: pass, warning, FAILURE and what to do, or "
            + "skipped and why. The exit code is 0 without a failure, warnings or not, 65 with one, and 66 where there "
            + "is no such file.",
        arguments: [ArgumentSpecification(name: "file", help: "The shared library.")],
        options: [
            seed, noCalls, with, .trust,
            OptionSpecification(
                name: "--timeout", value: "seconds",
                help: "The deadline of each check; one asynchronous call has a quarter. (default: 30)"), .json,
        ])

    private let arguments: ParsedArguments
    private let check: ModuleCheck

    init(_ arguments: ParsedArguments) throws(PluginError) {
        self.arguments = arguments
        guard arguments.positionals[0] != "" else {
            throw PluginError(.usage, "The name of the file is empty. Give the path of a shared library.")
        }
        let given = try arguments.wholeNumber(of: Self.seed, in: 0...UInt64.max)
        check = ModuleCheck(
            file: arguments.positionals[0], others: arguments.values(of: Self.with),
            trustsEveryone: arguments.has(.trust), seed: given ?? .random(in: 0..<1_000_000_000),
            callsActions: !arguments.has(Self.noCalls), deadline: try arguments.timeout ?? ModuleCheck.defaultDeadline)
    }

    func run(_ environment: CommandEnvironment) async throws(PluginError) {
        let console = environment.console
        let isJSON = arguments.has(.json)
        let report = try await check.run { result in
            if !isJSON { console.print(result.line(console.outputStyle)) }
        }
        if isJSON { console.print(json(report).json) } else { console.print("seed \(check.seed)") }
        guard report.failures > 0 else { return }
        let name = report.module.map { "\($0.name) \($0.version)" } ?? check.file
        throw PluginError(
            .checkFailed,
            "\(name) fails \(report.failures) of \(counted(report.results.count, "check"))."
                + (report.failsBySeed ? " Run it again with '--seed \(check.seed)'." : ""))
    }

    private func json(_ report: ModuleCheck.Report) -> Value {
        [
            "file": .string(check.file), "module": report.module.map { .string($0.name) } ?? nil,
            "version": report.module.map { .string($0.version) } ?? nil,
            "seed": .int(Int(truncatingIfNeeded: check.seed)),
            "passed": .bool(report.failures == 0), "checks": .list(report.results.map(\.record)),
        ]
    }
}
