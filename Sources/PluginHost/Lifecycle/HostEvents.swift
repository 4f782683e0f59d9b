import PluginABI

// What the host tells about its modules by events of its own.

extension Lifecycle {
    /// Tells newcomers the sticky events that were posted before they came.
    func deliverSticky(_ sticky: [EventBoard.StickyEvent], to newcomers: [Generation]) {
        for generation in newcomers {
            dispatcher.deliverSticky(sticky) { event in generation.subscriptions[event].map(Subscriber.module) }
        }
    }

    /// `module.added`, or `module.replaced` with the version before.
    func postAdded(_ generation: Generation, insteadOf predecessor: Generation?) {
        guard let predecessor else { return dispatcher.postHostEvent("module.added", generation.eventParameters) }
        var parameters = generation.eventParameters
        parameters["previousVersion"] = .string(predecessor.version.description)
        dispatcher.postHostEvent("module.replaced", parameters)
    }

    func postRemoved(_ generation: Generation) {
        dispatcher.postHostEvent("module.removed", generation.eventParameters)
    }

    func postFailed(_ status: ModuleStatus) {
        var parameters: [String: Value] = ["file": .string(status.file)]
        if let name = status.name { parameters["name"] = .string(name) }
        if let error = status.error {
            parameters["code"] = .string(error.code.rawValue)
            parameters["message"] = .string(error.message)
        }
        dispatcher.postHostEvent("module.failed", parameters)
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
