import PluginABI
import Synchronization

// Memory that is never freed, for everything that modules and calls may refer to until the process ends.

extension UnsafePointer {
    /// Returns a copy that is never freed.
    static func immortal(_ value: Pointee) -> UnsafePointer<Pointee> {
        let copy = UnsafeMutablePointer<Pointee>.allocate(capacity: 1)
        copy.initialize(to: value)
        return UnsafePointer(copy)
    }
}

extension UnsafeBufferPointer {
    /// Returns a copy that is never freed.
    static func immortal(_ elements: some Collection<Element>) -> UnsafeBufferPointer<Element> {
        let copy = UnsafeMutableBufferPointer<Element>.allocate(capacity: elements.count)
        _ = copy.initialize(from: elements)
        return UnsafeBufferPointer(copy)
    }
}

extension plugin_string {
    /// Returns a copy that is never freed and is shared by all texts of the same bytes: for text that many modules, or
    /// all generations of a module, have in common.
    static func shared(_ text: String) -> plugin_string { text.withPluginString { shared($0) } }

    /// - Parameter text: A text in memory that can be read. If it has none, it is returned as it is.
    static func shared(_ text: plugin_string) -> plugin_string {
        guard text.bytes != nil else { return text }
        let wanted = SharedText(text: text)
        return sharedTexts.withLock { texts in
            if let known = texts.firstIndex(of: wanted) { return texts[known] }
            let bytes = UnsafeBufferPointer.immortal(wanted.bytes)
            let copy = SharedText(text: plugin_string(bytes: bytes.baseAddress, count: wanted.text.count))
            texts.insert(copy)
            return copy
        }.text
    }
    private static let sharedTexts = Mutex<Set<SharedText>>([])

    /// A text with bytes, compared by them.
    private struct SharedText: Hashable, @unchecked Sendable {  // Those that are kept are never freed.
        let text: plugin_string
        var bytes: UnsafeBufferPointer<CChar> { UnsafeBufferPointer(start: text.bytes, count: Int(text.count)) }

        static func == (left: Self, right: Self) -> Bool { left.text == right.text }

        func hash(into hasher: inout Hasher) {
            hasher.combine(bytes: UnsafeRawBufferPointer(bytes))
        }
    }
}

extension plugin_value {
    /// Returns a copy that is never freed.
    static func immortal(_ value: Value) -> plugin_value {
        switch value {
        case .null: plugin_value_null()
        case [:]: emptyMap
        default: makeImmortal(value)
        }
    }

    private static let emptyMap = makeImmortal([:])

    private static func makeImmortal(_ value: Value) -> plugin_value {
        let owner = Unmanaged.passRetained(LaidOut(value)).takeUnretainedValue()
        return (try? owner.parameters.lend { $0.first?.value }) ?? plugin_value_null()
    }

    /// Keeps a laid-out value in memory.
    private final class LaidOut {
        let parameters: Parameters
        init(_ value: Value) { parameters = Parameters(positional: [value]) }
    }
}
