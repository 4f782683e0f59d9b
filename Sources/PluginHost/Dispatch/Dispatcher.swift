import CPluginABI
import CPluginHost
import Dispatch
import Glibc
import PluginABI
import Synchronization

/// The call path. Whatever finds an action, the rest is this: resolve, check, bind, invoke, reply.
final class Dispatcher: Sendable {
    let registry = Registry()
    let settings: Settings
    /// Changes of the registry's modules run here, one at a time.
    let changes = DispatchQueue(label: "pluginhost.lifecycle")
    let profiler = Profiler()

    struct Settings: Sendable {
        /// The schemes of URLs that address `scheme://target/action`, in lower case.
        var schemes: Set<String>
        /// How long an asynchronous call may take when its caller does not say.
        var asyncTimeout: Duration
        /// What every module is told: a map.
        var context: Value = [:]
        var log: @Sendable (LogEntry) -> Void
    }

    /// Asked before every call that comes from another program.
    let remoteGuard = Mutex<RemoteGuard?>(nil)

    /// What modules are told, by their names.
    let moduleConfiguration = Mutex<[String: Value]>([:])

    /// Whether there are interceptors, for calls that need no table.
    let isIntercepting = Atomic(false)

    /// What stands in for targets that nobody offers.
    let noTargetHandler = Mutex<Callback?>(nil)

    /// Who subscribes in the program, and what is kept for those who come later.
    let events = EventBoard()

    /// The program as a caller, and the owner of its callbacks.
    private(set) nonisolated(unsafe) var program: Generation!  // Set in init, and never again.

    /// Waits for services. Set in init, and never again.
    private(set) nonisolated(unsafe) var serviceWaiter: Endpoint!
    /// What the record of an event shows while it is on its way; never invoked.
    private(set) nonisolated(unsafe) var posting: Endpoint!  // Set in init, and never again.

    init(_ settings: Settings) {
        self.settings = settings
        program = Generation(programOf: self)
        serviceWaiter = Self.makeServiceWaiter(program)
        posting = Endpoint(
            name: "posting of an event", parameters: [], isAsync: true, isRemote: false, invoke: { _, _, _, _ in },
            data: nil, generation: program, instances: nil, gate: nil)
    }

    /// Who is told the outcome of a call.
    struct Receiver {
        let completion: plugin_completion
        let data: UnsafeMutableRawPointer?

        func receive(_ error: PluginError) { error.lend { completion(data, nil, $0) } }
    }

    /// Whether the caller can wait for an asynchronous action.
    enum Mode { case synchronous, any }

    // MARK: The way in

    /// Calls what a request asks for. The receiver is told exactly once; in mode `.synchronous` before this returns.
    ///
    /// - Returns: the token to cancel the call by, or 0 when it is over.
    @discardableResult
    func dispatch(
        _ request: borrowing plugin_request, parent: plugin_token, from caller: Generation, mode: Mode,
        to receiver: Receiver
    ) -> plugin_token {
        guard let lane = Lane.current, let record = lane.next else {
            receiver.receive(.recursionLimit)
            return 0
        }
        do throws(PluginError) {
            if !caller.isProgram { try request.checkValues() }
            let call = Call(
                parent: parent != 0 ? parent : lane.currentCall, timeout: request.timeout,
                isRemote: request.flags & PLUGIN_REQUEST_REMOTE != 0, mode: mode, receiver: receiver,
                isFresh: request.flags & PLUGIN_REQUEST_FRESH != 0)
            switch request.address {
            case PLUGIN_ADDRESS_ACTION:
                let entries = UnsafeBufferPointer(start: request.parameters, count: Int(request.parameter_count))
                return try self.call(request.target, request.action, entries, call, lane, record)
            case PLUGIN_ADDRESS_URL:
                return try open(request, call, lane, record)
            case PLUGIN_ADDRESS_OBJECT:
                return try callObject(request, call, lane, record)
            case PLUGIN_ADDRESS_SERVICE:
                return try callService(request, call, lane, record)
            case PLUGIN_ADDRESS_EVENT:
                return try post(request, call, from: caller)
            default:
                throw PluginError(.invalidValue, "A request has the address kind \(request.address), which is unknown.")
            }
        } catch {
            record.vacate()
            receiver.receive(error)
            return 0
        }
    }

    /// What all kinds of address share.
    struct Call {
        let parent: plugin_token
        let timeout: Int64
        let isRemote: Bool
        let mode: Mode
        let receiver: Receiver
        /// Whether it gets an instance of its own, whatever the target says.
        var isFresh = false
        /// The route that led here; the caller holds its table.
        var route: Unmanaged<RouteEntry>? = nil
    }

    // MARK: Resolvers, one for each kind of address

    /// Target and action.
    func call(
        _ target: plugin_string, _ action: plugin_string, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call,
        _ lane: Lane, _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        let found: Unmanaged<Endpoint>? = registry.read(lane) { table in
            guard table.interception == nil else { return nil }
            let endpoint = table.find(target, action)
            if let endpoint { occupy(record, endpoint, call) }
            return endpoint
        }
        guard let found else { return try callSlowly(target, action, entries, call, lane, record) }
        return try invoke(found.takeUnretainedValue(), entries, call, lane, record)
    }

    /// The same where there are interceptors, or the action is not found.
    private func callSlowly(
        _ target: plugin_string, _ action: plugin_string, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call,
        _ lane: Lane, _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        let (found, interception) = registry.read(lane) { table in
            let endpoint = table.find(target, action)
            if let endpoint { occupy(record, endpoint, call) }
            return (endpoint, table.interception)
        }
        guard let found else { return try callFallback(target.text, action.text, entries, call, lane, record) }
        return try invoke(found.takeUnretainedValue(), entries, call, lane, record, through: interception)
    }

    /// The target's `notFound`, then the host's handler, then the error.
    func callFallback(
        _ target: String, _ action: String, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call, _ lane: Lane,
        _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        let table = registry.table
        if let notFound = table.targets[target]?.actions["notFound"], !call.isRemote || notFound.isRemote {
            occupy(record, .passUnretained(notFound), call)
            let parameters = Parameters([
                ("action", .string(action)), ("parameters", parametersAsMap(entries, from: notFound.generation)),
            ])
            return try parameters.withEntries { (entries, count) throws(PluginError) in
                try invoke(
                    notFound, UnsafeBufferPointer(start: entries, count: count), call, lane, record,
                    through: table.interception)
            }
        }
        if table.targets[target] == nil, !table.isStopped, let handler = noTargetHandler.withLock({ $0 }) {
            let program = ObjectTable.contents(of: handler.object.handle).0.generation
            let parameters = Parameters(positional: [
                .string(target), .string(action), parametersAsMap(entries, from: program), .bool(call.isRemote),
            ])
            return try parameters.withEntries { (entries, count) throws(PluginError) in
                try callObject(
                    handler.object.handle, "call", UnsafeBufferPointer(start: entries, count: count), call, lane,
                    record)
            }
        }
        throw table.missing(target, action)
    }

    /// What was given, by name, or by number where it had none. Of equal names the first one counts.
    private func parametersAsMap(_ entries: UnsafeBufferPointer<plugin_entry>, from generation: Generation) -> Value {
        let named = entries.enumerated().lazy.map { index, entry in
            (
                entry.key.count == 0 ? String(index) : entry.key.text,
                Value(copying: entry.value, host: generation.hostTable)
            )
        }
        return .map(Dictionary(named, uniquingKeysWith: { first, _ in first }))
    }

    /// A URL: what it addresses, and the parameters that it carries.
    private func open(
        _ request: borrowing plugin_request, _ call: Call, _ lane: Lane, _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        let given = UnsafeBufferPointer(start: request.parameters, count: Int(request.parameter_count))
        let table = registry.current(lane)
        let resolution = try resolve(request.target.text, given, isRemote: call.isRemote, table)
        if call.isRemote { postHostEvent("host.openURL", ["url": .string(resolution.url.text)]) }
        let endpoint = table.targets[resolution.target]?.actions[resolution.action]
        let parameters = try resolution.parameters(
            for: endpoint.map { Array($0.parameters) } ?? [], overriddenBy: given,
            asksForObject: request.flags & PLUGIN_REQUEST_OBJECT != 0)
        var call = call
        call.route = resolution.route.map(Unmanaged.passUnretained)
        defer { withExtendedLifetime(resolution) {} }
        // What the caller gave rides along as it is; what the URL carried has been converted.
        return try parameters.withEntries { (entries, count) throws(PluginError) in
            let all = Array(given) + UnsafeBufferPointer(start: entries, count: count)
            return try all.withUnsafeBufferPointer { (all) throws(PluginError) in
                try resolution.withNames { [call] (target, action) throws(PluginError) in
                    try self.call(target, action, all, call, lane, record)
                }
            }
        }
    }

    /// An object and its action.
    private func callObject(
        _ request: borrowing plugin_request, _ call: Call, _ lane: Lane, _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        let entries = UnsafeBufferPointer(start: request.parameters, count: Int(request.parameter_count))
        return try callObject(request.object, request.action.text, entries, call, lane, record)
    }

    private func callObject(
        _ handle: plugin_object, _ action: String, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call,
        _ lane: Lane, _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        guard ObjectTable.retain(handle) else {
            throw PluginError(.unknownObject, "The object \(handle) is gone: its last holder has released it.")
        }
        let (type, instance) = ObjectTable.contents(of: handle)
        let named = type.actions[action]
        // What implements a service is a target, with a target's fallback.
        let notFound = type.instances == nil ? nil : type.actions["notFound"]
        guard let endpoint = named ?? notFound else {
            _ = ObjectTable.release(handle)
            throw PluginError.unknownAction(action, of: "The object type \(type.name)", type.actions.keys)
        }
        occupy(record, .passUnretained(endpoint), call)
        record.pointer.pointee.object = handle
        do throws(PluginError) {
            let interception = isIntercepting.load(ordering: .relaxed) ? registry.current(lane).interception : nil
            if named != nil {
                return try invoke(endpoint, entries, call, lane, record, instance: instance, through: interception)
            }
            let parameters = Parameters([
                ("action", .string(action)), ("parameters", parametersAsMap(entries, from: endpoint.generation)),
            ])
            return try parameters.withEntries { (entries, count) throws(PluginError) in
                let entries = UnsafeBufferPointer(start: entries, count: count)
                return try invoke(endpoint, entries, call, lane, record, instance: instance, through: interception)
            }
        } catch {
            _ = ObjectTable.release(handle)
            throw error
        }
    }
}

extension Generation {
    /// Whether this is the program itself, whose values need no checking.
    var isProgram: Bool { number == 0 }
}
