/// The README of a new module.
enum ReadmeTemplate {
    /// - Parameter commands: Commands, and what each one does.
    static func text(_ name: ModuleName, _ commands: [(command: String, effect: String)]) -> String {
        let width = commands.map(\.command.count).max() ?? 0
        let lines = commands.map { command, text in
            command + String(repeating: " ", count: width - command.count) + "  # " + text
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
