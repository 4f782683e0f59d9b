import CPluginABI
import CPluginHost
import PluginABI
import Synchronization

/// The functions that a module gets: the border, seen from the host. Each finds by the table who calls.
enum HostTable {
    /// Makes the table of a generation; never freed.
    static func make(for generation: Generation) -> UnsafePointer<plugin_host> {
        let table = UnsafeMutablePointer<plugin_host>.allocate(capacity: 1)
        table.initialize(
            to: plugin_host(
                size: UInt32(MemoryLayout<plugin_host>.size), abi_major: UInt16(PLUGIN_ABI_MAJOR),
                abi_minor: UInt16(PLUGIN_ABI_MINOR), implementation: Unmanaged.passRetained(generation).toOpaque(),
                perform: perform, call: call, cancel: cancel, resolve: resolve, reject: reject, on_cancel: onCancel,
                object_create: createObject, callback_create: createCallback, object_retain: retainObject,
                object_release: releaseObject, get_extension: getExtension))
        return UnsafePointer(table)
    }

    @inline(__always)
    static func caller(_ host: UnsafePointer<plugin_host>?) -> Unmanaged<Generation> {
        Unmanaged.fromOpaque(host!.pointee.implementation)
    }

    static let perform:
        @convention(c) (
            UnsafePointer<plugin_host>?, plugin_token, UnsafePointer<plugin_request>?, plugin_completion?,
            UnsafeMutableRawPointer?
        ) -> Void = { host, parent, request, completion, data in
            let receiver = Calls.Receiver(completion: completion ?? ignore, data: data)
            guard let request else { return receiver.receive(noRequest) }
            // A function instead of a closure, which would not be compiled into this one.
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
            let receiver = Calls.Receiver(completion: completion ?? ignore, data: data)
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

    /// Lends the request; one of an earlier minor version is shorter, and what it lacks is zero.
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

    /// For a caller who does not want to know.
    static let ignore: plugin_completion = { _, _, _ in }

    private static var noRequest: PluginError {
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

    private static let onCancel:
        @convention(c) (
            UnsafePointer<plugin_host>?, plugin_token, (@convention(c) (UnsafeMutableRawPointer?, Int32) -> Void)?,
            UnsafeMutableRawPointer?
        ) -> Void = { host, call, handler, data in
            guard let handler else { return }
            guard let record = CallRecord(token: call), record.pointer.pointee.is_pooled != 0,
                caller(host)._withUnsafeGuaranteedRef({ record.belongs(to: $0) }), record.phase(of: call) != .over
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

    // MARK: Objects

    private static let createObject:
        @convention(c) (
            UnsafePointer<plugin_host>?, plugin_string, UnsafeMutableRawPointer?,
            (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
        ) -> plugin_object = { host, type, instance, destroy in
            let generation = caller(host).takeUnretainedValue()
            guard let entry = generation.types[type.text] else { return 0 }
            return ObjectTable.create(entry, instance, destroy)
        }

    private static let createCallback:
        @convention(c) (
            UnsafePointer<plugin_host>?, plugin_invoke?, UnsafeMutableRawPointer?,
            (@convention(c) (UnsafeMutableRawPointer?) -> Void)?, UInt32
        ) -> plugin_object = { host, invoke, data, destroy, flags in
            guard let invoke else { return 0 }
            let type = caller(host).takeUnretainedValue().callbackType(isAsync: flags & PLUGIN_OBJECT_ASYNC != 0)
            return CallbackBox(invoke: invoke, data: data, destroy: destroy).object(of: type)
        }

    private static let retainObject: @convention(c) (UnsafePointer<plugin_host>?, plugin_object) -> Int32 = {
        ObjectTable.retain($1) ? 0 : 1
    }

    private static let releaseObject: @convention(c) (UnsafePointer<plugin_host>?, plugin_object) -> Int32 = {
        ObjectTable.release($1) ? 0 : 1
    }

    // MARK: Extensions

    private static let getExtension: @convention(c) (UnsafePointer<plugin_host>?, plugin_string) -> UnsafeRawPointer? =
        { host, identifier in
            switch identifier {
            // First what is asked for each time.
            case PLUGIN_SERVICES_EXTENSION: UnsafeRawPointer(services)
            case PLUGIN_LOG_EXTENSION: UnsafeRawPointer(log)
            case PLUGIN_BOUND_EXTENSION: UnsafeRawPointer(bound)
            case PLUGIN_CONTEXT_EXTENSION: UnsafeRawPointer(caller(host).takeUnretainedValue().context)
            case PLUGIN_CONFIGURATION_EXTENSION: UnsafeRawPointer(configuration)
            case PLUGIN_ROUTES_EXTENSION: UnsafeRawPointer(routes)
            case PLUGIN_INSTANCES_EXTENSION: UnsafeRawPointer(instances)
            case PLUGIN_CHAIN_EXTENSION: UnsafeRawPointer(chain)
            default: nil
            }
        }

    private nonisolated(unsafe) static let configuration: UnsafePointer<plugin_configuration> = {
        let table = UnsafeMutablePointer<plugin_configuration>.allocate(capacity: 1)
        table.initialize(
            to: plugin_configuration(size: UInt32(MemoryLayout<plugin_configuration>.size), reserved: 0) {
                host, receiver, data in
                let generation = HostTable.caller(host).takeUnretainedValue()
                let present = generation.calls.core.moduleConfiguration.withLock { $0[generation.name] } ?? [:]
                func lend(_ value: Value) throws(PluginError) {
                    try value.lend { value in withUnsafePointer(to: value) { receiver?(data, $0) } }
                }
                // What cannot cross the border (nested too deeply) is no configuration.
                if (try? lend(present)) == nil { try? lend([:]) }
            })
        return UnsafePointer(table)
    }()

    private nonisolated(unsafe) static let log: UnsafePointer<plugin_log> = {
        let log = UnsafeMutablePointer<plugin_log>.allocate(capacity: 1)
        log.initialize(
            to: plugin_log(size: UInt32(MemoryLayout<plugin_log>.size), reserved: 0) { host, call, level, message in
                let generation = HostTable.caller(host).takeUnretainedValue()
                generation.calls.settings.log(
                    LogEntry(
                        level: LogLevel(rawValue: Int(level)) ?? .error,
                        module: generation.sourceName, call: CallRecord.name(of: call), message: message.text))
            })
        return UnsafePointer(log)
    }()
}

extension plugin_string {
    /// Whether these are the bytes of a text. No String is made: a service is asked for in less time than that takes.
    @inline(__always)
    fileprivate static func ~= (text: String, bytes: plugin_string) -> Bool {
        text.utf8.count == bytes.count && text.withPluginString { $0 == bytes }
    }
}
