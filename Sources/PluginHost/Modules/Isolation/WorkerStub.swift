import CPluginHost
import CPluginWire
import PluginABI
import Synchronization

/// The stand-in for a function or a factory of a module in another process.
final class WorkerStub: Sendable {
    let process: WorkerProcess
    /// The index in the table of functions or factories.
    let number: UInt64
    /// Whether the function is an action of an object type, whose instances are ``WorkerNumber``s. Those of targets are
    /// numbers of the process, which are never used as pointers here.
    let isOfObject: Bool

    init(_ process: WorkerProcess, _ number: UInt64, isOfObject: Bool) {
        (self.process, self.number, self.isOfObject) = (process, number, isOfObject)
    }

    /// A reference that is never released: endpoints are never freed.
    var immortal: UnsafeMutableRawPointer { Unmanaged.passRetained(self).toOpaque() }

    private static func of(_ data: UnsafeMutableRawPointer?) -> WorkerStub { unretained(data).takeUnretainedValue() }

    private static func unretained(_ data: UnsafeMutableRawPointer?) -> Unmanaged<WorkerStub> { .fromOpaque(data!) }

    // MARK: Actions

    static let invoke: plugin_invoke = { data, call, arguments, count in
        unretained(data)._withUnsafeGuaranteedRef { stub in
            var message = plugin_wire_message()
            (message.kind, message.a) = (PLUGIN_WIRE_CALL.rawValue, stub.number)
            let instance = call!.pointee.instance
            if stub.isOfObject, let instance {
                message.flags = PLUGIN_WIRE_OF_OBJECT
                let object = Unmanaged<WorkerNumber>.fromOpaque(instance).takeUnretainedValue()
                message.scalar = plugin_value_int(Int64(bitPattern: object.number))
            } else {
                message.scalar = plugin_value_int(Int64(Int(bitPattern: instance)))
            }
            stub.process.call(&message, call!, arguments, count)
        }
    }

    static let invokeCallback: plugin_invoke = { data, call, arguments, count in
        let callback = Unmanaged<WorkerNumber>.fromOpaque(data!).takeUnretainedValue()
        var message = plugin_wire_message()
        (message.kind, message.a) = (PLUGIN_WIRE_CALLBACK.rawValue, callback.number)
        message.scalar = plugin_value_int(0)
        callback.process.call(&message, call!, arguments, count)
    }

    // MARK: Instances

    static let make:
        @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<plugin_call>?) -> UnsafeMutableRawPointer? = {
            data, call in
            let stub = of(data)
            var message = plugin_wire_message()
            (message.kind, message.a) = (PLUGIN_WIRE_MAKE.rawValue, stub.number)
            (message.token, message.b) = (call!.pointee.token, call!.pointee.deadline)
            message.flags = call!.pointee.flags & PLUGIN_CALL_REMOTE
            let ending = stub.process.ask(&message, until: call!.pointee.deadline)
            guard ending == .returned else {
                // The caller that needs the instance does not wait for the end of other calls.
                stub.process.fail(call!.pointee.token, ending == .ended ? .gone : ending)
                return nil
            }
            defer { plugin_wire_dispose(&message) }
            return UnsafeMutableRawPointer(bitPattern: UInt(message.a))
        }

    static let destroy: @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Void = {
        data, instance in
        let stub = of(data)
        let number = UInt64(UInt(bitPattern: instance))
        stub.process.lateCalls.whenOver {
            var message = plugin_wire_message()
            (message.kind, message.a, message.token) = (PLUGIN_WIRE_UNMAKE.rawValue, stub.number, number)
            switch stub.process.ask(&message) {
            case .returned: plugin_wire_dispose(&message)
            case .busy: stub.process.unmake(number, stub.number)
            default: break
            }
        }
    }

    // MARK: Life

    private static func process(_ data: UnsafeMutableRawPointer?) -> WorkerProcess {
        Unmanaged<WorkerProcess>.fromOpaque(data!).takeUnretainedValue()
    }

    static let activate: @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<plugin_host>?) -> Int32 = {
        data, table in
        let process = process(data)
        let generation = HostTable.caller(table).takeUnretainedValue()
        process.setGeneration(generation)
        let context = generation.context.pointee
        let values = [context.module, context.file, context.folder].map { text in
            plugin_value_string(text.bytes, UInt32(clamping: text.count))
        }
        return (values + [context.configuration, context.values]).withUnsafeBufferPointer { values in
            var message = plugin_wire_message()
            message.kind = PLUGIN_WIRE_ACTIVATE.rawValue
            (message.values, message.count) = (values.baseAddress, UInt32(values.count))
            let ending = process.ask(&message, within: process.settings.hookTimeout)
            guard ending == .returned else {
                // The code that starts the module learns of a crash, but not of any other reason.
                if ending != .ended, ending != .gone {
                    generation.log(.error, process.error(ending, "activate", generation).message)
                }
                return -1
            }
            defer { plugin_wire_dispose(&message) }
            return Int32(truncatingIfNeeded: Int64(bitPattern: message.a))
        }
    }

    static let deactivate: @convention(c) (UnsafeMutableRawPointer?) -> Void = { data in
        var message = plugin_wire_message()
        message.kind = PLUGIN_WIRE_DEACTIVATE.rawValue
        if process(data).ask(&message) == .returned { plugin_wire_dispose(&message) }
    }
}

extension CallRecord {
    /// Returns the deadline at which a call must end for its caller; 0 if it has none, or if the host itself ends it
    /// then.
    fileprivate static func deadlineToEnforce(of call: plugin_call) -> Int64 {
        guard call.deadline != 0, let record = CallRecord(token: call.token) else { return 0 }
        return record.pointer.pointee.is_pooled != 0 ? 0 : call.deadline
    }
}

extension WorkerProcess {
    /// Calls a function of the module, and replies to the call if the process does not.
    fileprivate func call(
        _ message: inout plugin_wire_message, _ call: UnsafePointer<plugin_call>,
        _ arguments: UnsafePointer<plugin_value>?, _ count: UInt32
    ) {
        let token = call.pointee.token
        message.flags |= call.pointee.flags & (PLUGIN_CALL_REMOTE | PLUGIN_CALL_IN_PLACE)
        (message.token, message.b) = (token, call.pointee.deadline)
        (message.values, message.count) = (arguments, count)
        let values = UnsafeBufferPointer(start: arguments, count: Int(count))
        let lent = values.mayContainObjects ? objects.lend(values.objects) : nil
        let endpoint = CallRecord(token: token)?.unretainedEndpoint
        let ending = ask(
            &message, until: CallRecord.deadlineToEnforce(of: call.pointee),
            isSerial: endpoint?._withUnsafeGuaranteedRef { $0.gate != nil } ?? false)
        if let lent { objects.endLoan(of: lent) }
        guard ending == .returned else { return fail(token, ending) }
        if message.flags & PLUGIN_WIRE_SCALAR != 0, let result = call.pointee.result {
            result.pointee = message.scalar
            // A kind that must not be written in place is reported, as it is for any module.
            if message.a > PLUGIN_KIND_DOUBLE { result.pointee.kind = UInt32(truncatingIfNeeded: message.a) }
        }
        plugin_wire_dispose(&message)
    }
}
