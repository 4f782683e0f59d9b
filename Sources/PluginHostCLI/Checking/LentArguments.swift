internal import Glibc
internal import PluginABI
internal import PluginHost

/// Parameters of one call, in memory that is taken away after the call: code that still reads it crashes.
struct LentArguments {
    private static let size = 64 << 10
    private let memory: UnsafeMutableRawPointer
    private var used = 0
    private(set) var entries: UnsafeBufferPointer<plugin_entry>

    /// - Returns: `nil` if there is no memory, or the parameters do not fit.
    init?(_ parameters: Parameters) {
        guard let memory = mmap(nil, Self.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            memory != MAP_FAILED
        else { return nil }
        (self.memory, entries) = (memory, UnsafeBufferPointer(start: nil, count: 0))
        do throws(PluginError) {
            try parameters.lend { (given) throws(PluginError) in
                guard let first = given.baseAddress else { return }
                entries = UnsafeBufferPointer(start: try copy(first, given.count), count: given.count)
            }
        } catch {
            takeAway()
            return nil
        }
    }

    /// Overwrites the memory, and makes it inaccessible. Its addresses are not used again.
    func takeAway() {
        memset(memory, 0xA5, Self.size)
        mprotect(memory, Self.size, PROT_NONE)
    }

    private mutating func reserve<Element>(
        _ count: Int, of type: Element.Type
    ) throws(PluginError) -> UnsafeMutablePointer<Element> {
        let bytes = (count * MemoryLayout<Element>.stride + 15) & ~15
        guard used + bytes <= Self.size else { throw PluginError(.invalidValue, "The parameters do not fit.") }
        defer { used += bytes }
        return (memory + used).bindMemory(to: type, capacity: count)
    }

    private mutating func copy(
        _ entries: UnsafePointer<plugin_entry>, _ count: Int
    ) throws(PluginError) -> UnsafePointer<plugin_entry> {
        let copies = try reserve(count, of: plugin_entry.self)
        for index in 0..<count {
            var entry = entries[index]
            entry.key.bytes = try copy(entry.key.bytes, Int(entry.key.count))
            entry.value = try copy(entry.value)
            (copies + index).initialize(to: entry)
        }
        return UnsafePointer(copies)
    }

    private mutating func copy(_ value: plugin_value) throws(PluginError) -> plugin_value {
        var value = value
        let count = Int(value.count)
        switch value.kind {
        case PLUGIN_KIND_STRING: value.as.string = try copy(value.as.string, count)
        case PLUGIN_KIND_BYTES: value.as.bytes = try copy(value.as.bytes, count)
        case PLUGIN_KIND_LIST where count > 0:
            let copies = try reserve(count, of: plugin_value.self)
            for index in 0..<count { (copies + index).initialize(to: try copy(value.as.list[index])) }
            value.as.list = UnsafePointer(copies)
        case PLUGIN_KIND_MAP where count > 0: value.as.map = try copy(value.as.map, count)
        default: break
        }
        return value
    }

    private mutating func copy<Byte>(
        _ bytes: UnsafePointer<Byte>?, _ count: Int
    ) throws(PluginError) -> UnsafePointer<Byte>? {
        guard let bytes, count > 0 else { return bytes }
        let copies = try reserve(count, of: Byte.self)
        copies.initialize(from: bytes, count: count)
        return UnsafePointer(copies)
    }
}

extension ActionCheck {
    /// Calls every action with arguments that are taken away when it has returned, then calls all again.
    func arguments(_ result: inout CheckResult) async {
        var values = SeededValues(seed: seed)
        var count = 0
        let calls = await calls(&values)
        for call in calls {
            for _ in 0..<2 {
                guard let lent = LentArguments(Parameters(ordinary(call.action, &values))) else { continue }
                progress("\(call.title), whose arguments are taken away when it returns")
                call.perform(lending: lent.entries, in: host, timeout: timeout)
                lent.takeAway()
                count += 1
            }
        }
        // Threads of the module, and replies of asynchronous actions, come a little later.
        try? await Task.sleep(for: .milliseconds(100))
        for call in calls { _ = await outcome(call, ordinary(call.action, &values)) }
        result.summary = "\(counted(count, "call")) whose arguments are taken away when the action returns"
    }
}
