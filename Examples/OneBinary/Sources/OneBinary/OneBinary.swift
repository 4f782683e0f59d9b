import PluginABI
import PluginHost

/// A program that contains its modules, without a folder or shared libraries.
///
///     swift run OneBinary             # the modules that are linked in
///     swift run OneBinary FOLDER      # the modules in a folder instead
@main
struct OneBinary {
    static func main() async throws {
        let folders = Array(CommandLine.arguments.dropFirst())
        var configuration = PluginHost.Configuration(folders: folders)
        configuration.takesLinkedModules = folders.isEmpty
        configuration.log = { print("[\($0.module ?? "host")] \($0.message)") }
        let host = PluginHost(configuration)
        try host.start()
        defer { host.shutdown() }

        for module in host.modules {
            print(module.name ?? module.file, module.version ?? "", module.state, module.error?.message ?? "")
        }
        await show("A/fetchDetail") { try host.perform("A", "fetchDetail", ["key": "lamp", "page": 2]) }
        await show("A/price, which asks B, which asks A") { try await host.call("A", "price", ["key": "apple"]) }
        await show("app://shop/detail/lamp/3") { try await host.open("app://shop/detail/lamp/3", origin: .remote) }
        await show("HomeService") { try host.service("HomeService").perform("fetchDetail", ["key": "lamp"]) }
        await show("B/slowly") { try await host.call("B", "slowly", ["text": "stressed"]) }
        await show("A/buy, which posts an event to B and C") { try host.perform("A", "buy", ["key": "apple"]) }
        await show("C/sold") { try host.perform("C", "sold") }
        await show("C/add") { try host.perform("C", "add", ["a": 40, "b": 2]) }
        await show("A/nativeSecret from outside") { try await host.open("app://A/nativeSecret", origin: .remote) }
        await show("A/nothing") { try host.perform("A", "nothing") }
    }

    static func show(_ what: String, _ body: @Sendable () async throws -> Value) async {
        do {
            print("\(what): \(try await body().json)")
        } catch {
            print("\(what) failed: \(error)")
        }
    }
}
