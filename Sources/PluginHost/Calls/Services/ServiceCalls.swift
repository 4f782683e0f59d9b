import PluginABI
import PluginFile

// Services on the call path: resolving them, instances that outlive a call, and waiting.

extension Calls {
    /// Calls an action of a service. A service that is not a singleton gets an instance for the call. There are no
    /// fallbacks for actions that the service does not have.
    func callService(
        _ request: borrowing plugin_request, _ call: Call, _ thread: ThreadContext, _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        let (name, action) = (request.target, request.action)
        let entries = request.entries
        let smallest = try Self.version(request.version)
        let given = call
        var call = call
        let (service, endpoint, isIntercepted) = registry.read(thread) {
            table -> (Unmanaged<ServiceEntry>?, Unmanaged<Endpoint>?, Bool) in
            guard let service = table.service(name, from: smallest) else { return (nil, nil, false) }
            let (endpoint, isOwn) = service._withUnsafeGuaranteedRef { ($0.endpoints.find(action), $0.maker != nil) }
            call.isFresh = call.isFresh || isOwn
            if let endpoint { occupy(record, endpoint, call) }
            return (service, endpoint, table.interception != nil)
        }
        guard let service else {
            let table = registry.current(thread)
            guard let module = table.knownServices[name.text]?.first else {
                throw table.missingService(name.text, from: smallest)
            }
            let address = WaitingAddress.service(name.text, action.text, version: request.version.text)
            let kept = try start(module, for: address, entries, given, thread, record)
            if let kept { return kept }
            return try callService(request, given, thread, record)
        }
        guard let endpoint else { throw service.takeUnretainedValue().unknownAction(action.text) }
        if isIntercepted {
            let interception = registry.current(thread).interception
            return try invoke(endpoint.takeUnretainedValue(), entries, call, thread, record, through: interception)
        }
        if call.isPlain, callFast(endpoint, entries, areTrusted: true, call.receiver, thread, record) { return 0 }
        return try endpoint.lend { (endpoint) throws(PluginError) in
            try invoke(endpoint, entries, call, thread, record)
        }
    }

    /// Calls an action of a service after a module that offers it was started.
    func callService(
        _ name: String, _ action: String, _ version: String, _ entries: UnsafeBufferPointer<plugin_entry>,
        _ call: Call, _ thread: ThreadContext, _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        try name.withRawText { (name) throws(PluginError) in
            try action.withRawText { (action) throws(PluginError) in
                try version.withRawText { (version) throws(PluginError) in
                    var request = plugin_request()
                    request.size = UInt32(MemoryLayout<plugin_request>.size)
                    request.address = PLUGIN_ADDRESS_SERVICE
                    (request.target, request.action) = (plugin_string(name), plugin_string(action))
                    request.version = plugin_string(version)
                    (request.parameters, request.parameter_count) = (entries.baseAddress, UInt64(entries.count))
                    return try callService(request, call, thread, record)
                }
            }
        }
    }

    static func version(_ text: plugin_string) throws(PluginError) -> SemanticVersion? {
        if text.count == 0 { return nil }
        guard let version = SemanticVersion(text.text) else {
            throw PluginError(
                .invalidValue, "“\(text.text.shortened)” is not a semantic version of a service, such as 1.0.0.")
        }
        return version
    }

    /// Finds the implementation of a service, without creating anything. Services are never freed.
    func service(_ name: plugin_string, _ version: plugin_string) throws(PluginError) -> Unmanaged<ServiceEntry> {
        // A name that is found needs no check: its bytes equal those of a checked name.
        if version.count == 0, let thread = ThreadContext.current,
            let found = registry.read(thread, { $0.service(name, from: nil) })
        {
            return found
        }
        try name.check("The name of the service")
        try version.check("The version of the service")
        let smallest = try Self.version(version)
        var table = registry.table
        while try startAll(table.knownServices[name.text]) { table = registry.table }
        guard let service = table.service(name, from: smallest) else {
            throw table.missingService(name.text, from: smallest)
        }
        return service
    }

    /// Creates an object with an instance of its own; `nil` if the service no longer exists.
    ///
    /// - Throws: The error of the call that creates it.
    private func instance(
        of service: ServiceEntry, by endpoint: Endpoint, parent: plugin_token
    ) throws(PluginError) -> Object? {
        var isThere = false
        let made = try HostContext(host: program.hostTable).receive { completion, data in
            let receiver = Receiver(completion, data)
            let answer = inNextRecord(receiver) { (thread, record) throws(PluginError) in
                let call = Call(
                    parent: parent != 0 ? parent : thread.currentCall, timeout: 0, isRemote: false, mode: .synchronous,
                    receiver: receiver, isFresh: true)
                let isFound = registry.read(thread) { table in
                    guard table.services[service.name]?.contains(where: { $0 === service }) == true else {
                        return false
                    }
                    occupy(record, .passUnretained(endpoint), call)
                    return true
                }
                guard isFound else { return nil }
                return try invoke(endpoint, UnsafeBufferPointer(start: nil, count: 0), call, thread, record)
            }
            isThere = answer != nil
        }
        return isThere ? made.object : nil
    }

    /// Finds the implementation of a service, and lends its description, with a new object if the service has
    /// instances.
    ///
    /// - Throws: The errors of ``service(_:_:)``, and that of the call that creates the object.
    func requestService(
        _ name: plugin_string, _ version: plugin_string, parent: plugin_token,
        _ body: (UnsafePointer<plugin_value>) -> Void
    ) throws(PluginError) {
        while true {
            let found = try service(name, version)
            let isLent = found._withUnsafeGuaranteedRef { service in
                guard service.maker == nil else { return false }
                service.lend(nil, to: body)
                return true
            }
            if isLent { return }
            let service = found.takeUnretainedValue()
            if let maker = service.maker, let object = try instance(of: service, by: maker.endpoint, parent: parent) {
                return service.lend(object, to: body)
            }
        }
    }

    /// Reports the implementation of a service as soon as there is one.
    func awaitService(
        _ name: plugin_string, _ version: plugin_string, parent: plugin_token, timeout: Int64, from caller: Generation,
        to receiver: Receiver
    ) -> plugin_token {
        inNextRecord(receiver) { (thread, record) throws(PluginError) in
            let call = Call(
                parent: parent != 0 ? parent : thread.currentCall, timeout: timeout, isRemote: false, mode: .any,
                receiver: receiver, caller: .passUnretained(caller))
            try name.check("The name of the service")
            try version.check("The version of the service")
            _ = try Self.version(version)
            occupy(record, .passUnretained(core.ownActions.serviceWaiter), call)
            let parameters = Parameters(positional: [.string(name.text), .string(version.text)])
            return try parameters.lend { (entries) throws(PluginError) in
                try invoke(core.ownActions.serviceWaiter, entries, call, thread, record)
            }
        } ?? 0
    }

    /// Creates the action behind ``awaitService(_:_:parent:timeout:from:to:)``: an asynchronous action of the program,
    /// so that deadlines and cancellation work as for any other call.
    static func makeServiceWaiter(_ program: Generation) -> Endpoint {
        Endpoint(own: "waiting for a service", of: program, ["name": .string, "version": .string]) {
            data, call, arguments, _ in
            let program = Unmanaged<Generation>.fromOpaque(data!).takeUnretainedValue()
            let (name, version) = (arguments![0].string, SemanticVersion(arguments![1].string))
            ServiceWait(token: call!.pointee.token, name: name, smallest: version, program: program).begin()
        }
    }
}

/// One call that waits for a service. The thread that removes it from the registry's observers replies to it.
private final class ServiceWait: Sendable {
    private let token: plugin_token
    private let name: String
    private let smallest: SemanticVersion?
    private let program: Generation

    init(token: plugin_token, name: String, smallest: SemanticVersion?, program: Generation) {
        (self.token, self.name, self.smallest, self.program) = (token, name, smallest, program)
    }

    func begin() {
        // Kept alive by the closures until the wait is over.
        program.calls.registry.observe(token) { self.look(at: $0) }
        CancelHandler.set(of: token, in: program) {
            self.end(.failure(PluginError(.cancelled, "The caller no longer waits for the service.")))
        }
    }

    private func look(at table: Table) {
        if let known = table.knownServices[name] {
            // The table that contains the started modules is passed to this function, too.
            let starter = program.core.starter
            let callers = Calls.generations(callingFrom: token)
            ThreadPool.shared.run { for module in known { _ = starter.start(module.name, for: callers) } }
        } else if let service = table.service(name, from: smallest) {
            end(.success(service))
        } else if table.isStopped {
            end(.failure(table.missingService(name, from: smallest)))
        }
    }

    private func end(_ result: Result<ServiceEntry, PluginError>) {
        let calls = program.calls
        guard calls.registry.stopObserving(token) else { return }
        switch result {
        case .success(let service): service.lend(nil) { calls.answer(token, $0) }
        case .failure(let error): calls.answer(token, error)
        }
    }
}

extension plugin_value {
    /// The text of a string that was checked.
    fileprivate var string: String { plugin_string(bytes: self.as.string, count: UInt64(count)).text }
}

extension ServiceEntry {
    /// Lends the description, with an object if there is one.
    func lend(_ object: Object?, to body: (UnsafePointer<plugin_value>) -> Void) {
        var map = told
        guard let object else { return body(&map) }
        var all = Array(UnsafeBufferPointer(start: map.as.map, count: Int(map.count)))
        all.append(plugin_entry(key: plugin_string("object"), value: plugin_value_object(object.handle)))
        all.withUnsafeBufferPointer { all in
            map = plugin_value_map(all.baseAddress, UInt32(all.count))
            withExtendedLifetime(object) { body(&map) }
        }
    }
}
