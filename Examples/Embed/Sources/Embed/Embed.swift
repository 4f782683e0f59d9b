import PluginABI
import PluginHost
import Synchronization

/// A program with plugins. It loads the modules in a folder, prints a list of them, and shows the ways to call them.
/// Use it with the modules of `Plugins`.
///
///     swift run Embed FOLDER
@main
struct Embed {
    static func main() async throws {
        PluginHost.installFatalSignalReport()

        var configuration = PluginHost.Configuration(folders: Array(CommandLine.arguments.dropFirst()))
        configuration.schemes = ["app"]
        configuration.log = { print("[\($0.module ?? "host")] \($0.message)") }
        let host = PluginHost(configuration)
        try host.start()
        defer { host.shutdown() }

        for problem in host.problems { print(problem.message) }
        for module in host.modules {
            print(
                module.name ?? module.file, module.state,
                module.error?.message ?? module.targets.joined(separator: ", "))
        }

        await byName(host)
        await byURL(host)
        await around(host)
    }

    /// Calls actions by target and name, and by a bound action for repeated calls.
    static func byName(_ host: PluginHost) async {
        await show("B/slowly") { try await host.call("B", "slowly", ["text": "stressed"]).get(String.self) }
        let price = host.bind("A", "price")
        for key in ["apple", "pear"] {
            await show("A/price of \(key)") { try price.perform(["key": .string(key)]).get(String.self) }
        }
    }

    /// Opens URLs of a route that the program adds, and URLs from outside, which must pass a guard.
    static func byURL(_ host: PluginHost) async {
        await show("app://catalog/lamp") {
            try host.addRoute("app://catalog/:key", to: "A/fetchDetail", name: "catalog")
            return try await host.open("app://catalog/lamp?page=2").json
        }
        await show("the URL of an entry") { try host.url(for: "catalog", ["key": "lamp", "page": 3]) }
        host.onRemoteCall { call in
            call.target == "C" ? .refuse("C is for this program.") : .pass
        }
        await show("app://B/greet from outside") {
            try await host.open("app://B/greet?name=Ada", origin: .remote).get(String.self)
        }
        await show("app://C/add from outside") {
            "\(try await host.open("app://C/add?a=1&b=2", origin: .remote).get(Int.self))"
        }
    }

    /// Intercepts calls: one interceptor counts them, one changes a parameter.
    static func around(_ host: PluginHost) async {
        let calls = Mutex(0)
        let counting = host.intercept(.target("B")) { call, next in
            calls.withLock { $0 += 1 }
            return try next(call)
        }
        let polite = host.intercept(.action("B", "greet")) { call, next in
            var call = call
            call.parameters["name"] = .string("dear \(call.parameters["name"]?.string ?? "you")")
            return try next(call)
        }
        await show("B/greet, intercepted") { try host.perform("B", "greet", ["name": "Ada"]).get(String.self) }
        polite.remove()
        counting.remove()
        await show("B/greet, as it is") { try host.perform("B", "greet", ["name": "Ada"]).get(String.self) }
        print("Calls of B that were counted:", calls.withLock { $0 })
    }

    static func show(_ what: String, _ body: () async throws -> String) async {
        do {
            print("\(what): \(try await body())")
        } catch {
            print("\(what) failed: \((error as? PluginError)?.message ?? "\(error)")")
        }
    }
}
