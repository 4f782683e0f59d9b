import NIOCore
import PluginABI
import Synchronization

/// A module of this host that stands for a target of another one: its actions send their calls there.
///
/// It is described in terms of the binary interface, since its manifest is known only at run time. The host may refer
/// to a description until the process ends, so it is never freed.
final class ProxyModule: Sendable {
    let mount: Mount
    /// The target; `nil` if the other host does not offer it.
    let offer: OfferedTarget?
    let target: String
    /// Set when the module is activated, before its first call.
    fileprivate nonisolated(unsafe) var host: UnsafePointer<plugin_host>!

    private init(_ mount: Mount, _ target: String, _ offer: OfferedTarget?) {
        (self.mount, self.target, self.offer) = (mount, target, offer)
    }

    /// Returns the description of a module for a target.
    ///
    /// - Parameter offer: What the other host offers; `nil` for a module whose calls all fail.
    static func description(
        _ mount: Mount, _ target: String, _ offer: OfferedTarget?
    ) -> UnsafePointer<plugin_module> {
        let module = ProxyModule(mount, target, offer)
        var functions: [plugin_function] = []
        func add(_ name: String, _ function: ProxyFunction) {
            functions.append(
                plugin_function(
                    name: .immortal(name), invoke: ProxyFunction.invoke,
                    data: Unmanaged.passRetained(function).toOpaque()))
        }
        if let offer {
            for action in offer.actions { add("\(target)/\(action.name)", ProxyAction(module, offer, action)) }
            for (cursor, type) in offer.cursors { add("\(cursor)#next", ProxyNext(module, isAsync: type.isAsync)) }
            add("\(OfferedTarget.plainCursor)#next", ProxyNext(module, isAsync: false))
        } else {
            add("\(target)/notFound", ProxyFunction(module))
        }
        var description = plugin_module()
        description.magic = UInt64(PLUGIN_ABI_MAGIC)
        description.size = UInt32(MemoryLayout<plugin_module>.size)
        description.abi_major = UInt16(PLUGIN_ABI_MAJOR)
        description.abi_minor = UInt16(PLUGIN_ABI_MINOR)
        description.manifest = .immortal(
            offer?.manifest ?? OfferedTarget.placeholder(target, mount.configuration, from: mount.url))
        description.functions = .immortal(functions)
        description.function_count = UInt64(functions.count)
        description.data = Unmanaged.passRetained(module).toOpaque()
        description.activate = { data, host in
            Unmanaged<ProxyModule>.fromOpaque(data!).takeUnretainedValue().host = host
            return 0
        }
        return .immortal([description])
    }
}

/// A function of a module that stands for a target. This one is the fallback of a target that is not offered.
private class ProxyFunction: @unchecked Sendable {
    // Immutable, like the properties of the subclasses.
    let module: ProxyModule

    init(_ module: ProxyModule) { self.module = module }

    static let invoke: plugin_invoke = { data, call, arguments, count in
        let function = Unmanaged<ProxyFunction>.fromOpaque(data!).takeUnretainedValue()
        let call = ReceivedCall(call!.pointee, host: function.module.host)
        let arguments = UnsafeBufferPointer(start: arguments, count: Int(count))
        function.run(call, arguments.map { Value(copying: $0, host: function.module.host) })
    }

    func run(_ call: ReceivedCall, _ arguments: [Value]) {
        call.reject(
            module.mount.unavailability(of: module.target)
                ?? .unavailable("“\(module.target)” of \(module.mount.url) cannot be called yet."))
    }
}

/// An action of a target.
private final class ProxyAction: ProxyFunction, @unchecked Sendable {
    private let target: OfferedTarget
    private let action: OfferedTarget.Action

    init(_ module: ProxyModule, _ target: OfferedTarget, _ action: OfferedTarget.Action) {
        (self.target, self.action) = (target, action)
        super.init(module)
    }

    override func run(_ call: ReceivedCall, _ arguments: [Value]) {
        do throws(PluginError) { try start(call, arguments) } catch { call.reject(error) }
    }

    private func start(_ call: ReceivedCall, _ arguments: [Value]) throws(PluginError) {
        let mount = module.mount
        if let error = mount.unavailability(of: module.target) { throw error }
        let result = action.result.hasSuffix("?") ? String(action.result.dropLast()) : action.result
        guard !target.otherObjects.contains(result) else {
            throw .unrepresentable(
                "“\(module.target)/\(action.name)” returns objects of the type “\(result)”, which cannot leave their host. Only "
                    + "cursors, with the action next, can.")
        }
        let trace = try CallChain.extend(
            call.context.trace, through: mount.number, "\(module.target)/\(action.name)",
            limit: mount.configuration.hopLimit)
        let request = try CallRequest(module.target, action, arguments)
        let deadline = call.deadline ?? .now() + mount.configuration.callTimeout.amount
        let waiting = action.isAsync ? nil : AwaitedOutcome<RemoteCall.Outcome>()
        let type = target.cursorType(of: action)
        let remote = RemoteCall(mount, target, action, request, trace, until: deadline, in: call.context) { outcome in
            if let waiting { return waiting.set(outcome) }
            CallbackThreads.run { call.reply(outcome, cursorType: type) }
        }
        remote.start()
        guard let waiting else { return call.onCancel { remote.cancel() } }
        // The call ends by itself at its deadline, unless the thread of the mount is blocked.
        let outcome = waiting.wait(until: deadline + .seconds(5))
        if outcome == nil { remote.cancel() }
        call.reply(outcome ?? waiting.wait(), cursorType: type)
    }
}

/// The action `next` of cursors.
private final class ProxyNext: ProxyFunction, @unchecked Sendable {
    private let isAsync: Bool

    init(_ module: ProxyModule, isAsync: Bool) {
        self.isAsync = isAsync
        super.init(module)
    }

    override func run(_ call: ReceivedCall, _ arguments: [Value]) {
        guard let instance = call.instance else {
            return call.reject(PluginError(.instanceFailed, "The cursor was called without its instance."))
        }
        let cursor = Unmanaged<RemoteCursor>.fromOpaque(instance).takeUnretainedValue()
        let late = PluginError(
            .deadlineExceeded, "The cursor got no element from \(module.mount.url) before its deadline. It has ended.")
        if isAsync {
            // The host ends the call at its deadline.
            let number = cursor.next { result in CallbackThreads.run { call.reply(result) } }
            return call.onCancel { cursor.giveUp(number, late) }
        }
        let waiting = AwaitedOutcome<Value>()
        let number = cursor.next { waiting.set($0) }
        let deadline = call.deadline ?? .now() + module.mount.configuration.callTimeout.amount
        if let result = waiting.wait(until: deadline) { return call.reply(result) }
        cursor.giveUp(number, late)
        call.reply(waiting.wait())
    }
}

/// A call that a function has received, to reply to at any time and from any thread.
private struct ReceivedCall: @unchecked Sendable {
    // The host's table lives as long as the process, and the instance as long as the call.
    private let host: UnsafePointer<plugin_host>
    private let token: plugin_token
    let instance: UnsafeMutableRawPointer?
    let deadline: NIODeadline?
    /// The context; its trace is known until the reply.
    let context: HostContext

    init(_ call: plugin_call, host: UnsafePointer<plugin_host>) {
        (self.host, token, instance) = (host, call.token, call.instance)
        // Both are of CLOCK_MONOTONIC.
        deadline = call.deadline > 0 ? .uptimeNanoseconds(UInt64(call.deadline)) : nil
        context = HostContext(host: host, call: call.token)
    }

    func reply(_ outcome: Result<RemoteCall.Outcome, PluginError>, cursorType: String) {
        switch outcome {
        case .success(.value(let value)): reply(.success(value))
        case .success(.cursor(let cursor)): reply(cursor, cursorType)
        case .failure(let error): reject(error)
        }
    }

    func reply(_ result: Result<Value, PluginError>) {
        do throws(PluginError) {
            try result.get().lend { raw in withUnsafePointer(to: raw) { _ = host.pointee.resolve(host, token, $0) } }
        } catch {
            reject(error)
        }
    }

    private func reply(_ cursor: RemoteCursor, _ type: String) {
        let instance = Unmanaged.passRetained(cursor).toOpaque()
        let destroy: @convention(c) (UnsafeMutableRawPointer?) -> Void = {
            Unmanaged<RemoteCursor>.fromOpaque($0!).takeRetainedValue().close()
        }
        let object = type.withPluginString { host.pointee.object_create(host, $0, instance, destroy) }
        guard object != 0 else {
            destroy(instance)
            return reject(PluginError(.outOfResources, "No object can be made for the cursor: too many exist."))
        }
        withUnsafePointer(to: plugin_value_object(object)) { _ = host.pointee.resolve(host, token, $0) }
        _ = host.pointee.object_release(host, object)
    }

    func reject(_ error: PluginError) {
        error.code.rawValue.withPluginString { code in
            error.message.withPluginString { message in
                (error.source ?? "").withPluginString { source in
                    withUnsafePointer(to: plugin_error(code: code, message: message, source: source)) {
                        _ = host.pointee.reject(host, token, $0)
                    }
                }
            }
        }
    }

    /// Runs a body if the caller cancels the call, or its deadline passes.
    func onCancel(_ body: @escaping @Sendable () -> Void) {
        host.pointee.on_cancel(
            host, token,
            { data, isCancelled in
                let handler = Unmanaged<CancelHandler>.fromOpaque(data!).takeRetainedValue()
                if isCancelled != 0 { handler.body() }
            }, Unmanaged.passRetained(CancelHandler(body)).toOpaque())
    }
}

private final class CancelHandler: Sendable {
    let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

// MARK: Memory that is never freed

extension plugin_string {
    fileprivate static func immortal(_ text: String) -> plugin_string {
        text.withPluginString { text in
            let count = Int(text.count)
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: max(1, count))
            if let bytes = text.bytes { copy.initialize(from: bytes, count: count) }
            return plugin_string(bytes: copy, count: text.count)
        }
    }
}

extension UnsafePointer {
    fileprivate static func immortal(_ elements: [Pointee]) -> UnsafePointer<Pointee> {
        let copy = UnsafeMutablePointer<Pointee>.allocate(capacity: max(1, elements.count))
        copy.initialize(from: elements, count: elements.count)
        return UnsafePointer(copy)
    }
}
