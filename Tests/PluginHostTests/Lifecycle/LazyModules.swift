import Foundation
import PluginABI

@testable import PluginHost
@testable import TestSupport

/// Sealed modules that note what they do, and hosts that start them when they are first needed.
struct LazyModules {
    private let folder: TemporaryFolder
    /// The file in which modules note what they do.
    let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = "\(folder.path)/notes"
    }

    var notes: String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }

    /// A host with files of these modules, which it starts when they are first needed.
    func makeHost(
        _ modules: [CModule], watches: Bool = false, configure: (inout PluginHost.Configuration) -> Void = { _ in }
    ) throws -> TestHost {
        let host = try TestHost { configuration, folder in
            configuration.start = .lazy
            configuration.watches = watches
            configure(&configuration)
            for module in modules { try module.build(into: "\(folder.path)/plugins", as: "\(module.name).so") }
        }
        try host.start()
        return host
    }

    /// A sealed module that notes when it is opened and set up.
    func module(_ name: String, more: String = "", setUp: String = "") -> CModule {
        CModule(
            name: name, answer: name, isSealed: true, moreManifest: more,
            setUp: "note(\"\(path)\", \"\(name) \");\n\(setUp)",
            entry: "note(\"\(path)\", \"open:\(name) \");")
    }

    /// C code that calls `answer` of a target and notes the outcome.
    func calling(_ target: String) -> String {
        """
        plugin_request request = ask("\(target)", "answer");
        char outcome[64] = "?";
        host->perform(host, call->token, &request, take, outcome);
        note("\(path)", outcome);
        note("\(path)", " ");
        """
    }

    static let taking = """
        static void take(void *outcome, const plugin_value *value, const plugin_error *error) {
            plugin_string text = error ? error->code : (plugin_string){value->as.string, value->count};
            snprintf(outcome, 64, "%s%.*s", error ? "!" : "=", (int)text.count, text.bytes);
        }
        """

    func caller(_ name: String, of other: String, in hook: String) -> CModule {
        var module = module(name)
        module.code = Self.taking
        if hook == "setUp" { module.setUp! += calling(other) } else { module.hooks = ["init": calling(other)] }
        return module
    }

    /// The modules that were set up, in order.
    var setUps: [String] { notes.split(separator: " ").map(String.init).filter { $0.first!.isUppercase } }
}
