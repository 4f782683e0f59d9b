import CPluginABI
import PluginABI

// Replies to calls: each call gets one reply, from the owner of its token.

extension Calls {
    /// Replies to a call with a result; `nil` for none. For most calls only the address of the module is used, not its
    /// contents, because with many modules, the contents of few are in the CPU cache.
    static func resolve(
        _ token: plugin_token, _ result: UnsafePointer<plugin_value>?, from module: Generation
    ) -> Int32 {
        guard let (record, isAwaited) = beginReply(token, from: module) else { return PLUGIN_REPLY_STALE }
        return withUnsafePointer(to: plugin_value_null()) { null in
            let result = result ?? null
            guard isAwaited, result.pointee.kind <= PLUGIN_KIND_DOUBLE, !isOver(record.deadline) else {
                return module.calls.resolveSlow(record, token, result, from: module, isAwaited)
            }
            record.complete(token, result, nil)
            module.calls.finishReply(record, token)
            return PLUGIN_REPLY_ACCEPTED
        }
    }

    /// Replies to a call with a result that must be checked, or whose caller may no longer wait.
    private func resolveSlow(
        _ record: CallRecord, _ token: plugin_token, _ result: UnsafePointer<plugin_value>, from module: Generation,
        _ isAwaited: Bool
    ) -> Int32 {
        defer { finishReply(record, token) }
        guard isAwaited else { return PLUGIN_REPLY_STALE }
        do throws(PluginError) {
            if !module.isProgram { try result.pointee.check() }
        } catch {
            let name = record.endpoint?.title ?? module.name
            // The objects of a process cease to exist when it ends.
            let failure =
                module.crash(of: name)
                ?? PluginError(
                    .invalidResult, "The result of \(name) cannot be passed on. \(error.message)", source: module.name)
            failure.lend { record.complete(token, nil, $0) }
            return PLUGIN_REPLY_REFUSED
        }
        if isOver(record.deadline), let endpoint = record.endpoint {
            PluginError.deadlineExceeded(endpoint).lend { record.complete(token, nil, $0) }
        } else {
            record.complete(token, result, nil)
        }
        return PLUGIN_REPLY_ACCEPTED
    }

    func reject(_ token: plugin_token, _ error: plugin_error?, from module: Generation) -> Int32 {
        guard let (record, isAwaited) = Self.beginReply(token, from: module) else { return PLUGIN_REPLY_STALE }
        defer { finishReply(record, token) }
        guard isAwaited else { return PLUGIN_REPLY_STALE }
        var code = error?.code.text ?? ""
        if code.isEmpty { code = PluginError.Code.actionFailed.rawValue }
        let isOwn = error.map { $0.source.count == 0 } ?? true
        let failure = PluginError(
            .init(rawValue: code), error?.message.text ?? "", source: isOwn ? module.sourceName : error?.source.text)
        failure.lend { record.complete(token, nil, $0) }
        return PLUGIN_REPLY_ACCEPTED
    }

    /// Finds the call that a token names and acquires the right to reply to it; the second result is false if its
    /// caller no longer waits. A second, late or foreign reply is logged and otherwise ignored.
    @inline(__always)
    private static func beginReply(_ token: plugin_token, from module: Generation) -> (CallRecord, Bool)? {
        if let record = CallRecord(token: token), record.belongs(to: module),
            let phase = record.beginReply(token)
        {
            return (record, phase == .open)
        }
        module.calls.reportStaleReply(token, module)
        return nil
    }

    /// Replies to a call of one of the host's own actions.
    func answer(
        _ token: plugin_token, _ value: UnsafePointer<plugin_value>?, _ error: UnsafePointer<plugin_error>? = nil
    ) {
        if let error {
            _ = reject(token, error.pointee, from: program)
        } else {
            _ = Self.resolve(token, value, from: program)
        }
    }

    func answer(_ token: plugin_token, _ error: PluginError) { error.lend { answer(token, nil, $0) } }

    func reportStaleReply(_ token: plugin_token, _ module: Generation) {
        let endpoint = CallRecord(token: token)?.lastEndpoint(of: token)
        let what: String
        if let endpoint {
            what =
                endpoint.generation === module
                ? "replied to a call of \(endpoint.name.shortened) that is over: it was answered before, or its function "
                    + "returned without a reply"
                : "replied to a call of \(endpoint.title), which is not a call to it"
        } else {
            let running = ThreadContext.current.flatMap { CallRecord.name(of: $0.currentCall) }
            what =
                "replied to a call that is over, or that is not a call to it"
                + (running.map { ", while it ran \($0.shortened)" } ?? "")
        }
        settings.log(
            LogEntry(
                level: .warning, module: module.sourceName,
                message: "\(module.label) \(what); the reply has no effect. \(LogEntry.staleReplyAdvice)"))
    }
}

extension LogEntry {
    fileprivate static let staleReplyAdvice = "A call must be answered once, by the module that was called."

    /// Whether the entry is about a reply to a call that was over, or that belonged to another module.
    package var isAboutStaleReply: Bool { message.hasSuffix(Self.staleReplyAdvice) }
}

extension PluginError {
    static func deadlineExceeded(_ endpoint: Endpoint) -> PluginError {
        PluginError(.deadlineExceeded, "\(endpoint.title) did not reply before its deadline.")
    }
}
