import CPluginABI
import CPluginHost
import PluginABI
import PluginFile

/// The functions that a module receives: the host's side of the binary interface. Each function finds the calling
/// generation through the table that it is passed.
enum HostTable {
    /// Creates the table of a generation. The table is never freed.
    static func make(for generation: Generation) -> UnsafePointer<plugin_host> {
        .immortal(
            plugin_host(
                size: UInt32(MemoryLayout<plugin_host>.size), abi_major: UInt16(PLUGIN_ABI_MAJOR),
                abi_minor: UInt16(PLUGIN_ABI_MINOR), implementation: Unmanaged.passRetained(generation).toOpaque(),
                perform: perform, call: call, cancel: cancel, resolve: resolve, reject: reject,
                on_cancel: { host, call, handler, data in
                    if let handler { HostTable.keep(handler, data, of: call, for: HostTable.caller(host)) }
                },
                object_create: { host, type, instance, destroy in
                    let generation = HostTable.caller(host).takeUnretainedValue()
                    guard let entry = generation.types[type.text] else {
                        generation.logUndeclaredType(type.text)
                        return 0
                    }
                    return ObjectTable.create(entry, instance, destroy, isHeldByMaker: true)
                },
                callback_create: { host, invoke, data, destroy, flags in
                    guard let invoke else { return 0 }
                    let type = HostTable.caller(host).takeUnretainedValue().callbackType(
                        isAsync: flags & PLUGIN_OBJECT_ASYNC != 0)
                    return ObjectTable.create(
                        type, holding: CallbackBox(invoke: invoke, data: data, destroy: destroy),
                        isHeldByMaker: true)
                },
                object_retain: { ObjectTable.retain($1, for: HostTable.caller($0)) ? 0 : 1 },
                object_release: { ObjectTable.release($1, for: HostTable.caller($0)) ? 0 : 1 },
                get_extension: getExtension))
    }

    @inline(__always)
    static func caller(_ host: UnsafePointer<plugin_host>?) -> Unmanaged<Generation> {
        Unmanaged.fromOpaque(host!.pointee.implementation)
    }

    /// Returns the call path of the host that a table belongs to.
    static func calls(_ host: UnsafePointer<plugin_host>?) -> Calls { caller(host).takeUnretainedValue().calls }

    static let perform:
        @convention(c) (
            UnsafePointer<plugin_host>?, plugin_token, UnsafePointer<plugin_request>?, plugin_completion?,
            UnsafeMutableRawPointer?
        ) -> Void = { host, parent, request, completion, data in
            let receiver = Calls.Receiver(completion, data)
            guard let request else { return receiver.receive(noRequest) }
            // A local function, because a closure would not be inlined here.
            @inline(__always) func dispatch(_ caller: Generation) {
                _ = withWhole(request) {
                    caller.calls.dispatch($0, parent: parent, from: caller, mode: .synchronous, to: receiver)
                }
            }
            caller(host)._withUnsafeGuaranteedRef(dispatch)
        }

    private static let call:
        @convention(c) (
            UnsafePointer<plugin_host>?, plugin_token, UnsafePointer<plugin_request>?, plugin_completion?,
            UnsafeMutableRawPointer?
        ) -> plugin_token = { host, parent, request, completion, data in
            let receiver = Calls.Receiver(completion, data)
            guard let request else {
                receiver.receive(noRequest)
                return 0
            }
            @inline(__always) func dispatch(_ caller: Generation) -> plugin_token {
                withWhole(request) {
                    caller.calls.dispatch($0, parent: parent, from: caller, mode: .any, to: receiver)
                }
            }
            return caller(host)._withUnsafeGuaranteedRef(dispatch)
        }

    /// Lends the request. If it is too short, lends a copy that is padded with zeros; `plugin_request.checkValues` then
    /// refuses it.
    @inline(__always)
    static func withWhole<Result>(
        _ request: UnsafePointer<plugin_request>, _ body: (UnsafePointer<plugin_request>) -> Result
    ) -> Result {
        let size = Int(UnsafeRawPointer(request).load(as: UInt32.self))
        if size >= MemoryLayout<plugin_request>.size { return body(request) }
        var copy = plugin_request()
        withUnsafeMutableBytes(of: &copy) { $0.copyMemory(from: UnsafeRawBufferPointer(start: request, count: size)) }
        return body(&copy)
    }

    static var noRequest: PluginError {
        PluginError(.invalidValue, "A null pointer was passed as the request.")
    }

    private static let cancel: @convention(c) (UnsafePointer<plugin_host>?, plugin_token) -> Void = { host, call in
        guard CallRecord(token: call)?.isMade(by: caller(host)) == true else { return }
        Calls.abandon(call, PluginError(.cancelled, "The caller cancelled the call."))
    }

    // MARK: Replies

    private static let resolve:
        @convention(c) (UnsafePointer<plugin_host>?, plugin_token, UnsafePointer<plugin_value>?) -> Int32 = {
            host, call, result in
            caller(host)._withUnsafeGuaranteedRef { Calls.resolve(call, result, from: $0) }
        }

    private static let reject:
        @convention(c) (UnsafePointer<plugin_host>?, plugin_token, UnsafePointer<plugin_error>?) -> Int32 = {
            host, call, error in
            caller(host)._withUnsafeGuaranteedRef { $0.calls.reject(call, error?.pointee, from: $0) }
        }

    /// Stores the cancel handler of a call. Calls the handler immediately if the caller no longer waits, or if the
    /// handler cannot be stored: the call is over or not asynchronous, belongs to another module, or has a handler.
    @inline(__always)
    private static func keep(
        _ handler: @escaping @convention(c) (UnsafeMutableRawPointer?, Int32) -> Void, _ data: UnsafeMutableRawPointer?,
        of call: plugin_token, for caller: Unmanaged<Generation>
    ) {
        guard let record = CallRecord(token: call), record.pointer.pointee.is_pooled != 0,
            caller._withUnsafeGuaranteedRef({ record.belongs(to: $0) }), record.phase(of: call) != .over
        else { return handler(data, 0) }
        var phase = CallRecord.Phase.over
        repeat {
            let isKept = record.withCancelHandler { kept, keptData in
                phase = record.phase(of: call)
                guard phase == .open, kept == nil else { return false }
                (kept, keptData) = (handler, data)
                return true
            }
            if isKept { return }
        } while phase == .replying && record.isReplyingElsewhere
        handler(data, phase == .abandoned ? 1 : 0)
    }

    // MARK: Extensions

    private static let getExtension: @convention(c) (UnsafePointer<plugin_host>?, plugin_string) -> UnsafeRawPointer? =
        { host, identifier in
            switch identifier {
            // The most frequently requested ones first.
            case PLUGIN_SERVICES_EXTENSION: UnsafeRawPointer(services)
            case PLUGIN_LOG_EXTENSION: UnsafeRawPointer(log)
            case PLUGIN_BOUND_EXTENSION: UnsafeRawPointer(bound)
            case PLUGIN_CONTEXT_EXTENSION: UnsafeRawPointer(caller(host).takeUnretainedValue().context)
            case PLUGIN_CONFIGURATION_EXTENSION: UnsafeRawPointer(configuration)
            case PLUGIN_ROUTES_EXTENSION: UnsafeRawPointer(routes)
            case PLUGIN_INSTANCES_EXTENSION: UnsafeRawPointer(instances)
            case PLUGIN_CHAIN_EXTENSION: UnsafeRawPointer(chain)
            case PLUGIN_PROFILE_EXTENSION: UnsafeRawPointer(profile)
            case PLUGIN_CALL_CONTEXT_EXTENSION: UnsafeRawPointer(callContext)
            default: nil
            }
        }
}

extension plugin_string {
    /// Returns whether the bytes are those of the text. Does not create a String, which would take longer than
    /// requesting a service.
    @inline(__always)
    fileprivate static func ~= (text: String, bytes: plugin_string) -> Bool {
        text.utf8.count == bytes.count && text.withPluginString { $0 == bytes }
    }
}

extension Generation {
    fileprivate func logUndeclaredType(_ type: String) {
        core.settings.log(
            LogEntry(
                level: .error, module: name,
                message: "\(label) makes an object of the type “\(type.shortened)”, which its manifest does not "
                    + "declare.\(didYouMean(type, types.keys))"))
    }
}
