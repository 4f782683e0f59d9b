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
    static func immortal(_ elements: [Element]) -> UnsafeBufferPointer<Element> {
        let copy = UnsafeMutableBufferPointer<Element>.allocate(capacity: elements.count)
        _ = copy.initialize(from: elements)
        return UnsafeBufferPointer(copy)
    }
}

extension plugin_string {
    /// Returns a copy that is never freed and is shared by all equal texts, for text that many modules have in common.
    /// Only for names, which are ASCII: other texts can be equal and consist of different bytes.
    static func shared(_ text: String) -> plugin_string {
        sharedTexts.withLock { texts in
            if let known = texts[text] { return known }
            let copy = immortal(text)
            texts[text] = copy
            return copy
        }
    }
    private static let sharedTexts = Mutex<[String: plugin_string]>([:])
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
