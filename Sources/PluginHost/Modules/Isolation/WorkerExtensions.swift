import CPluginWire
import PluginABI

// The requests of workers for functions of the extensions.

extension WorkerProcess {
    /// Handles a worker's request for a function of an extension. Returns `nil` if the request is not valid.
    func serveExtension(
        _ kind: plugin_wire_kind, _ request: plugin_wire_message, _ table: UnsafePointer<plugin_host>,
        _ generation: Generation
    ) -> plugin_wire_message? {
        switch kind {
        case PLUGIN_WIRE_LOG:
            guard let text = request.string(0) else { return nil }
            output.noteLog(text.text)
            HostTable.log.pointee.write(
                table, parent(request.token, generation), UInt32(truncatingIfNeeded: request.a), text)
            return .answer()
        case PLUGIN_WIRE_MARK:
            guard let name = request.string(0) else { return nil }
            HostTable.profile.pointee.mark(table, name, request.b)
            return .answer()
        case PLUGIN_WIRE_CONFIGURATION: return configuration(table)
        case PLUGIN_WIRE_CALL_CONTEXT: return callContext(of: parent(request.token, generation))  // Only of its own.
        case PLUGIN_WIRE_BIND:
            guard let target = request.string(0), let action = request.string(1) else { return nil }
            return .answer(HostTable.bound.pointee.bind(table, target, action))
        case PLUGIN_WIRE_BOUND: return performBound(request, table)
        case PLUGIN_WIRE_RECEIVER:
            let isOwn = parent(request.token, generation) != 0
            return .answer(isOwn ? HostTable.chain.pointee.receiver(table, request.token) : 0)
        case PLUGIN_WIRE_PARENT:
            let areKnown = [request.a, request.token].allSatisfy { $0 == 0 || objects.isKnown($0, in: generation) }
            guard areKnown else { return .answer(status: PLUGIN_PARENT_GONE) }
            return .answer(status: HostTable.chain.pointee.set_parent(table, request.a, request.token))
        case PLUGIN_WIRE_DROP:
            guard let target = request.string(0) else { return nil }
            return outcome { HostTable.instances.pointee.release(table, target, WorkerOutcome.receive, $0) }
        case PLUGIN_WIRE_CAN_OPEN, PLUGIN_WIRE_BUILD: return askAboutURL(kind, request, table, generation)
        case PLUGIN_WIRE_INFO, PLUGIN_WIRE_REQUEST, PLUGIN_WIRE_AWAIT:
            guard let name = request.string(0), let version = request.string(1) else { return nil }
            return askAboutService(kind, name, version, request, table, generation)
        default: return nil
        }
    }

    /// Returns the outcome that `body` delivers before it returns.
    private func outcome(_ body: (UnsafeMutableRawPointer) -> Void) -> plugin_wire_message {
        let outcome = WorkerOutcome(self)
        return withExtendedLifetime(outcome) {
            body(outcome.unretained)
            return outcome.answer
        }
    }

    private func configuration(_ table: UnsafePointer<plugin_host>) -> plugin_wire_message {
        outcome { data in
            HostTable.configuration.pointee.read(
                table, { data, value in WorkerOutcome.receive(data, value, nil) }, data)
        }
    }

    private func callContext(of call: plugin_token) -> plugin_wire_message {
        let context = CallContexts.context(of: call)
        var answer = plugin_wire_message.answer(context.isEmpty ? 0 : 1)
        guard !context.isEmpty else { return answer }
        context.lend { raw in
            let texts = [raw.pointee.trace_parent, raw.pointee.trace_state, raw.pointee.caller].map {
                plugin_value_string($0.bytes, UInt32($0.count))
            }
            texts.withUnsafeBufferPointer { texts in
                (answer.values, answer.count) = (texts.baseAddress, UInt32(texts.count))
                if plugin_wire_copy(&answer, PLUGIN_WIRE_CHANNEL_BYTES) != 0 { answer = .answer() }
            }
        }
        return answer
    }

    private func performBound(
        _ request: plugin_wire_message, _ table: UnsafePointer<plugin_host>
    ) -> plugin_wire_message {
        var result = plugin_value_null()
        var isThere: Int32 = 0
        // If the values are missing, `flags` is the number of arguments that the module has stated.
        let count = request.count > 0 ? request.count : request.flags
        var answer = outcome { data in
            isThere = HostTable.bound.pointee.perform(
                table, request.a, request.values, count, &result, WorkerOutcome.receive, data)
        }
        if isThere != 0 { (answer.flags, answer.scalar, answer.a) = (PLUGIN_WIRE_SCALAR, result, 1) }
        return answer
    }

    private func askAboutURL(
        _ kind: plugin_wire_kind, _ request: plugin_wire_message, _ table: UnsafePointer<plugin_host>,
        _ generation: Generation
    ) -> plugin_wire_message? {
        var answer: plugin_wire_message?
        let isSound = withRequest(request, generation) { asked in
            if kind == PLUGIN_WIRE_CAN_OPEN {
                answer = .answer(
                    status: HostTable.routes.pointee.can_open(table, parent(request.token, generation), asked))
            } else {
                answer = outcome { HostTable.routes.pointee.build(table, asked, WorkerOutcome.receive, $0) }
            }
        }
        return isSound ? answer : nil
    }

    private func askAboutService(
        _ kind: plugin_wire_kind, _ name: plugin_string, _ version: plugin_string, _ request: plugin_wire_message,
        _ table: UnsafePointer<plugin_host>, _ generation: Generation
    ) -> plugin_wire_message {
        let services = HostTable.services.pointee
        let parent = parent(request.token, generation)
        switch kind {
        case PLUGIN_WIRE_INFO: return outcome { services.info(table, name, version, WorkerOutcome.receive, $0) }
        case PLUGIN_WIRE_REQUEST:
            return outcome { services.request(table, parent, name, version, WorkerOutcome.receive, $0) }
        default:
            var answer = plugin_wire_message.answer()
            answer.token = services.wait(
                table, parent, name, version, request.b, WorkerNumber.complete, WorkerNumber(self, request.a).retained)
            return answer
        }
    }
}
