import Foundation
import PluginABI
public import PluginHost

extension PluginHost {
    /// Returns a started host with these of the built modules, in a folder of its own. It is not shut down before the
    /// program ends.
    public static func bench(
        _ modules: [String] = ["BenchModule", "CallerModule"], watches: Bool = false, isolated: Bool = false
    ) throws -> PluginHost {
        let temporary = TemporaryFolder()
        folders.append(temporary)
        let plugins = temporary.folder("plugins")
        for module in modules {
            try FileManager.default.copyItem(atPath: Opened.module(module), toPath: "\(plugins)/lib\(module).so")
        }
        return try bench(folder: plugins, in: temporary, watches: watches, isolated: isolated)
    }

    /// Returns a started host for a folder.
    ///
    /// - Parameter cache: The folder in which hosts record what they know about files. If it is given, modules start
    ///   with their first call.
    /// - Throws: `refused` if a module does not serve.
    public static func bench(
        folder: String, in temporary: TemporaryFolder, watches: Bool = false, isolated: Bool = false,
        cache: String? = nil
    ) throws -> PluginHost {
        let host = try started(folder: folder, in: temporary, watches: watches, isolated: isolated, cache: cache)
        try host.requireAll(cache == nil ? [.active] : [.active, .registered])
        return host
    }

    /// Returns a started host for a folder, as ``bench(folder:in:watches:isolated:cache:)`` does, without checking
    /// whether its modules serve.
    public static func started(
        folder: String, in temporary: TemporaryFolder, watches: Bool = false, isolated: Bool = false,
        cache: String? = nil
    ) throws -> PluginHost {
        var configuration = PluginHost.Configuration(folders: [folder])
        configuration.watches = watches
        if isolated {
            configuration.isolation.modules = .all
            configuration.isolation.workerPath = "\(Opened.folder)/pluginhost-worker"
            // However often a module crashes, it is started again at once.
            configuration.isolation.restartPauses = Array(repeating: .zero, count: 1_000)
        }
        if let cache { (configuration.start, configuration.registryCache) = (.lazy, cache) }
        configuration.stagingFolder = temporary.folder("staging")
        configuration.stateFolder = temporary.folder("state")
        let host = PluginHost(configuration)
        try host.start()
        return host
    }

    /// Checks the states of all modules.
    ///
    /// - Throws: `refused`, naming a module in another state.
    public func requireAll(_ states: [ModuleStatus.State]) throws {
        for module in modules where !states.contains(module.state) {
            throw PluginError(.refused, "\(module.file) is \(module.state): \(module.error?.message ?? "no reason")")
        }
    }

    /// Returns a started host with the given number of further actions.
    static func bench(actions: Int) throws -> PluginHost {
        let host = try bench()
        if actions > 0 {
            try host.register(
                Manifest("Filler", version: "1.0.0") {
                    for first in stride(from: 0, to: actions, by: 10) {
                        Target("Filler\(first / 10)") {
                            for number in first..<min(first + 10, actions) { Action("action\(number)") { number } }
                        }
                    }
                })
        }
        return host
    }
}

/// Kept until the end of the program.
nonisolated(unsafe) private var folders: [TemporaryFolder] = []  // Hosts are made on the main thread.
