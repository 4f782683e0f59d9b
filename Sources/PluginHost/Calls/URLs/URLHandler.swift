import PluginABI

/// The destination of a URL: what handles the URL when it is opened.
enum URLHandler {
    /// The action that the URL addresses.
    case action(Endpoint)
    /// The closure of the route.
    case closure(RouteClosure)
    /// The fallback, because no module offers the action.
    case fallback(Calls.Fallback)

    /// The endpoint that declares the parameters; `nil` if any are accepted.
    var declaring: Endpoint? { if case .action(let endpoint) = self { endpoint } else { nil } }

    /// The demands on other programs, which the guard checks.
    var demands: [String] {
        switch self {
        case .action(let endpoint), .fallback(.notFound(let endpoint)): endpoint.demands
        case .closure(let closure): closure.demands
        case .fallback(.program): []
        }
    }

    /// Lends the parameters of a URL as the entries of the call, with the number of query items that were dropped.
    func lendArguments<Result>(
        _ resolution: URLResolution, besides given: UnsafeBufferPointer<plugin_entry>, asksForObject: Bool = false,
        _ body: (UnsafeBufferPointer<plugin_entry>, _ dropped: Int) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        try URLArguments.lend(
            of: resolution, to: declaring.map { .passUnretained($0) }, besides: given, asksForObject: asksForObject,
            body)
    }
}

extension Calls {
    /// Returns what handles a URL that a caller in this process opens.
    ///
    /// - Throws: The error that explains why nothing does.
    func destination(of resolution: URLResolution, in table: Table) throws(PluginError) -> URLHandler {
        if let closure = resolution.route?.takeUnretainedValue().closure { return .closure(closure) }
        if let found = table.find(resolution.target, resolution.action) { return .action(found.takeUnretainedValue()) }
        let (target, action) = (resolution.target.text, resolution.action.text)
        return .fallback(try fallback(for: target, action, isRemote: false, in: table))
    }

    /// Checks the parameters of a call by URL, and returns them as its destination would get them. Those without a
    /// value are left out.
    ///
    /// - Throws: The errors of ``Endpoint/bind(_:to:)``.
    func parameters(
        _ entries: UnsafeBufferPointer<plugin_entry>, of resolution: URLResolution, _ destination: URLHandler,
        asksForObject: Bool = false
    ) throws(PluginError) -> [String: Value] {
        switch destination {
        case .action(let endpoint): return try endpoint.bound(entries)
        case .fallback(.notFound(let endpoint)):
            let all = named(entries)
            try Parameters(ofNotFound: resolution.action.text, .map(all)).lend { (entries) throws(PluginError) in
                _ = try endpoint.bound(entries)
            }
            return all
        case .closure: return URLArguments.ofClosure(resolution, named(entries), asksForObject: asksForObject)
        case .fallback(.program): return named(entries)
        }
    }
}

extension Calls {
    /// Checks the parameters of a call by URL, as ``parameters(_:of:_:asksForObject:)`` does.
    ///
    /// - Throws: The errors of ``Endpoint/bind(_:to:)``.
    func check(
        _ entries: UnsafeBufferPointer<plugin_entry>, of resolution: URLResolution, _ destination: URLHandler
    ) throws(PluginError) {
        switch destination {
        case .action(let endpoint): try endpoint.checkBinding(of: entries)
        case .fallback(.notFound): _ = try parameters(entries, of: resolution, destination)
        case .closure, .fallback(.program): break
        }
    }
}

extension Endpoint {
    /// - Throws: The errors of ``bind(_:to:)``.
    fileprivate func checkBinding(of entries: UnsafeBufferPointer<plugin_entry>) throws(PluginError) {
        try withUnsafeTemporaryAllocation(of: plugin_value.self, capacity: argumentCount(for: entries)) {
            (arguments) throws(PluginError) in try bind(entries, to: arguments)?.deallocate()
        }
    }

    /// Returns the parameters as the action would get them, without those that have no value.
    ///
    /// - Throws: The errors of ``bind(_:to:)``.
    fileprivate func bound(_ entries: UnsafeBufferPointer<plugin_entry>) throws(PluginError) -> [String: Value] {
        try withUnsafeTemporaryAllocation(of: plugin_value.self, capacity: argumentCount(for: entries)) {
            (arguments) throws(PluginError) in
            let memory = try bind(entries, to: arguments)
            defer { memory?.deallocate() }
            let host = generation.calls.program.hostTable!
            var values: [String: Value] = [:]
            if hasRest, let rest = arguments.last { values = Value(copying: rest, host: host).map ?? [:] }
            for (parameter, argument) in zip(parameters, arguments) where argument.kind != PLUGIN_KIND_NULL {
                values[parameter.name] = Value(copying: argument, host: host)
            }
            return values
        }
    }
}
