import CPluginWire
import PluginABI

// Reading and making messages between the host and a worker.

extension plugin_wire_message {
    /// Creates an answer with a number.
    static func answer(_ number: UInt64 = 0) -> plugin_wire_message {
        var message = plugin_wire_message()
        (message.kind, message.a) = (PLUGIN_WIRE_ANSWER.rawValue, number)
        return message
    }

    static func answer(status: Int32) -> plugin_wire_message { answer(UInt64(UInt32(bitPattern: status))) }

    var arguments: UnsafeBufferPointer<plugin_value> { UnsafeBufferPointer(start: values, count: Int(count)) }

    /// Returns an integer among the values; `nil` if there is none.
    func int(_ index: Int) -> Int64? {
        guard index < count, values[index].kind == PLUGIN_KIND_INT else { return nil }
        return values[index].as.integer
    }

    /// Returns the bytes of a text among the values, which are not checked; `nil` if there is none.
    func string(_ index: Int) -> plugin_string? {
        guard index < count, values[index].kind == PLUGIN_KIND_STRING else { return nil }
        return plugin_string(bytes: values[index].as.string, count: UInt64(values[index].count))
    }

    /// Returns a text among the values, with replacements for bytes that are not UTF-8.
    func text(_ index: Int) -> String? { string(index).map { $0.bytes == nil ? "" : $0.text } }

    /// Returns the texts of a list among the values, at most 64, shortened; `nil` if there is no such list.
    func texts(_ index: Int) -> [String]? {
        guard index < count, values[index].kind == PLUGIN_KIND_LIST, values[index].count <= 64 else { return nil }
        // A worker can state a count without a pointer.
        guard let start = values[index].as.list else { return values[index].count == 0 ? [] : nil }
        let list = UnsafeBufferPointer(start: start, count: Int(values[index].count))
        let texts = list.filter { $0.kind == PLUGIN_KIND_STRING && $0.as.string != nil && $0.count <= 1024 }
        return texts.map { plugin_string(bytes: $0.as.string, count: UInt64($0.count)).text }
    }

    /// Returns the entries of a map among the values.
    func map(_ index: Int) -> UnsafeBufferPointer<plugin_entry>? {
        guard index < count, values[index].kind == PLUGIN_KIND_MAP else { return nil }
        let map = values[index]
        return UnsafeBufferPointer(start: map.as.map, count: map.as.map == nil ? 0 : Int(map.count))
    }
}

extension PluginError {
    static var cancelledWithCall: PluginError {
        PluginError(.cancelled, "The call for which this one is made is over: it did not end before its deadline.")
    }

    /// The error as an answer, to be disposed of.
    var answer: plugin_wire_message {
        var answer = plugin_wire_message.answer()
        lend { answer = .answer(to: $0.pointee) }
        return answer
    }
}

extension plugin_wire_message {
    fileprivate static func answer(to error: plugin_error) -> plugin_wire_message {
        var answer = plugin_wire_message.answer()
        // A text that does not fit is cut off. If there is no memory for the texts, the error has none.
        for limit in [UInt64.max, 1 << 16] {
            let texts = [error.code, error.message, error.source].map { text in
                let beginning = text.beginning(limit)
                return plugin_value_string(beginning.bytes, UInt32(clamping: beginning.count))
            }
            let isCopied = texts.withUnsafeBufferPointer { texts in
                answer.flags = PLUGIN_WIRE_ERROR
                (answer.values, answer.count) = (texts.baseAddress, UInt32(texts.count))
                return plugin_wire_copy(&answer, PLUGIN_WIRE_CHANNEL_BYTES) == 0
            }
            if isCopied { break }
        }
        return answer
    }
}

extension plugin_string {
    /// Returns the beginning, which does not end within a character.
    fileprivate func beginning(_ limit: UInt64) -> plugin_string {
        guard let bytes, count > limit else { return plugin_string(bytes: bytes, count: bytes == nil ? 0 : count) }
        var end = limit
        while end > 0, UInt8(bitPattern: bytes[Int(end)]) & 0xC0 == 0x80 { end -= 1 }
        return plugin_string(bytes: bytes, count: end)
    }
}

extension WorkerProcess {
    /// Returns an outcome as an answer, to be disposed of. Objects in it are lent until the worker has read it.
    func outcome(
        _ value: UnsafePointer<plugin_value>?, _ error: UnsafePointer<plugin_error>?
    ) -> plugin_wire_message {
        if let error { return .answer(to: error.pointee) }
        var answer = plugin_wire_message.answer()
        guard let value, value.pointee.kind > PLUGIN_KIND_DOUBLE else {
            (answer.flags, answer.scalar) = (PLUGIN_WIRE_SCALAR, value?.pointee ?? plugin_value_null())
            return answer
        }
        (answer.flags, answer.values, answer.count) = (PLUGIN_WIRE_VALUE, value, 1)
        let objects = UnsafeBufferPointer(start: value, count: 1).objects
        if plugin_wire_copy(&answer, PLUGIN_WIRE_CHANNEL_BYTES) != 0 {
            guard let link else { return .answer() }  // The worker has ended.
            (answer.values, answer.count) = (value, 1)
            let result = plugin_wire_put(link.wire, &answer)
            guard result == PLUGIN_WIRE_PUT else { return PluginError.unsentToWorker(result).answer }
        }
        if answer.has_objects != 0 {
            guard let number = self.objects.lendOutcome(objects) else {
                plugin_wire_dispose(&answer)
                return PluginError(.overloaded, "The module is reading too many outcomes with objects.").answer
            }
            answer.b = number
        }
        return answer
    }
}

/// The outcome of a request that a worker waits for, in memory of its own until it is sent.
final class WorkerOutcome {
    private let process: WorkerProcess
    /// The answer with the outcome, to be disposed of.
    private(set) var answer = plugin_wire_message.answer()

    init(_ process: WorkerProcess) { self.process = process }

    var unretained: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    static let receive: plugin_completion = { data, value, error in
        let own = Unmanaged<WorkerOutcome>.fromOpaque(data!).takeUnretainedValue()
        own.answer = own.process.outcome(value, error)
    }
}
