import PluginABI
import PluginHost

/// A program with plugins: loads what is in the folder that it is given, says what is there, and calls one action.
///
///     swift run Embed FOLDER
@main
struct Embed {
    static func main() async throws {
        PluginHost.installFatalSignalReport()

        var configuration = PluginHost.Configuration(folders: Array(CommandLine.arguments.dropFirst()))
        configuration.log = { print("[\($0.module ?? "host")] \($0.message)") }
        let host = PluginHost(configuration)
        try host.start()
        defer { host.shutdown() }

        for problem in host.problems { print(problem.message) }
        for module in host.modules {
            print(module.file, module.state, module.error?.message ?? module.targets.joined(separator: ", "))
        }

        do {
            let text = try await host.call("B", "slowly", ["text": "stressed"]).get(String.self)
            print("B/slowly says:", text)
        } catch {
            print("B/slowly failed:", error.message)
        }
    }
}
