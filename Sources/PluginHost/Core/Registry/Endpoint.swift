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
    let number = ThreadContext.nextTally()
    /// How it can be called, at best.
    let way: Way
    /// How many parameters such an action has at most.
    static let fastParameters = 8
    /// Whether new calls wait while its module hands its state over.
    let isBlocked = Atomic(false)
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
        /// A call is nothing but a call of its function: see ``Calls/callFast(_:_:_:_:_:)``.
        case straight
        /// The same for asynchronous ones: see ``Calls/beginFast(_:_:parent:from:to:_:_:)``.
        case fastAsync
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
    let standIns = Mutex(TwoForms<Endpoint>())

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
        name: plugin_string, parameters: [Parameter] = [], isAsync: Bool, isRemote: Bool = false,
        isVariadic: Bool = false, isStandIn: Bool = false, generation: Generation,
        instances: InstanceProvider? = nil, gate: SerialGate? = nil, data: UnsafeMutableRawPointer? = nil,
        invoke: @escaping plugin_invoke
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
            !isVariadic && instances == nil && gate == nil && parameters.count <= Self.fastParameters
        way = isStraight ? isAsync ? .fastAsync : .straight : .general
        if isListed { generation.core.statistics.add(self) }
    }

    /// An action of the host's own, in the name of a generation (mostly the program), which is its `data`.
    ///
    /// - Parameter parameters: Their names and types; all are required. Nil for one that takes any.
    convenience init(
        own name: String, of generation: Generation, _ parameters: KeyValuePairs<String, Value.Kind>? = nil,
        isAsync: Bool = true, isRemote: Bool = false, invoke: @escaping plugin_invoke
    ) {
        let declared = (parameters ?? [:]).map { name, type in
            Parameter(
                key: .shared(name), kind: type, rawKind: type.raw ?? .max, isRequired: true,
                defaultValue: plugin_value_null())
        }
        self.init(
            name: .immortal(name), parameters: declared, isAsync: isAsync, isRemote: isRemote,
            isVariadic: parameters == nil, generation: generation,
            data: Unmanaged.passUnretained(generation).toOpaque(), invoke: invoke)
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
