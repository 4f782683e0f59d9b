internal import PluginABI

/// `pluginhost completions SHELL`
enum Completions: Command {
    static let specification = CommandSpecification(
        name: "completions",
        overview: "Print the script with which a shell completes commands, options, modules, targets and actions.",
        discussion:
            "bash: source <(pluginhost completions bash), in ~/.bashrc. zsh: pluginhost completions zsh > "
            + "FOLDER/_pluginhost, with a folder of $fpath. fish: pluginhost completions fish > "
            + "~/.config/fish/completions/pluginhost.fish. Names of modules, targets, actions and parameters come from "
            + "the host of '--attach' or of the default socket, if it answers within a second.",
        arguments: [
            ArgumentSpecification(
                name: "shell", kind: .choice(ShellCompletion.Shell.allCases.map(\.rawValue)),
                help: "The shell: bash, zsh or fish.")
        ])

    static func run(_ invocation: Invocation) async throws(PluginError) {
        let name = invocation.arguments.positionals[0]
        guard let shell = ShellCompletion.Shell(rawValue: name) else {
            throw .usage("'\(name.shortened)' is not a supported shell: use bash, zsh or fish.")
        }
        invocation.console.printUnchanged(shell.script(Program.name))
    }
}
