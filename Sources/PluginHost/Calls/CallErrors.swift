import PluginABI
import PluginFile

// The errors of the call path. Not used by calls that succeed.

extension PluginError {
    /// The error for a call that finds no record on this thread.
    static var recursionLimit: PluginError {
        guard ThreadContext.current != nil else {
            return PluginError(
                .outOfResources,
                "This thread can make no calls: there is no memory for them, or 65,536 other threads already make calls. "
                    + "Limits: \(ProcessLimits.ofMemory).")
        }
        return PluginError(
            .recursionLimit,
            "Calls are nested more than \(PLUGIN_DEPTH_MAX) levels deep: modules seem to call each other without end.")
    }

    static var tooManyCalls: PluginError {
        PluginError(.recursionLimit, "More than eight million asynchronous calls are in flight.")
    }

    static func revoked(_ type: ObjectTypeEntry) -> PluginError {
        PluginError(
            .generationRetired,
            "The object of type \(type.name.shortened) belongs to \(type.generation.label), which no longer serves, and "
                + "the time limit for its objects has passed. Get a new object.")
    }

    static func notRemote(_ endpoint: Endpoint) -> PluginError {
        PluginError(
            .notRemote, "\(endpoint.title) cannot be called by other programs: it is not declared remote.")
    }

    static func asynchronous(_ endpoint: Endpoint) -> PluginError {
        PluginError(
            .asynchronousAction, "\(endpoint.title) is asynchronous: use call (or performAndWait), not perform.")
    }

    /// Returns the error for a caller that cannot wait for the program's fallback.
    ///
    /// - Parameter missing: The error that the caller would get without the fallback.
    static func asynchronousFallback(_ missing: PluginError) -> PluginError {
        PluginError(
            .asynchronousAction,
            "\(missing.message) The program's handler for missing targets and actions is asynchronous: use call (or "
                + "performAndWait), not perform.")
    }

    static func unknownAction(
        _ action: String, of owner: String, _ known: some Sequence<String>
    ) -> PluginError {
        PluginError(.unknownAction, "\(owner) has no action “\(action.shortened)”.\(didYouMean(action, known))")
    }

    static func unknownParameter(_ name: String, _ endpoint: Endpoint) -> PluginError {
        if endpoint.isVariadic {
            return PluginError(
                .unknownParameter, "A callback takes its arguments by position, not by name (“\(name.shortened)”).")
        }
        if endpoint.hasRest {
            let reason = name.isEmpty ? "needs a name" : "is reserved for what the host provides"
            return PluginError(
                .unknownParameter,
                "The parameter “\(name.shortened)” \(reason): it cannot be in the rest of \(endpoint.title).")
        }
        let known = endpoint.parameters.map(\.name)
        let list = known.isEmpty ? "It takes none." : "It takes \(known.joined(separator: ", ").shortened)."
        return PluginError(
            .unknownParameter,
            "\(endpoint.title) has no parameter “\(name.shortened)”.\(didYouMean(name, known)) \(list)")
    }

    static func tooManyArguments(_ count: Int, _ endpoint: Endpoint) -> PluginError {
        let rest = endpoint.hasRest ? " and a rest, which is one map" : ""
        return PluginError(
            .unknownParameter,
            "\(count) parameters were given to \(endpoint.title), which declares only "
                + "\(endpoint.parameters.count)\(rest).")
    }

    static func givenTwice(_ name: String, _ endpoint: Endpoint) -> PluginError {
        PluginError(
            .unknownParameter,
            "The parameter “\(name.shortened)” of \(endpoint.title) was given by name and by position.")
    }

    static func missingParameter(_ parameter: Endpoint.Parameter, _ endpoint: Endpoint) -> PluginError {
        PluginError(
            .missingParameter,
            "\(endpoint.title) needs the parameter “\(parameter.name.shortened)” (\(parameter.kind)).")
    }

    static func mistypedParameter(
        _ parameter: Endpoint.Parameter, _ value: plugin_value, _ endpoint: Endpoint
    ) -> PluginError {
        PluginError(
            .mistypedParameter,
            "The parameter “\(parameter.name.shortened)” of \(endpoint.title) is declared \(parameter.kind); "
                + "\(value.description) was given.")
    }

    static func mistypedRest(_ value: plugin_value, _ endpoint: Endpoint) -> PluginError {
        PluginError(
            .mistypedParameter,
            "After its \(endpoint.parameters.count) parameters, \(endpoint.title) takes its rest by position, as one map; "
                + "\(value.description) was given.")
    }
}

extension plugin_value {
    /// The value as messages show it: its type and, for a number, the number.
    fileprivate var description: String {
        switch kind {
        case PLUGIN_KIND_NULL: "null"
        case PLUGIN_KIND_INT: "the int \(self.as.integer)"
        case PLUGIN_KIND_DOUBLE: "the double \(self.as.real)"
        default: Value.Kind(raw: kind).map { "a value of type \($0)" } ?? "a value of an unknown type"
        }
    }
}

extension Table {
    /// Returns the error that explains why a target and action lead nowhere.
    func missing(_ target: String, _ action: String) -> PluginError {
        if isStopped {
            return PluginError(
                .hostStopped,
                "The host has been shut down: \(target.shortened)/\(action.shortened) cannot be called.")
        }
        guard let entry = targets[target] else {
            if let known = contents.known.target(target) {
                return .unknownAction(
                    action, of: "The target \(target.shortened) of \(known.module.name.shortened)",
                    known.declaration.actions.map(\.name))
            }
            if let absence = absences.ofTarget(target) { return absence.error("The target “\(target.shortened)”") }
            return PluginError(
                .unknownTarget,
                "No module offers the target “\(target.shortened)”.\(didYouMean(target, Array(targets.keys) + contents.known.targetNames))"
            )
        }
        return .unknownAction(
            action, of: "The target \(target.shortened) of \(entry.generation.name.shortened)", entry.actions.keys)
    }
}
