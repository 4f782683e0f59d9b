internal import PluginABI

/// `pluginhost check FILE`
enum Check: Command {
    static let seed = OptionSpecification(
        name: "--seed", value: "number",
        help: "The seed of the generated parameters. Each run prints its seed. (default: random)")
    static let noCalls = OptionSpecification(
        name: "--no-calls", help: "Perform no actions: for modules whose actions have effects outside of the module.")
    static let with = OptionSpecification(
        name: "--with", value: "file", repeats: true,
        help: "A module that this one requires; can be given more than once.")
    static let isolate = OptionSpecification(
        name: "--isolate",
        help:
            "Check the module as an isolated one: in a process of its own, in a sandbox that grants what the rules of "
            + "'--config' grant.")
    static let config = OptionSpecification(
        name: "--config", value: "file",
        help:
            "A configuration file as for 'run'. The check uses the configuration of each module, the timeouts except "
            + "'hookPatience' and 'restartPauses', and with '--isolate' the rules in the list 'isolation'.")

    static let against = OptionSpecification(
        name: "--against", value: "file",
        help: "The last version of the module: show what has changed, and check that the version says so.")
    static let facade = OptionSpecification(
        name: "--facade", value: "file", help: "A façade of the module, made by 'facade', that must be up to date.")

    static let specification = CommandSpecification(
        name: "check",
        overview: "Check a module before you ship it: its description, and its behavior when it is called.",
        discussion:
            "This performs every action of targets, and of the objects that they return, many times with generated "
            + "parameters. Use '--no-calls' for a module whose actions must not be performed. The module is "
            + "replaced by a copy of itself. Interceptors are not run. Each check runs in a process of its "
            + "own, so that a crash is a finding. A finding names the file and the line of the code if the module was "
            + "built with debug information and addr2line or llvm-symbolizer is in PATH. The result of a check is: "
            + "pass; warning or FAILURE, with what to do; or skipped, with the reason. The exit code is 0 if no check "
            + "fails, with or without warnings, 65 if one fails, and 66 if there is no such file.",
        arguments: [ArgumentSpecification(name: "file", kind: .file, help: "The shared library.")],
        options: [
            seed, noCalls, with, isolate, config, against, facade, .trust,
            OptionSpecification(
                name: "--timeout", value: "seconds",
                help: "The timeout of each check; one asynchronous call gets a quarter of it. (default: 30)"), .json,
        ])

    static func run(_ invocation: Invocation) async throws(PluginError) {
        let (arguments, console) = (invocation.arguments, invocation.console)
        let check = try moduleCheck(arguments)
        let report = try check.run { result in
            if !invocation.isJSON { console.print(result.line(console.outputStyle)) }
        }
        console.print(invocation.isJSON ? record(of: report, check).json : "seed \(check.seed)")
        guard report.failures > 0 else { return }
        let name = report.module.map { "\($0.name) \($0.version)" } ?? check.file
        throw PluginError(
            .checkFailed,
            "\(name) fails \(report.failures) of \(counted(report.results.count, "check"))."
                + (report.failsBySeed ? " Run the check again with '--seed \(check.seed)'." : ""))
    }

    private static func moduleCheck(_ arguments: ParsedArguments) throws(PluginError) -> ModuleCheck {
        guard arguments.positionals[0] != "" else {
            throw .usage("The name of the file is empty. Pass the path of a shared library.")
        }
        let seed = try arguments.wholeNumber(of: seed, in: 0...UInt64.max)
        let configuration = try arguments.value(of: config).map { (file) throws(PluginError) in
            try ConfigurationFile(path: file).read()
        }
        return ModuleCheck(
            file: arguments.positionals[0], others: arguments.values(of: with),
            trustsEveryone: arguments.has(.trust), seed: seed ?? .random(in: 0..<1_000_000_000),
            callsActions: !arguments.has(noCalls), isolates: arguments.has(isolate),
            configuration: configuration.map { CheckedConfiguration($0.modules, $0.isolation, $0.deadlines) }
                ?? CheckedConfiguration(),
            deadline: try arguments.timeout ?? ModuleCheck.defaultDeadline,
            lastVersion: arguments.value(of: against), facade: arguments.value(of: facade))
    }

    private static func record(of report: ModuleCheck.Report, _ check: ModuleCheck) -> Value {
        [
            "file": .string(check.file), "module": .text(report.module?.name), "version": .text(report.module?.version),
            "seed": .int(Int(truncatingIfNeeded: check.seed)), "passed": .bool(report.failures == 0),
            "checks": .list(report.results.map(\.record)),
        ]
    }
}
