import PluginABI

// What the host tells about its modules by events of its own.

extension Dispatcher {
    /// `module.added`, or `module.replaced` with the version before.
    func postAdded(_ generation: Generation, insteadOf predecessor: Generation?) {
        guard let predecessor else { return postHostEvent("module.added", generation.eventParameters) }
        var parameters = generation.eventParameters
        parameters["previousVersion"] = .string(predecessor.version.description)
        postHostEvent("module.replaced", parameters)
    }

    func postRemoved(_ generation: Generation) {
        postHostEvent("module.removed", generation.eventParameters)
    }

    func postFailed(_ status: ModuleStatus) {
        var parameters: [String: Value] = ["file": .string(status.file)]
        if let name = status.name { parameters["name"] = .string(name) }
        if let error = status.error {
            parameters["code"] = .string(error.code.rawValue)
            parameters["message"] = .string(error.message)
        }
        postHostEvent("module.failed", parameters)
    }
}

extension Generation {
    fileprivate var eventParameters: [String: Value] {
        [
            "name": .string(name), "version": .string(version.description), "file": .string(file),
            "generation": .int(number),
        ]
    }
}
