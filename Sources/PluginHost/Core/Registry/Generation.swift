import Dispatch
import FoundationEssentials
import PluginABI
import PluginFile
import Synchronization

/// One loaded copy of a module. Never freed, because its code is never unloaded.
final class Generation: @unchecked Sendable {
    // Built by the loader on one thread and immutable afterwards, except for the atomics; hence @unchecked Sendable.

    let name: String
    let version: SemanticVersion
    /// The number of the generation, counted from 1 across all modules in the process; 0 is the program itself.
    let number: Int
    /// The file in the plugins folder that the generation was loaded from.
    let file: String
    /// The staged copy that was opened.
    let stagedPath: String
    let manifest: ModuleManifest?
    /// The loaded module that the generation was created from; `nil` for the program itself.
    let module: LoadedModule?
    /// The label for messages and the crash report: `ModuleA 1.0.0 (generation 3)`.
    let label: String
    let core: HostCore
    let created = Date()
    /// The table of functions by which the module calls the host.
    private(set) var hostTable: UnsafePointer<plugin_host>!
    private(set) var context: UnsafePointer<plugin_context>!

    private(set) var targets: [String: [String: Endpoint]] = [:]
    private(set) var addresses: [Address] = []
    /// The actions of the module's targets that handle events of the chain by prefix, longer prefixes first.
    private(set) var prefixHandlers: [PrefixHandler] = []
    private(set) var routes: [RouteEntry] = []
    private(set) var services: [ServiceEntry] = []
    /// The services that service files or the program declare for the module's targets; created when they are first
    /// needed.
    let declaredServices = Mutex<[DeclaredServices.Declared: ServiceEntry]>([:])
    private(set) var types: [String: ObjectTypeEntry] = [:]
    private(set) var hooks: [String: Endpoint] = [:]
    /// The handlers of the module's subscriptions, by event.
    private(set) var subscriptions: [String: Endpoint] = [:]
    /// The interceptors that the module offers, by name.
    private(set) var interceptors: [String: Endpoint] = [:]
    private(set) var providers: [InstanceProvider] = []
    /// The types of the module's callbacks, created when they are first needed.
    private let callbackTypes = Mutex(TwoForms<ObjectTypeEntry>())
    /// Whether the hook `setUp` has succeeded.
    let isSetUp = Atomic(false)
    /// Whether a synchronous step of the start did not return in time; nothing in the generation is called after that.
    let isHanging = Atomic(false)
    /// Whether the start was abandoned, or the generation stops: no further step of the start begins.
    let isEnding = Atomic(false)
    /// The code called last since the generation began to serve (`didStart`, subscribers to missed events); a change
    /// may have continued without waiting for it. The group is empty when that code and the code before it have ended.
    let codeAfterStart = Mutex<DispatchGroup?>(nil)

    /// The number of the generation's objects and callbacks that still have a holder.
    let objectCount = Atomic<Int>(0)
    /// The barrier that blocks new calls while the generation hands over its state.
    let barrier = Mutex<CallBarrier?>(nil)
    /// Whether the generation's objects can no longer be called, because ``HostConfiguration/objectTimeout`` has passed
    /// since it was replaced or removed.
    let isRevoked = Atomic(false)
    /// Whether the generation has handed over its state to the one that replaced it.
    let hasHandedOver = Atomic(false)
    /// The code that the start has called last, and when, in `CLOCK_MONOTONIC` nanoseconds.
    let startingCode = Mutex<(name: String, begin: Int64)?>(nil)
    /// Whether the generation is being set up and initialised. During that time it sees a proposed table, and is in no
    /// other.
    let isStarting = Atomic(false)
    /// Whether the start continues after the change that began it.
    let isLate = Atomic(false)
    /// The number of the last sticky event that counts as posted before the module's start, and is delivered after it.
    /// Until the module has started, all events count as such.
    let lastMissedEvent = Atomic<Int>(.max)

    /// The key under which the registry finds an endpoint; the strings live as long as the process.
    struct Address {
        let endpoint: Endpoint
        /// The number of bytes of the endpoint's name that are the target's; a slash follows them.
        private let targetCount: Int

        init(_ endpoint: Endpoint, target: String) {
            self.endpoint = endpoint
            targetCount = target.utf8.count
        }

        var target: plugin_string {
            plugin_string(bytes: endpoint.nameBytes.bytes, count: UInt64(targetCount))
        }
        var action: plugin_string { endpoint.name(afterBytes: targetCount) }
    }

    private static let counter = Atomic<Int>(0)
    /// The number of the generation that was created last.
    static var lastNumber: Int { counter.load(ordering: .relaxed) }

    /// Creates a generation of a module that was loaded and checked: its manifest matches its function table.
    init(
        _ module: LoadedModule, core: HostCore, configuration: Value
    ) {
        let manifest = module.manifest
        name = manifest.name
        version = manifest.version
        number = Self.counter.add(1, ordering: .relaxed).newValue
        file = module.file
        stagedPath = module.stagedPath
        (self.manifest, self.module) = (manifest, module)
        label = "\(manifest.name) \(manifest.version) (generation \(number))"
        self.core = core
        finishTables(configuration)
        addActions(module)
    }

    /// Creates the generation of the program itself, as the caller of its calls and the owner of its callbacks.
    init(programOf core: HostCore) {
        name = ""
        version = SemanticVersion("0.0.0")!
        number = 0
        file = ""
        stagedPath = ""
        manifest = nil
        module = nil
        label = "the program"
        self.core = core
        finishTables([:])
    }

    private func finishTables(_ configuration: Value) {
        context = .immortal(
            plugin_context(
                size: UInt32(MemoryLayout<plugin_context>.size), reserved: 0, module: .immortal(name),
                file: .immortal(file), folder: .immortal(file.parentFolder),
                configuration: .immortal(configuration), values: core.context))
        hostTable = core.makeHostTable(self)
    }

    /// Returns the type of callbacks made from synchronous or asynchronous closures.
    func callbackType(isAsync: Bool) -> ObjectTypeEntry {
        callbackTypes.withLock { types in types.form(isAsync: isAsync) { CallbackBox.type(in: self, isAsync: isAsync) }
        }
    }

    private func addActions(_ module: LoadedModule) {
        let manifest = module.manifest
        addresses.reserveCapacity(manifest.targets.reduce(0) { $0 + $1.actions.count })
        let moduleGate = manifest.concurrency == .serial ? SerialGate(owner: "Module \(name)") : nil
        for target in manifest.targets {
            let gate =
                switch target.concurrency {
                case .serial: moduleGate ?? SerialGate(owner: "Target \(target.name) of \(name)")
                case .concurrent: SerialGate?.none
                }
            let provider = module.factories[target.name].map {
                InstanceProvider($0, target: target.name, isShared: target.instance == .shared)
            }
            if let provider { providers.append(provider) }
            var actions = [String: Endpoint](minimumCapacity: target.actions.count)
            for action in target.actions {
                let endpoint = endpoint(action, "\(target.name)/\(action.name)", module, provider, gate)
                actions[action.name] = endpoint
                addresses.append(Address(endpoint, target: target.name))
            }
            targets[target.name] = actions
            prefixHandlers.append(target.actions, of: target.name, actions)
            services += manifest.services.filter { $0.target == target.name }.map {
                ServiceEntry($0, target: target, of: self, actions: actions, instances: provider, gate: gate)
            }
        }
        prefixHandlers = prefixHandlers.inOrder
        for type in manifest.types {
            var actions: [String: Endpoint] = [:]
            for action in type.actions {
                actions[action.name] = endpoint(action, "\(type.name)#\(action.name)", module, nil, moduleGate)
            }
            var prefixHandlers: [PrefixHandler] = []
            prefixHandlers.append(type.actions, of: type.name, actions)
            types[type.name] = ObjectTypeEntry(
                name: type.name, actions: actions, generation: self, prefixHandlers: prefixHandlers.inOrder)
        }
        routes = module.routes
        for event in manifest.events {
            subscriptions[event.name] = endpoint(event, "!\(event.name)", module, nil, moduleGate)
        }
        for var interceptor in manifest.interceptors {
            interceptor.isRemote = true  // It runs around calls from other programs, too.
            interceptors[interceptor.name] = endpoint(interceptor, "~\(interceptor.name)", module, nil, moduleGate)
        }
        for hook in manifest.hooks {
            hooks[hook.rawValue] = endpoint(manifest.action(of: hook), "@\(hook.rawValue)", module, nil, nil)
        }
    }

    private func endpoint(
        _ action: ModuleManifest.Action, _ name: String, _ module: LoadedModule, _ instances: InstanceProvider?,
        _ gate: SerialGate?
    ) -> Endpoint {
        let function = module.functions[name]!  // The loader has checked that each action has one.
        return Endpoint(
            name: function.name, parameters: action.parameters.map(Endpoint.Parameter.init), isAsync: action.isAsync,
            isRemote: action.isRemote, demands: action.demands, hasRest: action.hasRest, generation: self,
            instances: instances, gate: gate,
            data: function.data,
            invoke: function.invoke)
    }
}

// MARK: Life

extension Generation {
    /// The table that calls of the generation read.
    var table: Registry.Kind {
        guard isStarting.load(ordering: .relaxed) else { return .published }
        return isLate.load(ordering: .relaxed) ? .late : .proposed
    }

    /// The number of calls that are running in it.
    var callsInFlight: Int { runningCalls().count { $0.belongs(to: self) } }

    /// Adds to the code that is called after the module has begun to serve.
    ///
    /// - Returns: The code before it, and a group to leave when the new code has ended.
    func addCodeAfterStart() -> (previous: DispatchGroup?, end: DispatchGroup) {
        let end = DispatchGroup()
        end.enter()
        let previous = codeAfterStart.withLock { code in
            defer { code = end }
            return code
        }
        return (previous, end)
    }

    /// Blocks this thread until `didStart` and the delivery of missed events have ended. Returns false if they have not
    /// ended in time.
    @discardableResult
    func waitForCodeAfterStart(within time: Duration) -> Bool {
        codeAfterStart.withLock(\.self)?.wait(timeout: .now() + time.dispatchInterval) != .timedOut
    }
}
