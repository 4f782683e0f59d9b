import CPluginHost
import PluginABI
import PluginFile
import Synchronization

/// One action as the call path sees it: what to check and which function to call. Never freed: calls and status refer
/// to it without reference counting.
final class Endpoint: @unchecked Sendable {
    // Immutable after init, and the pointers point to memory that lives as long as the process; hence @unchecked
    // Sendable.

    // The fields that every call reads come first and are compact: with many modules, few endpoints are in the CPU
    // cache.

    /// The declared parameters in declared order, in memory that is never freed.
    let parameters: UnsafeBufferPointer<Parameter>
    let invoke: plugin_invoke
    let data: UnsafeMutableRawPointer?
    let generation: Generation
    /// The address of the label, once it has been created.
    private let labelWord = Atomic<UInt>(0)
    /// The index of the endpoint's call counter; unique among the endpoints of the process.
    let number = ThreadContext.nextTally()
    /// The fastest path by which the endpoint can be called.
    let callPath: CallPath
    /// The largest number of parameters with which an action can use a fast path.
    static let fastParameters = 8
    /// Whether new calls wait because the module is handing over its state, or is being started again.
    let isBlocked = Atomic(false)
    /// Whether the endpoint accepts any number of positional arguments and no named ones, as a callback does.
    let isVariadic: Bool
    /// Whether the last argument, after the declared parameters, is a map of the named parameters that the action does
    /// not declare.
    let hasRest: Bool
    let isAsync: Bool
    let isRemote: Bool
    /// Whether the endpoint runs interceptors in place of an action.
    let isStandIn: Bool
    /// Whether the action may declare a parameter in which the host passes information about a URL: a name that begins
    /// with `_`.
    let asksAboutURL: Bool

    /// A path by which an endpoint can be called.
    enum CallPath {
        /// A call consists of nothing but the call of its function: see ``Calls/callFast(_:_:areTrusted:_:_:_:)``.
        case fast
        /// The fast path for asynchronous actions: see ``Calls/beginFast(_:_:parent:from:to:_:_:)``.
        case fastAsync
        /// The slow path, ``Calls/invoke(_:_:_:_:_:instance:)``, which can call any endpoint.
        case slow
    }

    /// Target and action, type and action, or hook: `A/fetchDetail`, `Cursor#next`, `@setUp`. For endpoints of a module
    /// the bytes belong to the module and live as long as the process.
    let nameBytes: plugin_string
    var name: String { nameBytes.text }
    /// Returns the name of the action without the preceding name of the target.
    func name(after target: String) -> plugin_string { name(afterBytes: target.utf8.count) }

    /// Returns the name of the action without that of its target, which is `count` bytes long.
    func name(afterBytes count: Int) -> plugin_string {
        plugin_string(bytes: nameBytes.bytes + count + 1, count: nameBytes.count - UInt64(count) - 1)
    }

    /// A sample of how long the endpoint's calls took.
    let durations = Durations()
    /// The source of the instance, for actions of a target that has instances.
    let instances: InstanceProvider?
    /// The demands of the action on other programs, which the guard checks.
    let demands: [String]
    /// Whether the endpoint is code of a module and appears in the statistics. Callbacks, and the endpoints that stand
    /// in for an action, do not.
    private var isListed: Bool { !generation.isProgram && !isVariadic }
    /// Admits one call at a time, if the module or the target is serial.
    let gate: SerialGate?
    /// The endpoints that run interceptors in its place, created when they are first needed.
    let standIns = Mutex(TwoForms<Endpoint>())

    /// The properties of a declared parameter that the call path needs. Cheap to copy: it contains no references.
    struct Parameter: @unchecked Sendable {  // The key and the default point to memory that is never freed.
        let key: plugin_string
        /// The name as a number, if it has fewer than eight bytes.
        private let shortKey: UInt64
        /// The number of the kind in the binary interface; for `any`, which has none, a number that no sound
        /// value has.
        let rawKind: UInt32
        let kind: Value.Kind
        let isRequired: Bool
        let defaultValue: plugin_value

        var name: String { key.text }

        init(_ name: String, _ kind: Value.Kind, isRequired: Bool, defaultValue: plugin_value) {
            key = .shared(name)
            let count = Int(key.count)
            shortKey = count < 8 ? UnsafeRawPointer(key.bytes)?.tail(from: 0, to: count) ?? 0 : 0
            (self.kind, rawKind) = (kind, kind.raw ?? .max)
            (self.isRequired, self.defaultValue) = (isRequired, defaultValue)
        }

        /// Returns whether this is the name of the parameter.
        @inline(__always)
        func isNamed(_ other: plugin_string) -> Bool {
            guard other.count == key.count, let bytes = UnsafeRawPointer(other.bytes) else { return false }
            let count = Int(truncatingIfNeeded: other.count)
            return count < 8 ? bytes.tail(from: 0, to: count) == shortKey : other == key
        }
    }

    init(
        name: plugin_string, parameters: [Parameter] = [], isAsync: Bool, isRemote: Bool = false,
        demands: [String] = [],
        hasRest: Bool = false, isVariadic: Bool = false, isStandIn: Bool = false, generation: Generation,
        instances: InstanceProvider? = nil, gate: SerialGate? = nil, data: UnsafeMutableRawPointer? = nil,
        invoke: @escaping plugin_invoke
    ) {
        nameBytes = name
        self.parameters = .immortal(parameters)
        (self.isAsync, self.isRemote, self.isVariadic) = (isAsync, isRemote, isVariadic)
        self.demands = demands
        (self.hasRest, self.isStandIn, self.invoke, self.data) = (hasRest, isStandIn, invoke, data)
        (self.generation, self.instances, self.gate) = (generation, instances, gate)
        asksAboutURL = parameters.contains { $0.key.count > 3 && $0.key.bytes!.pointee == UInt8(ascii: "_") }
        let isFast =
            !isVariadic && !hasRest && instances == nil && gate == nil && parameters.count <= Self.fastParameters
        callPath = isFast ? isAsync ? .fastAsync : .fast : .slow
        if isListed { generation.core.statistics.add(self) }
    }

    /// Creates an action of the host itself that runs as part of a generation (usually the program), which is its
    /// `data`.
    ///
    /// - Parameter parameters: The names and types of its parameters, all required; `nil` if it accepts any.
    convenience init(
        own name: String, of generation: Generation, _ parameters: KeyValuePairs<String, Value.Kind>? = nil,
        isAsync: Bool = true, isRemote: Bool = false, invoke: @escaping plugin_invoke
    ) {
        let declared = (parameters ?? [:]).map { name, type in
            Parameter(name, type, isRequired: true, defaultValue: plugin_value_null())
        }
        self.init(
            name: .immortal(name), parameters: declared, isAsync: isAsync, isRemote: isRemote,
            isVariadic: parameters == nil, generation: generation,
            data: Unmanaged.passUnretained(generation).toOpaque(), invoke: invoke)
    }

    /// The text for the crash report if the process dies in the action. Created at the first call, because with many
    /// modules most actions are never called.
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

    /// The name of the action in messages: `A/fetchDetail of ModuleA`.
    var title: String { ("\(name)" + (generation.isProgram ? "" : " of \(generation.name)")).shortened }
}

extension Unmanaged<Endpoint> {
    /// Lends the endpoint, which is never freed, without reference counting: a reference count would be one more memory
    /// location that threads calling the same action contend for.
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
            declaration.name, declaration.type, isRequired: declaration.isRequired,
            defaultValue: .immortal(declaration.defaultValue ?? .null))
    }
}
