import CPluginABI
import PluginABI
import Synchronization

// Memory that is never freed, for what modules and calls may refer to as long as the process lives.

extension UnsafePointer {
    /// A copy that is never freed.
    static func immortal(_ value: Pointee) -> UnsafePointer<Pointee> {
        let copy = UnsafeMutablePointer<Pointee>.allocate(capacity: 1)
        copy.initialize(to: value)
        return UnsafePointer(copy)
    }
}

extension UnsafeBufferPointer {
    /// A copy that is never freed.
    static func immortal(_ elements: [Element]) -> UnsafeBufferPointer<Element> {
        let copy = UnsafeMutableBufferPointer<Element>.allocate(capacity: elements.count)
        _ = copy.initialize(from: elements)
        return UnsafeBufferPointer(copy)
    }
}

extension plugin_string {
    /// A copy that is never freed, made once for all that are equal: what many modules have in common. For names, which
    /// are ASCII, since other texts can be equal and have other bytes.
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
    /// A copy that is never freed.
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
