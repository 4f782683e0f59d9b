import PluginABI
import Synchronization

// How the call path finds the endpoint for a request: one function for each kind of address.

extension Calls {
    /// Calls an action by target and action.
    func call(
        _ target: plugin_string, _ action: plugin_string, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call,
        _ thread: ThreadContext, _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        let found: Unmanaged<Endpoint>? = registry.read(thread) { table in
            guard table.interception == nil else { return nil }
            let endpoint = table.find(target, action)
            if let endpoint { occupy(record, endpoint, call) }
            return endpoint
        }
        guard let found else { return try callSlow(target, action, entries, call, thread, record) }
        return try found.lend { (endpoint) throws(PluginError) in
            try invoke(endpoint, entries, call, thread, record)
        }
    }

    /// Calls an action by target and action, if there are interceptors or the action was not found.
    func callSlow(
        _ target: plugin_string, _ action: plugin_string, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call,
        _ thread: ThreadContext, _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        let (found, table) = registry.read(thread) { table in
            let endpoint = table.find(target, action)
            if let endpoint { occupy(record, endpoint, call) }
            return (endpoint, table)
        }
        guard let found else {
            if let module = table.contents.known.module(answering: target, action) {
                let kept = try start(
                    module, for: .action(target.text, action.text), entries, call, thread, record)
                if let kept { return kept }
                return try callSlow(target, action, entries, call, thread, record)
            }
            let answer = try callFallback(target.text, action.text, entries, call, thread, record, in: table)
            if let answer { return answer }
            return try callSlow(target, action, entries, call, thread, record)
        }
        return try invoke(found.takeUnretainedValue(), entries, call, thread, record, through: table.interception)
    }

    /// Calls the fallback for a missing action. Returns `nil` if the fallback was a `notFound` that has been removed in
    /// the meantime; the action must then be looked up again.
    private func callFallback(
        _ target: String, _ action: String, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call,
        _ thread: ThreadContext,
        _ record: CallRecord, in table: Table
    ) throws(PluginError) -> plugin_token? {
        let fallback = try fallback(for: target, action, isRemote: call.isRemote, in: table)
        return try self.call(fallback, for: target, action, entries, call, thread, record, in: table)
    }

    /// Calls a fallback for a missing action. Returns `nil` if it was a `notFound` that has been removed in the
    /// meantime; the action must then be looked up again.
    func call(
        _ fallback: Fallback, for target: String, _ action: String, _ entries: UnsafeBufferPointer<plugin_entry>,
        _ call: Call, _ thread: ThreadContext, _ record: CallRecord, in table: Table
    ) throws(PluginError) -> plugin_token? {
        switch fallback {
        case .notFound(let notFound):
            let isThere = registry.read(thread) { present in
                guard present.targets[target]?.actions["notFound"] === notFound else { return false }
                occupy(record, .passUnretained(notFound), call)
                return true
            }
            guard isThere else { return nil }
            return try Parameters(ofNotFound: action, parametersAsMap(entries)).lend { (entries) throws(PluginError) in
                try invoke(notFound, entries, call, thread, record, through: table.interception)
            }
        case .program(let handler):
            if handler.isAsync, call.mode == .synchronous { throw .asynchronousFallback(table.missing(target, action)) }
            let parameters = Parameters(positional: [
                .string(target), .string(action), parametersAsMap(entries), .bool(call.isRemote),
            ])
            return try FallbackReceiver.naming("\(target)/\(action)", call) { (call) throws(PluginError) in
                try parameters.lend { (entries) throws(PluginError) in
                    try callObject(handler.callback.object.handle, "call", entries, call, thread, record)
                }
            }
        }
    }

    /// The fallback for a missing action.
    enum Fallback {
        /// The action `notFound` of the target.
        case notFound(Endpoint)
        /// The program's handler for targets and actions that no module offers.
        case program(MissingTargetHandler)
    }

    /// Finds the fallback for an action that a table does not have.
    ///
    /// - Throws: The error that explains why the names lead nowhere, if there is no fallback.
    func fallback(
        for target: String, _ action: String, isRemote: Bool, in table: Table
    ) throws(PluginError) -> Fallback {
        if let notFound = table.targets[target]?.actions["notFound"], !isRemote || notFound.isRemote {
            return .notFound(notFound)
        }
        if !table.isStopped, let handler = core.missingTargetHandler.withLock({ $0 }) { return .program(handler) }
        throw table.missing(target, action)
    }

    /// Returns the entries as a map, by name, or by index if they have none. If a name occurs more than once, the first
    /// entry is used.
    private func parametersAsMap(_ entries: UnsafeBufferPointer<plugin_entry>) -> Value {
        let named = entries.enumerated().lazy.map { [host = program.hostTable!] index, entry in
            (entry.key.count == 0 ? String(index) : entry.key.text, Value(copying: entry.value, host: host))
        }
        return .map(Dictionary(named, uniquingKeysWith: { first, _ in first }))
    }

    /// Calls an action of an object.
    func callObject(
        _ request: borrowing plugin_request, _ call: Call, _ thread: ThreadContext, _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        try callObject(request.object, request.action.text, request.entries, call, thread, record)
    }

    func callObject(
        _ handle: plugin_object, _ action: String, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call,
        _ thread: ThreadContext, _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        guard ObjectTable.retain(handle) else {
            throw PluginError(.unknownObject, "The object \(handle) is gone: its last holder has released it.")
        }
        let (type, instance) = ObjectTable.contents(of: handle)
        guard let endpoint = type.actions[action] else {
            _ = ObjectTable.release(handle)
            // Only the objects of a service have a provider of instances.
            let owner = type.instances == nil ? "The object type" : "The service"
            throw PluginError.unknownAction(action, of: "\(owner) \(type.name)", type.actions.keys)
        }
        occupy(record, .passUnretained(endpoint), call)
        record.object = handle
        if type.generation.isRevoked.load(ordering: .relaxed) { throw .revoked(type) }
        let interception = core.isIntercepting.load(ordering: .relaxed) ? registry.current(thread).interception : nil
        return try invoke(endpoint, entries, call, thread, record, instance: instance, through: interception)
    }
}

extension Parameters {
    /// Creates the parameters with which the action `notFound` of a target is called.
    init(ofNotFound action: String, _ parameters: PluginABI.Value) {
        self.init([("action", .string(action)), ("parameters", parameters)])
    }
}
