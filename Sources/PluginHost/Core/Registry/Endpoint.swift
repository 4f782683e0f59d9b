import CPluginABI
import CPluginHost
import Foundation
import PluginABI
import PluginFile
import Synchronization

/// One action as the call path sees it: what to check, and what to call. Never freed: calls and status refer to it
/// without counting.
final class Endpoint: @unchecked Sendable {
    // Immutable after init, and the pointers point to what lives as long as the process; hence @unchecked Sendable.

    // First what every call reads, in as few bytes as it takes: of many modules hardly any is in the processor's cache.

    /// In declared order; in memory that is never freed.
    let parameters: UnsafeBufferPointer<Parameter>
    let invoke: plugin_invoke
    let data: UnsafeMutableRawPointer?
    let generation: Generation
    /// The address of the label, once it is made.
    private let labelWord = Atomic<UInt>(0)
    /// Where its calls are counted; no other endpoint of the process has the same.
    let number = Lane.nextTally()
    /// How it can be called, at best.
    let way: Way
    /// How many parameters such an action has at most.
    static let straightParameters = 8
    /// Whether new calls wait while its module hands its state over.
    let isHeld = Atomic(false)
    /// Takes any arguments by position and no names: a callback.
    let isVariadic: Bool
    let isAsync: Bool
    let isRemote: Bool
    /// Runs interceptors in the place of an action.
    let isStandIn: Bool
    /// Whether it may declare a name by which the host tells about a URL: one that begins with `_`.
    let asksAboutURL: Bool

    /// See ``way``.
    enum Way {
        /// A call is nothing but a call of its function: see ``Calls/callStraight(_:_:_:_:_:)``.
        case straight
        /// The same for asynchronous ones: see ``Calls/beginStraight(_:_:parent:from:to:_:_:)``.
        case straightAsync
        /// Through ``Calls/invoke(_:_:_:_:_:instance:)``, which can call any.
        case general
    }

    /// Target and action, type and action, or hook: `A/fetchDetail`, `Cursor#next`, `@setUp`. The bytes of those of a
    /// module are the module's own, which stay as long as the process.
    let nameBytes: plugin_string
    var name: String { nameBytes.text }
    /// How long some of its calls took.
    let durations = Durations()
    /// Where the instance comes from, for actions of a target that has one.
    let instances: InstanceProvider?
    /// Whether it is code of a module, and stands in the statistics: neither a callback nor what the host puts in its
    /// place.
    private var isListed: Bool { !generation.isProgram && !isVariadic }
    /// Lets one call in at a time, if the module or the target is serial.
    let gate: SerialGate?
    /// What runs interceptors in its place, once there have been any.
    let standIns = Mutex<(synchronous: Endpoint?, asynchronous: Endpoint?)>((nil, nil))

    /// What the call path must know of a declared parameter. Copied freely: it holds no reference.
    struct Parameter: @unchecked Sendable {  // The key and the default point to memory that is never freed.
        let key: plugin_string
        let kind: Value.Kind
        /// The number of the kind in the binary interface; of `any`, which has none, a number that no value has.
        let rawKind: UInt32
        let isRequired: Bool
        let defaultValue: plugin_value

        var name: String { key.text }
    }

    init(
        name: plugin_string, parameters: [Parameter], isAsync: Bool, isRemote: Bool, isVariadic: Bool = false,
        isStandIn: Bool = false, invoke: @escaping plugin_invoke, data: UnsafeMutableRawPointer?,
        generation: Generation,
        instances: InstanceProvider?, gate: SerialGate?
    ) {
        nameBytes = name
        self.parameters = .immortal(parameters)
        self.isAsync = isAsync
        self.isRemote = isRemote
        self.isVariadic = isVariadic
        self.isStandIn = isStandIn
        self.invoke = invoke
        self.data = data
        self.generation = generation
        self.instances = instances
        self.gate = gate
        asksAboutURL = parameters.contains { $0.key.count > 3 && $0.key.bytes!.pointee == UInt8(ascii: "_") }
        let isStraight =
            !isVariadic && instances == nil && gate == nil && parameters.count <= Self.straightParameters
        way = isStraight ? isAsync ? .straightAsync : .straight : .general
        if isListed { generation.core.statistics.add(self) }
    }

    /// What the crash report says while it runs. Made with its first call: of many modules most actions are never called.
    var label: UnsafePointer<CChar> {
        @inline(__always) get { UnsafePointer(bitPattern: labelWord.load(ordering: .acquiring)) ?? makeLabel() }
    }

    @inline(never)
    private func makeLabel() -> UnsafePointer<CChar> {
        let file = generation.module?.staged.number ?? UInt64(PLUGIN_HOST_THE_PROGRAM)
        let made = plugin_host_label_create("\(name) of \(generation.label)".printable, file)!
        let (isFirst, other) = labelWord.compareExchange(
            expected: 0, desired: UInt(bitPattern: made), ordering: .acquiringAndReleasing)
        guard isFirst else {
            plugin_host_label_free(made)
            return UnsafePointer(bitPattern: other)!
        }
        return made
    }

    /// The action in messages: `A/fetchDetail of ModuleA`.
    var title: String { generation.isProgram ? "\(name)" : "\(name) of \(generation.name)" }
}

extension Unmanaged<Endpoint> {
    /// Lends the endpoint, which is never freed, without counting: a count would be one more thing that threads which
    /// call one action have to share.
    @inline(__always)
    func lend<Result>(_ body: (Endpoint) throws(PluginError) -> Result) throws(PluginError) -> Result {
        try _withUnsafeGuaranteedRef { endpoint -> Swift.Result<Result, PluginError> in
            do throws(PluginError) { return .success(try body(endpoint)) } catch { return .failure(error) }
        }.get()
    }
}

extension Endpoint.Parameter {
    init(_ declaration: ModuleManifest.Parameter) {
        self.init(
            key: .shared(declaration.name), kind: declaration.type, rawKind: declaration.type.raw ?? .max,
            isRequired: declaration.isRequired, defaultValue: .immortal(declaration.defaultValue ?? .null))
    }
}

extension UnsafeBufferPointer {
    /// A copy that is never freed.
    fileprivate static func immortal(_ elements: [Element]) -> UnsafeBufferPointer<Element> {
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
        let parameters = Unmanaged.passRetained(ImmortalParameters(Parameters([("", value)])))
        return parameters.takeUnretainedValue().first
    }
}

/// Keeps a laid-out value in memory.
private final class ImmortalParameters {
    let parameters: Parameters
    init(_ parameters: Parameters) { self.parameters = parameters }

    var first: plugin_value {
        (try? parameters.withEntries { entries, count in count > 0 ? entries.pointee.value : plugin_value_null() })
            ?? plugin_value_null()
    }
}
