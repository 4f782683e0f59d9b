import CPluginABI
import CPluginHost
import PluginABI
import PluginFile
import Synchronization

// Calls that wait, without a thread, until their module has handed its state over.

extension Calls {
    /// Where a call goes that waits.
    enum HeldAddress {
        /// What was found, and the object that the call holds, or 0.
        case endpoint(Endpoint, instance: UnsafeMutableRawPointer?, object: plugin_object)
        case url(String, flags: UInt32)
    }

    /// Keeps a call until then.
    func keep(
        _ hold: Hold, _ address: HeldAddress, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call, _ lane: Lane,
        _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        let parameters = Parameters(entries.map { ($0.key.text, Value(copying: $0.value, host: program.hostTable)) })
        let held = HeldCall(hold: hold, address: address, parameters: parameters, call: call, calls: self)
        occupy(record, .passUnretained(core.ownActions.heldCalls), call)
        let address = Int(bitPattern: Unmanaged.passRetained(held).toOpaque())
        return try Parameters(positional: [.int(address)]).withEntries { (entries, count) throws(PluginError) in
            try invoke(core.ownActions.heldCalls, UnsafeBufferPointer(start: entries, count: count), call, lane, record)
        }
    }

    /// What a call that waits shows, and is cancelled by: an asynchronous action of the program.
    static func makeHeldCalls(_ program: Generation) -> Endpoint {
        Endpoint(
            name: .immortal("waiting for a module that hands its state over"),
            parameters: [.init(ModuleManifest.Parameter(name: "call", type: .int, isRequired: true))], isAsync: true,
            isRemote: true,
            invoke: { _, call, arguments, _ in
                let address = UnsafeRawPointer(bitPattern: Int(arguments![0].as.integer))!
                Unmanaged<HeldCall>.fromOpaque(address).takeRetainedValue().begin(call!.pointee.token)
            }, data: nil, generation: program, instances: nil, gate: nil)
    }

    /// One call that waits. Its members are only read, by who starts it.
    private final class HeldCall: @unchecked Sendable {
        private let hold: Hold
        private let address: HeldAddress
        private let parameters: Parameters
        private let call: Call
        private let calls: Calls
        /// Set once by `begin`.
        private var token: plugin_token = 0
        private let running = Mutex<(isCancelled: Bool, token: plugin_token)>((false, 0))

        init(hold: Hold, address: HeldAddress, parameters: Parameters, call: Call, calls: Calls) {
            (self.hold, self.address, self.parameters) = (hold, address, parameters)
            (self.call, self.calls) = (call, calls)
        }

        func begin(_ token: plugin_token) {
            self.token = token
            let program = calls.program
            program.hostTable.pointee.on_cancel(
                program.hostTable, token,
                { data, isCancelled in
                    let held = Unmanaged<HeldCall>.fromOpaque(data!).takeRetainedValue()
                    if isCancelled != 0 { held.cancel() }
                }, Unmanaged.passRetained(self).toOpaque())
            do throws(PluginError) {
                try hold.whenOver { ThreadPool.shared.run { self.proceed() } }
            } catch {
                end(error)
            }
        }

        private func cancel() {
            let token = running.withLock { running in
                running.isCancelled = true
                return running.token
            }
            if token != 0 { Calls.abandon(token, PluginError(.cancelled, "The caller cancelled the call.")) }
        }

        private func end(_ error: PluginError) {
            if case .endpoint(_, _, let object) = address, object != 0 { _ = ObjectTable.release(object) }
            error.lend { _ = calls.reject(token, $0.pointee, from: calls.program) }
        }

        private func proceed() {
            guard !running.withLock({ $0.isCancelled }), let lane = Lane.current, let record = lane.next else {
                return end(PluginError(.cancelled, "The caller cancelled the call."))
            }
            var next = Call(
                parent: call.parent, timeout: call.timeout, isRemote: call.isRemote, mode: .any,
                receiver: Receiver(completion: Self.forward, data: Unmanaged.passRetained(self).toOpaque()))
            next.isFresh = call.isFresh
            do throws(PluginError) {
                let inner =
                    switch address {
                    case .endpoint(let endpoint, let instance, let object):
                        try proceed(to: endpoint, instance, object, next, lane, record)
                    case .url(let url, let flags): try open(url, flags, next)
                    }
                let isCancelled = running.withLock { running in
                    running.token = inner
                    return running.isCancelled
                }
                if isCancelled { cancel() }
            } catch {
                record.vacate()
                Unmanaged.passUnretained(self).release()  // What the receiver was to take over.
                end(error)
            }
        }

        private func proceed(
            to endpoint: Endpoint, _ instance: UnsafeMutableRawPointer?, _ object: plugin_object, _ next: Call,
            _ lane: Lane, _ record: CallRecord
        ) throws(PluginError) -> plugin_token {
            let endpoint = try calls.occupyAgain(record, endpoint, next, lane, object)
            return try parameters.withEntries { (entries, count) throws(PluginError) in
                try calls.invoke(
                    endpoint, UnsafeBufferPointer(start: entries, count: count), next, lane, record, instance: instance)
            }
        }

        private func open(_ url: String, _ flags: UInt32, _ next: Call) throws(PluginError) -> plugin_token {
            var url = url
            return try parameters.withEntries { entries, count in
                url.withUTF8 { text in
                    text.withMemoryRebound(to: CChar.self) { text in
                        var request = plugin_request()
                        request.size = UInt32(MemoryLayout<plugin_request>.size)
                        request.address = PLUGIN_ADDRESS_URL
                        request.target = plugin_string(bytes: text.baseAddress, count: UInt64(text.count))
                        (request.parameters, request.parameter_count) = (entries, UInt64(count))
                        (request.timeout, request.flags) = (next.timeout, flags)
                        return calls.dispatch(
                            &request, parent: next.parent, from: calls.program, mode: .any, to: next.receiver)
                    }
                }
            }
        }

        private static let forward: plugin_completion = { data, value, error in
            let held = Unmanaged<HeldCall>.fromOpaque(data!).takeRetainedValue()
            let calls = held.calls
            if let error {
                _ = calls.reject(held.token, error.pointee, from: calls.program)
            } else {
                _ = Calls.resolve(held.token, value, from: calls.program)
            }
        }
    }
}
