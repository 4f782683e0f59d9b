/// What implements a service.
public struct ServiceInfo: Sendable, Hashable {
    /// The name that callers ask for.
    public let name: String
    /// The version that serves.
    public let version: String
    /// The module that offers it.
    public let module: String
    /// The target of that module that implements it.
    public let target: String
    /// Decides between equal versions; the higher one serves.
    public let priority: Int
    /// Whether all callers share one instance.
    public let isSingleton: Bool
    /// One sentence for people; may be empty.
    public let summary: String
    /// The service file that declares it; nil where the module's own manifest does.
    public let file: String?
}

extension ServiceInfo {
    /// As the host tells it.
    package init(_ told: Value) {
        name = told["name"]?.string ?? ""
        version = told["version"]?.string ?? ""
        module = told["module"]?.string ?? ""
        target = told["target"]?.string ?? ""
        priority = told["priority"]?.int ?? 0
        isSingleton = told["singleton"]?.bool ?? false
        summary = told["summary"]?.string ?? ""
        file = told["file"]?.string
    }
}

/// A service that was asked for: what its actions are called through.
///
/// A service that is no singleton gives each handle an instance of its own, which lives until the last copy of the
/// handle is gone, and keeps the generation of its module alive. A handle of any other finds the service anew for each
/// call: also a newer version that came meanwhile.
public struct ServiceHandle: @unchecked Sendable {
    // The map that it points to never changes, hence @unchecked Sendable.

    private let name: String
    private let smallest: String?
    private let context: HostContext
    private let told: Told

    fileprivate enum Told {
        /// The host's map, which lives as long as the process: read when somebody wants to know.
        case map(UnsafePointer<plugin_entry>, count: UInt32)
        case own(OwnInstance)
    }

    /// An instance of the handle's own.
    fileprivate final class OwnInstance {
        let object: Object
        let info: ServiceInfo

        init(_ object: Object, _ info: ServiceInfo) { (self.object, self.info) = (object, info) }
    }

    fileprivate init(_ told: Told, _ name: String, from smallest: String?, in context: HostContext) {
        (self.told, self.name, self.smallest, self.context) = (told, name, smallest, context)
    }

    /// What implemented the service when it was asked for.
    public var info: ServiceInfo {
        switch told {
        case .map(let entries, let count):
            ServiceInfo(Value(copying: plugin_value_map(entries, count), host: context.host))
        case .own(let own): own.info
        }
    }

    /// The name of the module that implemented the service when it was asked for.
    public var module: String { info.module }

    /// The version that served when the service was asked for.
    public var version: String { info.version }

    /// Calls a synchronous action of the service and returns its result.
    ///
    /// - Parameters:
    ///   - action: The name of an action of the service's target.
    ///   - parameters: By name or by position.
    ///   - context: The call that this one is made for. A synchronous call that is made while an action runs on this
    ///     thread belongs to it anyway.
    ///   - timeout: The time that the call may take. Default: none.
    /// - Throws: As ``HostContext/perform(_:_:_:timeout:)``; ``PluginError/Code/unknownService`` when it is gone.
    @discardableResult
    public func perform(
        _ action: String, _ parameters: Parameters = [:], in context: HostContext? = nil, timeout: Duration? = nil
    ) throws(PluginError) -> Value {
        try (context ?? self.context).perform(address(action), parameters, timeout: timeout)
    }

    /// Calls an action of the service, synchronous or asynchronous, without blocking a thread.
    ///
    /// - Throws: As ``HostContext/call(_:_:_:timeout:)``; ``PluginError/Code/unknownService`` when it is gone.
    @discardableResult
    public func call(
        _ action: String, _ parameters: Parameters = [:], in context: HostContext? = nil, timeout: Duration? = nil
    ) async throws(PluginError) -> Value {
        try await (context ?? self.context).call(address(action), parameters, timeout: timeout)
    }

    private func address(_ action: String) -> Address {
        if case .own(let own) = told { return .object(own.object, action) }
        return .service(name, smallest, action)
    }
}

/// A service as a type that the caller owns: a function for each action that it uses.
///
///     struct HomeClient: ServiceClient {
///         static let serviceName = "HomeService"
///         static let minimumVersion: String? = "1.2.0"
///         let service: ServiceHandle
///         init(_ service: ServiceHandle) { self.service = service }
///
///         func title(of key: String) throws -> String {
///             try service.perform("title", ["key": .string(key)]).get(String.self)
///         }
///     }
///
///     let title = try context.service(HomeClient.self).title(of: "42")
public protocol ServiceClient {
    /// The name of the service.
    static var serviceName: String { get }
    /// The smallest version that will do; nil for any, which is the default.
    static var minimumVersion: String? { get }
    /// Takes the service.
    init(_ service: ServiceHandle)
}

extension ServiceClient {
    public static var minimumVersion: String? { nil }
}

extension HostContext {
    /// Asks for a service: the highest version that a module offers, and of equal ones the highest priority.
    ///
    /// - Parameters:
    ///   - name: The name of the service.
    ///   - version: The smallest version that will do. Default: any.
    /// - Throws: ``PluginError/Code/unknownService``, with the versions that there are; what making the instance throws.
    public func service(_ name: String, from version: String? = nil) throws(PluginError) -> ServiceHandle {
        let services = try services
        var answer = ServiceAnswer(host: host)
        name.withPluginString { name in
            (version ?? "").withPluginString { version in
                withUnsafeMutablePointer(to: &answer) {
                    services.pointee.request(host, call, name, version, ServiceAnswer.completion, $0)
                }
            }
        }
        return ServiceHandle(try answer.told(of: name), name, from: version, in: HostContext(host: host))
    }

    /// Asks for a service as a type of the caller's.
    ///
    /// - Throws: As ``service(_:from:)``.
    public func service<Client: ServiceClient>(_ type: Client.Type) throws(PluginError) -> Client {
        Client(try service(Client.serviceName, from: Client.minimumVersion))
    }

    /// What implements a service. No instance is made.
    ///
    /// - Throws: ``PluginError/Code/unknownService``.
    public func serviceInfo(_ name: String, from version: String? = nil) throws(PluginError) -> ServiceInfo {
        let services = try services
        return ServiceInfo(
            try receive { completion, data in
                name.withPluginString { name in
                    (version ?? "").withPluginString { version in
                        services.pointee.info(host, name, version, completion, data)
                    }
                }
            })
    }

    /// Waits until a module offers a service.
    ///
    /// - Parameters:
    ///   - name: The name of the service.
    ///   - version: The smallest version that will do. Default: any.
    ///   - timeout: How long.
    /// - Returns: What implements it. Ask for it with ``service(_:from:)``.
    /// - Throws: ``PluginError/Code/deadlineExceeded``; ``PluginError/Code/hostStopped`` when the host ends meanwhile;
    ///   ``PluginError/Code/cancelled`` when this task is cancelled.
    @discardableResult
    public func waitForService(
        _ name: String, from version: String? = nil, timeout: Duration
    ) async throws(PluginError) -> ServiceInfo {
        let services = try services
        do throws(PluginError) {
            let told = try await call { (completion, data) in
                name.withPluginString { name in
                    (version ?? "").withPluginString { version in
                        services.pointee.wait(
                            host, call, name, version, max(1, timeout.nanoseconds), completion, data)
                    }
                }
            }
            return ServiceInfo(told)
        } catch  where error.code == .deadlineExceeded {
            let wanted = version.map { " from version \($0) on" } ?? ""
            throw PluginError(
                .deadlineExceeded,
                "No module has come within \(timeout) that offers the service “\(name.shortened)”\(wanted).")
        }
    }

    private var services: UnsafePointer<plugin_services> {
        get throws(PluginError) {
            guard let services = host.table(HostExtension.services, as: plugin_services.self) else {
                throw PluginError(.unknownService, "This host lacks the extension \(PLUGIN_SERVICES_EXTENSION).")
            }
            return services
        }
    }
}

/// Takes the answer to the question for a service, on the asker's stack.
private struct ServiceAnswer {
    let host: UnsafePointer<plugin_host>
    private var told: ServiceHandle.Told?
    private var failure: PluginError?

    init(host: UnsafePointer<plugin_host>) { self.host = host }

    static let completion: plugin_completion = { data, value, error in
        let answer = data!.assumingMemoryBound(to: ServiceAnswer.self)
        if let error {
            answer.pointee.failure = PluginError(error.pointee)
        } else if let value {
            answer.pointee.told = ServiceHandle.Told(value.pointee, host: answer.pointee.host)
        }
    }

    func told(of name: String) throws(PluginError) -> ServiceHandle.Told {
        guard let told else {
            throw failure
                ?? PluginError(
                    .unknownService,
                    "The host did not say whether there is a service “\(name.shortened)”.")
        }
        return told
    }
}

extension ServiceHandle.Told {
    fileprivate init(_ told: plugin_value, host: UnsafePointer<plugin_host>) {
        let entries = UnsafeBufferPointer(start: told.as.map, count: Int(told.count))
        if let object = entries.last, object.value.kind == PLUGIN_KIND_OBJECT {
            self = .own(
                ServiceHandle.OwnInstance(
                    Object(retaining: object.value.as.object, host: host), ServiceInfo(Value(copying: told, host: host))
                ))
        } else {
            self = .map(told.as.map, count: told.count)
        }
    }
}
