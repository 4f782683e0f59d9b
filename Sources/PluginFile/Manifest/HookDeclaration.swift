import PluginABI

extension ModuleManifest {
    /// The functions that the host calls during the life of a module.
    ///
    /// The last three hooks hand over state from a generation to the one that replaces it: the `suspend` of the old one
    /// replies with a value, which the `resume` of the new one receives. If the replacement fails, `unsuspend` lets the
    /// old generation continue.
    package enum Hook: String, Sendable, CaseIterable {
        case setUp, `init`, didStart, willStop, tearDown, suspend, resume, unsuspend

        /// The parameters of the hook: `resume` gets the reply of `suspend`, and the version of the module that
        /// replied.
        var parameters: [Parameter] {
            guard self == .resume else { return [] }
            return [Parameter(name: "state", type: .any), Parameter(name: "version", type: .string, isRequired: true)]
        }
    }

    /// Returns a hook as an action.
    package func action(of hook: Hook) -> Action {
        Action(name: "", isAsync: asyncHooks.contains(hook), parameters: hook.parameters)
    }
}

extension ManifestNode {
    /// Reads the hooks, each given by its name, or as an object with `name` and `async`.
    func hooks() throws(PluginError) -> ([ModuleManifest.Hook], Set<ModuleManifest.Hook>) {
        var hooks: [ModuleManifest.Hook] = []
        var asyncHooks: Set<ModuleManifest.Hook> = []
        for value in try optional("hooks", \.list, "a list") ?? [] {
            var isAsync = false
            if value.map != nil {
                let node = try ManifestNode(value: value, location: "a hook", skipsUnknown: skipsUnknown)
                try node.checkKeys(["name", "async"])
                isAsync = try node.flag("async")
            }
            guard let text = value.string ?? value["name"]?.string else {
                throw error("each hook must be a string, or an object with a name")
            }
            guard let hook = ModuleManifest.Hook(rawValue: text) else {
                if skipsUnknown { continue }
                throw unknown("hook", text, ModuleManifest.Hook.allCases.map(\.rawValue))
            }
            try check(!hooks.contains(hook), else: "the hook \(text) is declared twice")
            hooks.append(hook)
            if isAsync { asyncHooks.insert(hook) }
        }
        return (hooks, asyncHooks)
    }

    /// Reads whether the module is exclusive. An exclusive module must be able to release what it owns, and to acquire
    /// it again.
    func isExclusive(with hooks: [ModuleManifest.Hook]) throws(PluginError) -> Bool {
        guard try flag("exclusive") else { return false }
        for hook in [ModuleManifest.Hook.suspend, .unsuspend] {
            try check(
                hooks.contains(hook),
                else:
                    "the module is \"exclusive\", but has no hook \(hook.rawValue); it needs suspend, which releases "
                    + "what it owns, and unsuspend, which acquires it again")
        }
        return true
    }
}
