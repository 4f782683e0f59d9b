import ArgumentParser
import Foundation
import PluginHost

/// The program `pluginhost-gateway`.
@main
struct GatewayProgram: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pluginhost-gateway", abstract: "Serves the modules of a plugins folder over HTTP.",
        subcommands: [Serve.self, FleetCommand.self])

    /// Workers of isolated modules run this program, too.
    static func main() async {
        PluginHost.runWorkerIfAsked()
        PluginHost.installFatalSignalReport()
        await main(nil)
    }
}
