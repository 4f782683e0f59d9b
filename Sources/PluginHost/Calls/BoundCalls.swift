import CPluginABI
import CPluginHost
import Glibc
import PluginABI
import Synchronization

extension Calls {
    /// Names that were bound, where there is more to do than to call: as by target and action.
    func callBound(
        _ number: plugin_bound_action, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call, _ lane: Lane,
        _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        guard let place = core.boundActions.place(number) else {
            throw PluginError(.invalidValue, "There is no bound action with the number \(number).")
        }
        let (target, action) = place._withUnsafeGuaranteedRef { ($0.target, $0.action) }
        return try self.call(target, action, entries, call, lane, record)
    }

    /// The way of almost every typed call of a bound action, as ``dispatch(_:parent:from:mode:to:)`` is for requests.
    ///
    /// - Returns: Whether the result is there; if not, the receiver has been told. Nil, with nothing done, where there is
    ///   more to do than to call.
    @inline(__always)
    fileprivate func callBound(
        _ number: plugin_bound_action, _ arguments: UnsafeBufferPointer<plugin_value>, from caller: Generation,
        into result: UnsafeMutablePointer<plugin_value>, or receiver: Receiver
    ) -> Bool? {
        guard let lane = Lane.current, let record = lane.next, seesPublished(caller, lane) else { return nil }
        let found = enter(record, lane, parent: lane.currentCall, from: caller) {
            core.boundActions.endpoint(number, in: $0)
        }
        guard let found else { return nil }
        let isThere = callStraight(
            found, arguments, areTrusted: caller.isProgram, into: result, or: receiver, lane, record)
        if let isThere { return isThere }
        record.vacate()
        return nil
    }
}

extension HostTable {
    /// The extension of bound actions.
    nonisolated(unsafe) static let bound: UnsafePointer<plugin_bound> = {
        let bound = UnsafeMutablePointer<plugin_bound>.allocate(capacity: 1)
        bound.initialize(
            to: plugin_bound(
                size: UInt32(MemoryLayout<plugin_bound>.size), reserved: 0,
                bind: { host, target, action in
                    guard (try? target.check("")) != nil, (try? action.check("")) != nil else { return 0 }
                    return caller(host).takeUnretainedValue().calls.core.boundActions.bind(target.text, action.text)
                },
                perform: { performBound($0, $1, $2, $3, $4, $5, $6) }))
        return UnsafePointer(bound)
    }()

    /// A function of its own: a closure as small as this would become part of the function that the compiler makes of it
    /// for C, into which it inlines no functions of C.
    @inline(never)
    private static func performBound(
        _ host: UnsafePointer<plugin_host>?, _ number: plugin_bound_action, _ arguments: UnsafePointer<plugin_value>?,
        _ count: UInt32, _ result: UnsafeMutablePointer<plugin_value>?, _ completion: plugin_completion?,
        _ data: UnsafeMutableRawPointer?
    ) -> Int32 {
        let receiver = Calls.Receiver(completion: completion ?? ignore, data: data)
        @inline(__always) func call(_ caller: Generation) -> Bool? {
            guard let result, arguments != nil || count == 0 else { return nil }
            return caller.calls.callBound(
                number, UnsafeBufferPointer(start: arguments, count: Int(count)), from: caller, into: result,
                or: receiver)
        }
        if let isThere = caller(host)._withUnsafeGuaranteedRef(call) { return isThere ? 1 : 0 }
        performRequest(host, number, arguments, count, receiver)
        return 0
    }

    /// Performs a bound action like any other call.
    @inline(never)
    private static func performRequest(
        _ host: UnsafePointer<plugin_host>?, _ number: plugin_bound_action, _ arguments: UnsafePointer<plugin_value>?,
        _ count: UInt32, _ receiver: Calls.Receiver
    ) {
        var request = plugin_request()
        request.size = UInt32(MemoryLayout<plugin_request>.size)
        request.address = PLUGIN_ADDRESS_BOUND
        request.object = number
        request.parameter_count = UInt64(count)
        // Of a module that is refused without parameters; the program does not ask for it.
        guard let arguments, count <= plugin_request.parametersMax else {
            return perform(host, 0, &request, receiver.completion, receiver.data)
        }
        withUnsafeTemporaryAllocation(of: plugin_entry.self, capacity: Int(count)) { entries in
            for index in entries.indices {
                entries.initializeElement(at: index, to: plugin_entry(key: plugin_string(), value: arguments[index]))
            }
            request.parameters = UnsafePointer(entries.baseAddress)
            perform(host, 0, &request, receiver.completion, receiver.data)
        }
    }
}
