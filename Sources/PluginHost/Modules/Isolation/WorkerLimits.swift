import CPluginHost
import CPluginWire
import FoundationEssentials
import Glibc
import PluginABI
import PluginFile

// What a worker process may reach and use, in the form in which it is sent to the process.

extension WorkerProcess {
    /// Sends the limits, before the process is started.
    ///
    /// - Throws: `invalidValue` if a path contains a zero byte.
    func postLimits() throws(PluginError) {
        let rule = settings.rule
        let (network, connects, listens) = rule.networkAndPorts
        let values: [Value] = [
            .int(Int(rule.sandboxNumber)), .int(rule.memoryLimit ?? 0), .int(rule.processorSeconds),
            .int(max(16, rule.descriptorLimit)), .int(rule.processLimit),
            Self.list([file.folder ?? file.path] + Self.libraryFolders), Self.list(rule.readablePaths),
            Self.list(rule.writablePaths), .int(network), .list(connects.map { .int(Int($0)) }),
            .list(listens.map { .int(Int($0)) }),
        ]
        try Value.list(values).lend { list in
            var message = plugin_wire_message()
            message.kind = PLUGIN_WIRE_CONFINE.rawValue
            (message.values, message.count) = (list.as.list, list.count)
            postOverSocket(message)
        }
    }

    private static func list(_ texts: [String]) -> Value { .list(texts.map(Value.string)) }

    /// The folders of libraries that are not system folders: that of the Swift runtime, and those that the dynamic
    /// linker searches because of the environment.
    private static let libraryFolders: [String] = {
        let names = ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"] ?? ""
        var folders = names.split(separator: ":").map(String.init).filter { $0.utf8.first == UInt8(ascii: "/") }
        if let library = plugin_host_library_of("swift_retain") {
            let path = String(cString: library).withoutLinks
            if path.contains(".so") { folders.append(path.parentFolder) }
        }
        return folders.filter { access($0, R_OK) == 0 }
    }()
}

extension IsolationRule {
    fileprivate var sandboxNumber: Int32 {
        switch sandbox {
        case .none: PLUGIN_WIRE_SANDBOX_NONE
        case .possible: PLUGIN_WIRE_SANDBOX_POSSIBLE
        case .required: PLUGIN_WIRE_SANDBOX_REQUIRED
        }
    }

    fileprivate var networkAndPorts: (number: Int, connects: [UInt16], listens: [UInt16]) {
        switch network {
        case .none: (Int(PLUGIN_WIRE_NETWORK_NONE), [], [])
        case .all: (Int(PLUGIN_WIRE_NETWORK_ALL), [], [])
        case .ports(let connects, let listens): (Int(PLUGIN_WIRE_NETWORK_PORTS), connects, listens)
        }
    }

    /// Whole seconds, at least one; 0 for no limit.
    fileprivate var processorSeconds: Int { processorTime.map { max(1, Int(clamping: $0.components.seconds)) } ?? 0 }

    /// The environment of the process, as `NAME=value`.
    var variables: [String] {
        let all = ProcessInfo.processInfo.environment
        let names = Set(Self.commonVariables + environment)
        return all.filter { sandbox == .none || names.contains($0.key) }.map { "\($0.key)=\($0.value)" }.sorted()
    }

    /// The variables of sanitizers are for hosts that are built with one.
    private static let commonVariables = [
        "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS",
    ]
}

// MARK: - Permissions

extension IsolationRule {
    /// Returns whether a permission that a module asks for is granted.
    func grants(_ permission: ModuleManifest.Permission) -> Bool {
        guard sandbox != .none else { return true }
        switch (permission.subject, network) {
        case (.read(let path), _): return (readablePaths + writablePaths).contains { path.isBelow($0) }
        case (.write(let path), _): return writablePaths.contains { path.isBelow($0) }
        case (.connect, .all), (.listen, .all), (.network, .all): return true
        case (.connect(let port), .ports(let ports, _)), (.listen(let port), .ports(_, let ports)):
            return ports.contains(port)
        case (.connect, .none), (.listen, .none), (.network, _): return false
        case (.processes(let count), _): return count <= processLimit
        case (.environment(let name), _): return (Self.commonVariables + environment).contains(name)
        }
    }

    mutating func grant(_ permission: ModuleManifest.Permission) {
        switch (permission.subject, network) {
        case (.read(let path), _): readablePaths.append(path)
        case (.write(let path), _): writablePaths.append(path)
        case (.connect(let port), .ports(let connect, let listen)):
            network = .ports(connect: connect + [port], listen: listen)
        case (.listen(let port), .ports(let connect, let listen)):
            network = .ports(connect: connect, listen: listen + [port])
        case (.connect(let port), _): network = .ports(connect: [port], listen: [])
        case (.listen(let port), _): network = .ports(connect: [], listen: [port])
        case (.network, _): network = .all
        case (.processes(let count), _): processLimit = count
        case (.environment(let name), _): environment.append(name)
        }
    }
}

extension LoadedModule {
    /// The error of a module that waits for permissions, or must be isolated and is not; `nil` if it has what it needs.
    var missingPermission: PluginError? {
        let name = manifest.name
        guard let rule = process?.rule else {
            guard manifest.isolation == .required, staged.source == .file else { return nil }
            let line = IsolationRule(name).json
            return PluginError(
                .permissionMissing,
                "\(name) waits: it must run in a process of its own. Start the host with --isolate \(name), or add this "
                    + "rule to the list “isolation” of its configuration: \(line)")
        }
        let missing = manifest.permissions.filter { !rule.grants($0) }
        guard !missing.isEmpty else { return nil }
        var granting = rule
        (granting.module, granting.folder) = (name, file.withoutLinks.parentFolder)
        for permission in missing where !granting.grants(permission) { granting.grant(permission) }
        let wishes = missing.map { permission in
            permission.reason.isEmpty ? "\(permission)" : "\(permission) (\(permission.reason.shortened))"
        }
        return PluginError(
            .permissionMissing,
            "\(name) waits: it asks \(wishes.joined(separator: "; ")). If it may, put this rule first in the list "
                + "“isolation” of the host's configuration, and start the host again: \(granting.json)")
    }
}
