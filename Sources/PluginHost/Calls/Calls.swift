import PluginABI
import Synchronization

/// The call path of one host, for all ways to find an action: resolve, check, bind, invoke, reply.
struct Calls: Sendable {
    let core: HostCore

    @inline(__always)
    init(_ core: HostCore) { self.core = core }

    @inline(__always)
    var registry: Registry { core.registry }
    @inline(__always)
    var settings: HostCore.Settings { core.settings }
    @inline(__always)
    var program: Generation { core.program }

    /// Creates the core of a host, with the function table for its modules and the host's own actions.
    static func makeCore(_ settings: HostCore.Settings) -> HostCore {
        let core = HostCore(settings, hostTable: HostTable.make)
        let program = core.program!
        core.ownActions = .init(
            serviceWaiter: makeServiceWaiter(program),
            emission: (
                EventBubbling.endpoint(of: program, isAsync: false), EventBubbling.endpoint(of: program, isAsync: true)
            ),
            routePage: makeRoutePage(program),
            waitingCalls: makeWaitingCalls(program), startingCalls: makeStartingCalls(program),
            guardedCalls: makeGuardedCalls(program),
            posting: .passRetained(Endpoint(own: "posting of an event", of: program) { _, _, _, _ in }),
            rootCall: .passRetained(Endpoint(own: "call with a context", of: program) { _, _, _, _ in }))
        return core
    }

    /// The receiver of the outcome of a call.
    struct Receiver {
        let completion: plugin_completion
        let data: UnsafeMutableRawPointer?

        /// - Parameter completion: The function that receives the outcome; `nil` if the caller does not need it.
        @inline(__always)
        init(_ completion: plugin_completion?, _ data: UnsafeMutableRawPointer?) {
            (self.completion, self.data) = (completion ?? { _, _, _ in }, data)
        }

        /// A receiver that ignores the outcome.
        static var none: Receiver { Receiver(nil, nil) }

        func receive(_ error: PluginError) { error.lend { completion(data, nil, $0) } }

        func receive(_ value: UnsafePointer<plugin_value>) { completion(data, value, nil) }

        /// Receives the outcome of `body`.
        func receive(_ body: () throws(PluginError) -> Value) {
            do throws(PluginError) {
                try body().lend { value in withUnsafePointer(to: value) { receive($0) } }
            } catch {
                receive(error)
            }
        }
    }

    /// The outcomes that a caller accepts: only those that arrive before the call returns (`synchronous`), or also
    /// later ones (`any`).
    enum Mode { case synchronous, any }

    // MARK: Entry

    /// Makes the call that a request describes. The receiver receives the outcome exactly once; in mode `.synchronous`
    /// before this function returns.
    ///
    /// This is the fast path for almost every call: an action of a serving module, found by its names or as a bound
    /// one. Most events go through ``postFast(_:parent:from:to:_:_:)``, and everything else through
    /// ``dispatchSlow(_:parent:from:mode:to:)``, which also reports errors.
    ///
    /// - Returns: The token by which the call can be cancelled, or 0 if it is over.
    @discardableResult
    @inline(__always)
    func dispatch(
        _ asked: UnsafePointer<plugin_request>, parent: plugin_token, from caller: Generation, mode: Mode,
        to receiver: Receiver
    ) -> plugin_token {
        guard let thread = ThreadContext.current, let record = thread.next, seesPublished(caller, thread),
            caller.isProgram || asked.isSoundButForParameters
        else { return dispatchSlow(asked, parent: parent, from: caller, mode: mode, to: receiver) }
        let parent = parent != 0 ? parent : thread.currentCall
        let found = enter(record, thread, parent: parent, from: caller) { find(asked, in: $0) }
        guard let found else {
            return dispatchOther(asked, parent: parent, from: caller, mode: mode, to: receiver, thread, record)
        }
        if asked.pointee.isPlain,
            callFast(found, asked.pointee.entries, areTrusted: caller.isProgram, receiver, thread, record)
        {
            return 0
        }
        return begin(found, asked, parent: parent, from: caller, mode: mode, to: receiver, thread, record)
    }

    /// Handles requests for which the table has no action; most of them are events.
    @inline(never)
    private func dispatchOther(
        _ asked: UnsafePointer<plugin_request>, parent: plugin_token, from caller: Generation, mode: Mode,
        to receiver: Receiver, _ thread: ThreadContext, _ record: CallRecord
    ) -> plugin_token {
        if asked.pointee.address == PLUGIN_ADDRESS_EVENT, mode == .synchronous,
            postFast(asked, parent: parent, from: caller, to: receiver, thread, record)
        {
            return 0
        }
        return dispatchSlow(asked, parent: parent, from: caller, mode: mode, to: receiver)
    }

    /// Returns whether a caller sees the published table rather than a proposed one.
    @inline(__always)
    func seesPublished(_ caller: Generation, _ thread: ThreadContext) -> Bool {
        thread.seesPublished && !caller.isStarting.load(ordering: .relaxed)
    }

    /// Finds an action in the published table, and enters the call in its record. Returns `nil`, without doing
    /// anything, if there is no such action or if there are interceptors. The caller must have checked that it sees the
    /// published table (``seesPublished(_:_:)``).
    @inline(__always)
    func enter(
        _ record: CallRecord, _ thread: ThreadContext, parent: plugin_token, from caller: Generation,
        find: (Table) -> Unmanaged<Endpoint>?
    ) -> Unmanaged<Endpoint>? {
        registry.read(thread, isPublished: true) { table in
            guard table.interception == nil, let endpoint = find(table) else { return nil }
            occupy(record, endpoint, parent: parent, caller: .passUnretained(caller))
            return endpoint
        }
    }

    /// Returns the action that a request addresses as a bound action, or by target and action.
    @inline(__always)
    private func find(_ asked: UnsafePointer<plugin_request>, in table: Table) -> Unmanaged<Endpoint>? {
        switch asked.pointee.address {
        case PLUGIN_ADDRESS_BOUND: core.boundActions.endpoint(asked.pointee.object, in: table)
        case PLUGIN_ADDRESS_ACTION: table.find(asked.pointee.target, asked.pointee.action)
        default: nil
        }
    }

    /// Begins a call whose action was found and entered in the record.
    @inline(never)
    private func begin(
        _ found: Unmanaged<Endpoint>, _ asked: UnsafePointer<plugin_request>, parent: plugin_token,
        from caller: Generation, mode: Mode, to receiver: Receiver, _ thread: ThreadContext, _ record: CallRecord
    ) -> plugin_token {
        if mode == .any, asked.pointee.isPlain,
            let token = beginFast(
                found, asked.pointee.entries, parent: parent, from: caller, to: receiver, thread, record)
        {
            return token
        }
        let call = Call(asked, parent: parent, from: caller, thread, mode, receiver)
        do throws(PluginError) {
            if !caller.isProgram { try asked.pointee.checkValues() }
            return try found.lend { (endpoint) throws(PluginError) in
                try invoke(endpoint, asked.pointee.entries, call, thread, record)
            }
        } catch {
            refuse(error, receiver, thread, record)
            return 0
        }
    }

    /// Makes a call in this thread's next record. If it cannot be begun, the receiver receives the error that `body`
    /// throws.
    ///
    /// - Returns: The result of `body`: a token, or 0; `nil` if `body` has not called anything, in which case the
    ///   receiver receives nothing.
    @inline(__always)
    func inNextRecord(
        _ receiver: Receiver, _ thread: ThreadContext? = .current,
        _ body: (ThreadContext, CallRecord) throws(PluginError) -> plugin_token?
    ) -> plugin_token? {
        guard let thread, let record = thread.next else {
            receiver.receive(.recursionLimit)
            return 0
        }
        do throws(PluginError) { return try body(thread, record) } catch {
            refuse(error, receiver, thread, record)
            return 0
        }
    }

    /// Ends a call that was not begun. If its action was found, the statistics count it as a call of the action that
    /// ended with an error, and the object that the call retains is released.
    func refuse(_ error: PluginError, _ receiver: Receiver, _ thread: ThreadContext, _ record: CallRecord) {
        var object: plugin_object = 0
        if let endpoint = record.endpoint {
            thread.count(endpoint)
            thread.countError(endpoint)
            object = record.object
        }
        record.vacate()
        if object != 0 { _ = ObjectTable.release(object) }
        receiver.receive(error)
    }

    /// Makes the call that a request describes, whatever its address.
    @inline(never)
    private func dispatchSlow(
        _ asked: UnsafePointer<plugin_request>, parent: plugin_token, from caller: Generation, mode: Mode,
        to receiver: Receiver
    ) -> plugin_token {
        guard let thread = ThreadContext.current, let record = thread.next else {
            receiver.receive(.recursionLimit)
            return 0
        }
        let (seen, table) = (thread.table, caller.table)
        if table != seen {
            thread.table = table
            defer { thread.table = seen }
            return dispatchSlow(asked, parent: parent, from: caller, mode: mode, to: receiver)
        }
        do throws(PluginError) {
            if !caller.isProgram { try asked.pointee.checkValues() }
            let call = Call(asked, parent: parent, from: caller, thread, mode, receiver)
            switch asked.pointee.address {
            case PLUGIN_ADDRESS_ACTION:
                return try self.call(
                    asked.pointee.target, asked.pointee.action, asked.pointee.entries, call, thread, record)
            case PLUGIN_ADDRESS_BOUND: return try callBound(asked.pointee, call, thread, record)
            case PLUGIN_ADDRESS_URL:
                return try open(
                    RawText(asked.pointee.target), asked.pointee.entries,
                    asksForObject: asked.pointee.flags & PLUGIN_REQUEST_OBJECT != 0, method: asked.pointee.method, call,
                    thread, record)
            case PLUGIN_ADDRESS_OBJECT: return try callObject(asked.pointee, call, thread, record)
            case PLUGIN_ADDRESS_SERVICE: return try callService(asked.pointee, call, thread, record)
            case PLUGIN_ADDRESS_EVENT: return try post(asked.pointee, call, from: caller, thread)
            case PLUGIN_ADDRESS_CHAIN: return try emit(asked.pointee, call, from: caller, thread, record)
            default:
                throw PluginError(
                    .invalidValue, "The request has the unknown address kind \(asked.pointee.address).")
            }
        } catch {
            refuse(error, receiver, thread, record)
            return 0
        }
    }

    /// The properties that all calls have, whatever their kind of address.
    struct Call {
        /// Whether the call comes from this process and sets no timeout, like `plugin_request.isPlain`.
        var isPlain: Bool { !isRemote && timeout <= 0 }
        let parent: plugin_token
        var timeout: Int64
        let isRemote: Bool
        let mode: Mode
        var receiver: Receiver
        /// The generation that makes the call and can cancel it by its token; `nil` for the host itself. Generations
        /// are never freed.
        var caller: Unmanaged<Generation>? = nil
        /// Whether the call gets an instance of its own, whatever the target declares.
        var isFresh = false
        /// The route that led to the call; the caller keeps the route's table alive.
        var route: Unmanaged<RouteEntry>? = nil
    }
}

extension Calls.Call {
    /// Creates a call with the properties that a request sets.
    @inline(__always)
    fileprivate init(
        _ asked: UnsafePointer<plugin_request>, parent: plugin_token, from caller: Generation, _ thread: ThreadContext,
        _ mode: Calls.Mode, _ receiver: Calls.Receiver
    ) {
        self.init(
            parent: parent != 0 ? parent : thread.currentCall, timeout: asked.pointee.timeout,
            isRemote: asked.pointee.flags & PLUGIN_REQUEST_REMOTE != 0, mode: mode, receiver: receiver,
            caller: .passUnretained(caller), isFresh: asked.pointee.flags & PLUGIN_REQUEST_FRESH != 0)
    }
}

extension plugin_request {
    /// The parameters.
    @inline(__always)
    var entries: UnsafeBufferPointer<plugin_entry> {
        UnsafeBufferPointer(start: parameters, count: Int(truncatingIfNeeded: parameter_count))
    }

    /// Whether the request comes from this process and sets no timeout.
    @inline(__always)
    var isPlain: Bool { flags & PLUGIN_REQUEST_REMOTE == 0 && timeout <= 0 }
}

extension Generation {
    /// The call path of the host that the generation belongs to.
    @inline(__always)
    var calls: Calls { Calls(core) }
}
