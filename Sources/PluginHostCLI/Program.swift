internal import CPluginHost
internal import Dispatch
internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginFile
internal import PluginHost

/// The program `pluginhost`.
@main
struct Program {
    static let name = "pluginhost"
    static let version = HostVersion.current
    static let overview = "Load modules from shared libraries and perform their actions."
    static let commands: [any Command.Type] = [
        Run.self, List.self, Call.self, Release.self, Open.self, Post.self, Routes.self, Services.self, Stats.self,
        Resolve.self, Remove.self, Rollback.self, Versions.self, Restart.self, Events.self, Top.self,
        Inspect.self, Check.self, Diff.self, MakeFacade.self, New.self, Seal.self, Completions.self, Man.self,
    ]
    static var specifications: [CommandSpecification] { commands.map { $0.specification } }

    private let console: Console
    private let variables: [String: String]
    private let help = HelpPage(program: name)

    static func main() {
        let arguments = ProgramArguments.all.dropFirst()
        if arguments.first == InspectionChild.word { InspectionChild.run(Array(arguments.dropFirst())) }
        occupyStandardDescriptors()
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)  // Writing past `ulimit -f` is an error, not the end of the program.
        // Not in the cooperative pool, because code of modules can block all its threads.
        Task(executorPreference: BlockingExecutor.shared) { await answer(Array(arguments)) }
        // Serves the main queue, for modules that use the main actor.
        dispatchMain()
    }

    private static func answer(_ arguments: [String]) async -> Never {
        if arguments.first == CheckChild.word { await CheckChild.run(Array(arguments.dropFirst())) }
        let variables = ProcessInfo.processInfo.environment
        if arguments.first == ShellCompletion.word { await complete(Array(arguments.dropFirst()), variables) }
        let program = Program(console: Console(environment: variables), variables: variables)
        let code = await program.run(arguments)
        program.console.flush()
        plugin_host_end(code.rawValue)
    }

    private static func complete(_ arguments: [String], _ variables: [String: String]) async -> Never {
        let console = Console(environment: variables)
        let lines = await ShellCompletion.answer(arguments, specifications, variables)
        if !lines.isEmpty { console.print(lines) }
        console.flush()
        plugin_host_end(ExitCode.success.rawValue)
    }

    /// Opens those of the standard descriptors that are closed. Otherwise, files opened later would get these
    /// descriptors.
    private static func occupyStandardDescriptors() {
        var descriptor: CInt = 0
        while (0...2).contains(descriptor) { descriptor = open("/dev/null", O_RDWR | O_CLOEXEC) }
        close(descriptor)
    }

    func run(_ arguments: [String]) async -> ExitCode {
        let code = await answer(arguments)
        return code == .success && console.hasFailed ? .cannotWrite : code
    }

    private func answer(_ arguments: [String]) async -> ExitCode {
        let rest = Array(arguments.dropFirst())
        do throws(PluginError) {
            switch arguments.first {
            case nil, "-h", "--help": console.print(try helpPage(of: nil))
            case "help": console.print(try helpPage(of: rest.first))
            case "--version": console.print(Self.version)
            case let name?: return await run(try command(named: name), rest)
            }
            return .success
        } catch {
            console.report(error, asJSON: false)
            console.diagnose("Usage: \(Self.name) <subcommand>\n  See '\(Self.name) --help' for more information.")
            return ExitCode(error)
        }
    }

    /// Returns the help page of a command, or of the program if `name` is `nil`.
    private func helpPage(of name: String?) throws(PluginError) -> String {
        guard let name else {
            return help.overview(Self.overview, commands: Self.specifications)
        }
        return help.page(of: try command(named: name).specification)
    }

    private func command(named name: String) throws(PluginError) -> any Command.Type {
        if let command = Self.commands.first(where: { $0.specification.name == name }) { return command }
        guard !name.hasPrefix("-") else {
            throw .usage("Unknown option '\(name.shortened)'. Options follow the command.")
        }
        let close = didYouMean(name, Self.commands.map { $0.specification.name } + ["help"])
        throw .usage("Unknown command '\(name.shortened)'.\(close)")
    }

    private func run(_ command: any Command.Type, _ arguments: [String]) async -> ExitCode {
        do {
            let parsed = try ArgumentParser(command: command.specification).parse(arguments)
            if parsed.has(.help) {
                console.print(help.page(of: command.specification))
            } else {
                try await command.run(Invocation(arguments: parsed, console: console, variables: variables))
            }
            return .success
        } catch {
            let options = arguments.prefix { $0 != "--" }
            let isJSON = options.contains(OptionSpecification.json.name)
            // With JSON output, the failed check was already printed.
            if error.code != .checkFailed || !isJSON { console.report(error, asJSON: isJSON) }
            if error.code == .usage, error.source == nil { diagnoseUsage(of: command.specification) }
            return ExitCode(error)
        }
    }

    private func diagnoseUsage(of command: CommandSpecification) {
        console.diagnose(HelpPage.wrap(["Usage:"] + help.usage(of: command), indent: 7))
        console.diagnose("  See '\(Self.name) help \(command.name)' for more information.")
    }
}
