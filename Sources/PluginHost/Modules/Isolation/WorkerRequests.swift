import CPluginWire
import PluginABI

// The requests of workers: their modules' calls of the host's functions. The numbers of objects and calls are checked
// before the functions of the table see them; the functions check the values, as they do for any module.

extension WorkerProcess {
    /// Serves a request.
    ///
    /// - Parameter isCancelled: Whether calls are refused, because the caller no longer waits.
    /// - Returns: The answer, to be disposed of; `nil` if the request is not valid.
    func serve(_ request: inout plugin_wire_message, isCancelled: Bool) -> plugin_wire_message? {
        if request.kind == PLUGIN_WIRE_ROOM.rawValue { return giveRoom(request.b) }
        guard let generation, let table = generation.hostTable else { return serveFirst(request) }
        if request.has_objects != 0 {
            request.arguments.dropObjects { objects.isKnown($0, in: generation) }
        }
        let kind = plugin_wire_kind(rawValue: request.kind)
        if isCancelled, let answer = refuse(kind, request) { return answer }
        switch kind {
        case PLUGIN_WIRE_PERFORM: return perform(request, table, generation)
        case PLUGIN_WIRE_BEGIN: return begin(request, table, generation)
        case PLUGIN_WIRE_CANCEL:
            table.pointee.cancel(table, request.token)
            return .answer()
        case PLUGIN_WIRE_RESOLVE:
            guard request.count == 1 else { return nil }
            return .answer(status: table.pointee.resolve(table, request.token, request.values))
        case PLUGIN_WIRE_REJECT: return reject(request, table)
        case PLUGIN_WIRE_ON_CANCEL:
            let handler = WorkerNumber(self, request.a)
            table.pointee.on_cancel(table, request.token, WorkerNumber.cancelled, handler.retained)
            return .answer()
        case PLUGIN_WIRE_OBJECT: return createObject(request, table)
        case PLUGIN_WIRE_NEW_CALLBACK: return createCallback(request, table)
        case PLUGIN_WIRE_RETAIN: return .answer(status: objects.retain(request.a, in: generation) ? 0 : 1)
        case PLUGIN_WIRE_RELEASE: return .answer(status: objects.release(request.a) ? 0 : 1)
        case PLUGIN_WIRE_DONE:
            objects.endOutcome(Int64(bitPattern: request.a))
            return .answer()
        default: return serveExtension(kind, request, table, generation)
        }
    }

    /// The error of requests of a call whose caller no longer waits.
    private func refuse(_ kind: plugin_wire_kind, _ request: plugin_wire_message) -> plugin_wire_message? {
        switch kind {
        case PLUGIN_WIRE_PERFORM, PLUGIN_WIRE_BOUND, PLUGIN_WIRE_REQUEST: return PluginError.cancelledWithCall.answer
        case PLUGIN_WIRE_BEGIN, PLUGIN_WIRE_AWAIT:
            var message = PluginError.cancelledWithCall.answer
            (message.kind, message.a) = (PLUGIN_WIRE_COMPLETE.rawValue, request.a)
            postOverSocket(message)
            plugin_wire_dispose(&message)
            return .answer()
        default: return nil
        }
    }

    // MARK: The description

    /// Serves the two messages before the module is activated: what its sandbox lacks; and the description, or why
    /// there is none.
    private func serveFirst(_ request: plugin_wire_message) -> plugin_wire_message? {
        if request.kind == PLUGIN_WIRE_CONFINED.rawValue {
            return request.texts(0).flatMap { setMissingProtections($0) ? .answer() : nil }
        }
        guard claimFirst() else { return nil }
        let first: First
        switch plugin_wire_kind(rawValue: request.kind) {
        case PLUGIN_WIRE_DESCRIBE:
            guard let description = WorkerDescription.make(request, self) else { return nil }
            first = .description(description)
        case PLUGIN_WIRE_FAIL: first = .failure(failure(request.a, request.text(0) ?? ""))
        default: return nil
        }
        setFirst(first)
        return .answer()
    }

    private func failure(_ code: UInt64, _ reason: String) -> PluginError {
        switch code {
        case UInt64(PLUGIN_WIRE_FAIL_OPEN):
            PluginError(.openFailed, "\(file.original) cannot be opened: \(file.withOriginalPaths(reason)).")
        case UInt64(PLUGIN_WIRE_FAIL_NO_ENTRY):
            PluginError(.invalidFile, "\(file.original) does not export \(PLUGIN_ENTRY_SYMBOL).")
        case UInt64(PLUGIN_WIRE_FAIL_UNCONFINED):
            PluginError(
                .openFailed,
                "\(file.original) was not opened: its rule requires a sandbox, of which this system lacks \(reason). Run "
                    + "the host where that is possible, or set “sandbox” to “possible”.")
        case UInt64(PLUGIN_WIRE_FAIL_TOO_LARGE):
            PluginError(
                .invalidDescription,
                "The description of \(file.original) takes more than \(PLUGIN_WIRE_DESCRIPTION_MIB) MiB, which is the "
                    + "most for an isolated module.")
        default: PluginError(.invalidDescription, "The entry function of \(file.original) returned null.")
        }
    }

    // MARK: Calls

    private func perform(
        _ request: plugin_wire_message, _ table: UnsafePointer<plugin_host>, _ generation: Generation
    ) -> plugin_wire_message? {
        let outcome = WorkerOutcome(self)
        return withExtendedLifetime(outcome) {
            let isSound = withRequest(request, generation) { asked in
                table.pointee.perform(
                    table, parent(request.token, generation), asked, WorkerOutcome.receive, outcome.unretained)
            }
            return isSound ? outcome.answer : nil
        }
    }

    private func begin(
        _ request: plugin_wire_message, _ table: UnsafePointer<plugin_host>, _ generation: Generation
    ) -> plugin_wire_message? {
        var answer = plugin_wire_message.answer()
        let isSound = withRequest(request, generation) { asked in
            answer.token = table.pointee.call(
                table, parent(request.token, generation), asked, WorkerNumber.complete,
                WorkerNumber(self, request.a).retained)
        }
        return isSound ? answer : nil
    }

    private func reject(_ request: plugin_wire_message, _ table: UnsafePointer<plugin_host>) -> plugin_wire_message? {
        guard request.count > 0 else { return .answer(status: table.pointee.reject(table, request.token, nil)) }
        guard let code = request.string(0), let message = request.string(1), let source = request.string(2) else {
            return nil
        }
        var error = plugin_error(code: code, message: message, source: source)
        return .answer(status: table.pointee.reject(table, request.token, &error))
    }

    /// Returns the parent of a call if it is one that the module runs; otherwise none.
    func parent(_ token: plugin_token, _ generation: Generation) -> plugin_token {
        CallRecord(token: token)?.belongs(to: generation) == true ? token : 0
    }

    /// Lends the request that a message describes. Returns false if it describes none.
    func withRequest(
        _ message: plugin_wire_message, _ generation: Generation, _ body: (UnsafePointer<plugin_request>?) -> Void
    ) -> Bool {
        guard message.count > 0 else {
            body(nil)
            return true
        }
        guard let size = message.int(0), let address = message.int(1), let target = message.string(2),
            let action = message.string(3), let object = message.int(4), let entries = message.map(5),
            let count = message.int(6), let timeout = message.int(7), let flags = message.int(8),
            let version = message.string(9), let method = message.int(10)
        else { return false }
        var request = plugin_request()
        request.size = UInt32(truncatingIfNeeded: size)
        request.address = UInt32(truncatingIfNeeded: address)
        (request.target, request.action, request.version) = (target, action, version)
        request.object = UInt64(bitPattern: object)
        if [PLUGIN_ADDRESS_OBJECT, PLUGIN_ADDRESS_CHAIN].contains(request.address),
            !objects.isKnown(request.object, in: generation), request.object != 0
        {
            request.object = UInt64.max  // A number that no object has.
        }
        // A count that does not match the parameters is refused, as it is for any module.
        request.parameters = entries.count == count ? entries.baseAddress : nil
        request.parameter_count = UInt64(bitPattern: count)
        (request.timeout, request.flags) = (timeout, UInt32(truncatingIfNeeded: flags))
        request.method = UInt32(truncatingIfNeeded: method)
        withUnsafePointer(to: request) { body($0) }
        return true
    }

    // MARK: Objects

    private func createObject(
        _ request: plugin_wire_message, _ table: UnsafePointer<plugin_host>
    ) -> plugin_wire_message? {
        guard let type = request.string(0) else { return nil }
        let number = WorkerNumber(self, request.a)
        let retained = number.retained
        let object = table.pointee.object_create(table, type, retained, WorkerNumber.destroy)
        return answer(object, retained)
    }

    private func createCallback(
        _ request: plugin_wire_message, _ table: UnsafePointer<plugin_host>
    ) -> plugin_wire_message? {
        let retained = WorkerNumber(self, request.a).retained
        let object = table.pointee.callback_create(
            table, WorkerStub.invokeCallback, retained, WorkerNumber.destroy, request.flags)
        return answer(object, retained)
    }

    private func answer(_ object: plugin_object, _ retained: UnsafeMutableRawPointer) -> plugin_wire_message {
        if object == 0 {
            Unmanaged<WorkerNumber>.fromOpaque(retained).release()
        } else if !objects.noteCreation(of: object) {
            _ = ObjectTable.release(object)
            return .answer()
        }
        return .answer(object)
    }
}

/// A number by which a worker identifies something of its own: a request, a cancel handler, an object, a callback.
final class WorkerNumber: Sendable {
    let process: WorkerProcess
    let number: UInt64

    init(_ process: WorkerProcess, _ number: UInt64) { (self.process, self.number) = (process, number) }

    /// The reference that one of the functions below consumes.
    var retained: UnsafeMutableRawPointer { Unmanaged.passRetained(self).toOpaque() }

    static let complete: plugin_completion = { data, value, error in
        let own = Unmanaged<WorkerNumber>.fromOpaque(data!).takeRetainedValue()
        var message = own.process.outcome(value, error)
        (message.kind, message.a) = (PLUGIN_WIRE_COMPLETE.rawValue, own.number)
        own.process.post(message)
        plugin_wire_dispose(&message)
    }

    static let cancelled: @convention(c) (UnsafeMutableRawPointer?, Int32) -> Void = { data, isCancelled in
        let own = Unmanaged<WorkerNumber>.fromOpaque(data!).takeRetainedValue()
        own.process.post(PLUGIN_WIRE_CANCELLED, own.number, Int64(isCancelled))
    }

    static let destroy: @convention(c) (UnsafeMutableRawPointer?) -> Void = { data in
        let own = Unmanaged<WorkerNumber>.fromOpaque(data!).takeRetainedValue()
        own.process.lateCalls.whenOver { own.process.post(PLUGIN_WIRE_DESTROY, own.number) }
    }
}
