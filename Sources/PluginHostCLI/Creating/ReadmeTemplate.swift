/// The README of a new module.
enum ReadmeTemplate {
    /// - Parameter commands: Commands, each of one or more lines, and what each one does.
    static func text(_ name: ModuleName, _ commands: [(command: String, effect: String)]) -> String {
        // The comment is on the last line of a command.
        let widths = commands.map { $0.command.split(separator: "\n").last?.count ?? 0 }
        let width = widths.max() ?? 0
        let lines = zip(commands, widths).map { line, own in
            line.command + String(repeating: " ", count: width - own) + "  # " + line.effect
        }
        return """
            # \(name.text)

            A module for PluginHost: the target `\(name.text)` with the action `greet`, and the route `app://\(name.host)/greet/:name`.

            ```
            \(lines.joined(separator: "\n"))
            ```

            """
    }
}
