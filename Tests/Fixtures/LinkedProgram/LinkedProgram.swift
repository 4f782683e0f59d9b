import PluginABI
import PluginHost

/// A program with linked modules that prints which modules exist and which ones answer. With `--isolate`, the modules
/// in files are isolated, and the program itself can be their worker.
///
///     LinkedProgram [--register NAME] [--unlinked] [--before] [--again] [--isolate] --plugins FOLDER
@main
struct LinkedProgram {
    static func main() throws {
        PluginHost.runWorkerIfAsked()
        let arguments = CommandLine.arguments
        func value(_ option: String) -> String? { arguments.firstIndex(of: option).map { arguments[$0 + 1] } }

        var configuration = PluginHost.Configuration(folders: [value("--plugins")!])
        configuration.takesLinkedModules = !arguments.contains("--unlinked")
        configuration.log = { print("log:", $0.module ?? "host", $0.message) }
        if arguments.contains("--isolate") { configuration.isolation.modules = .all }
        let before = arguments.contains("--before") ? PluginHost(unlinked(configuration)) : nil
        try before?.start()
        let host = PluginHost(configuration)
        if let name = value("--register") {
            try host.register(
                Manifest(name, version: "1.0.0") {
                    Target("Linked") {
                        Action("answer") { "the program" }
                    }
                })
        }
        try host.start()
        for module in host.modules {
            print("module:", module.file.split(separator: "/").last!, module.version ?? "-", module.state)
            if let error = module.error { print("error:", error.code.rawValue, error.message) }
            if module.process != nil { print("isolated:", module.name ?? "-") }
            if let name = module.name, name != "Linked", module.state == .active {
                print("answer of \(name):", (try? host.perform(name, "answer").string) ?? "nobody")
            }
        }
        print("answer:", (try? host.perform("Linked", "answer").string) ?? "nobody")
        print("route:", (try? host.open("app://linked").string) ?? "nobody")
        print("service:", (try? host.service("Answers", from: "1.0.0").perform("answer").string) ?? "nobody")
        if arguments.contains("--again") { try startOthers() }
        host.shutdown()
        if arguments.contains("--again") { try startOthers() }
    }

    /// The same configuration without linked modules and without a log.
    static func unlinked(_ configuration: PluginHost.Configuration) -> PluginHost.Configuration {
        var configuration = configuration
        configuration.takesLinkedModules = false
        configuration.log = { _ in }
        return configuration
    }

    /// Starts two further hosts, while the first host runs or after its end.
    static func startOthers() throws {
        let (second, third) = (PluginHost(.init(folders: [])), PluginHost(.init(folders: [])))
        for host in [second, third] {
            try host.start()
            print("another:", (try? host.perform("Linked", "answer").string) ?? host.problems.first?.message ?? "")
        }
        second.shutdown()
        third.shutdown()
    }
}

struct Linked: Module {
    static let manifest = Manifest("Linked", version: "1.0.0") {
        Target("Linked") {
            Action("answer") { "linked in" }
        }
        Route("app://linked", to: "Linked/answer")
        Service("Answers", version: "1.0.0", target: "Linked")
        On(.setUp) { context in context.log(.info, "set up") }
        On(.tearDown) { context in context.log(.info, "torn down") }
    }
}

@section("plugin_modules") @used
private let linked: ModuleRecord = { Linked.export() }

/// Has the same name as the other module.
struct Namesake: Module {
    static let manifest = Manifest("Linked", version: "3.0.0") {
        Target("Namesake") {
            Action("answer") { "nobody hears this" }
        }
    }
}

@section("plugin_modules") @used
private let namesake: ModuleRecord = { Namesake.export() }
