/// The implementation of a service.
public struct ServiceInfo: Sendable, Hashable {
    /// The name by which callers request the service.
    public let name: String
    /// The version of the implementation.
    public let version: String
    /// The module that offers the service.
    public let module: String
    /// The target with which that module implements the service.
    public let target: String
    /// The priority: of equal versions, the one with the highest priority serves.
    public let priority: Int
    /// Whether all callers share one instance.
    public let isSingleton: Bool
    /// One sentence for people; may be empty.
    public let summary: String
    /// The service file that declares the service; `nil` if the module's manifest or the program does.
    public let file: String?
}

extension ServiceInfo {
    /// Reads the map in which the host describes an implementation.
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

/// A handle of a service, through which its actions are called.
///
/// If the service is not a singleton and its target has instances, each handle has an instance of its own, which lives
/// until the last copy of the handle is gone, and keeps the generation of its module alive. Otherwise the handle looks
/// the service up for each call, and so finds newer versions, too.
public struct ServiceHandle: @unchecked Sendable {
    // `@unchecked Sendable`, because the map that the handle points to never changes.

    private let name: String
    private let smallest: String?
    private let context: HostContext
    private let told: Told

    fileprivate enum Told {
        /// The host's map, which lives as long as the process. It is read only when `info` is used.
        case map(UnsafePointer<plugin_entry>, count: UInt32)
        case own(OwnInstance)
    }

    /// An instance that belongs to the handle.
    fileprivate final class OwnInstance {
        let object: Object
        let info: ServiceInfo

        init(_ object: Object, _ info: ServiceInfo) { (self.object, self.info) = (object, info) }
    }

    fileprivate init(_ told: Told, _ name: String, from smallest: String?, in context: HostContext) {
        (self.told, self.name, self.smallest, self.context) = (told, name, smallest, context)
    }

    /// The implementation of the service at the time of the request.
    public var info: ServiceInfo {
        switch told {
        case .map(let entries, let count):
            ServiceInfo(Value(copying: plugin_value_map(entries, count), host: context.host))
        case .own(let own): own.info
        }
    }

    /// The name of the module that implemented the service at the time of the request.
    public var module: String { info.module }

    /// The version that served at the time of the request.
    public var version: String { info.version }

    /// Calls a synchronous action of the service and returns its result.
    ///
    /// - Parameters:
    ///   - action: The name of an action of the service: one that its interface declares or, if it has no interface,
    ///     any of its target. Another name causes the error ``PluginError/Code/unknownAction``, even if the target has
    ///     a fallback.
    ///   - parameters: By name or by position.
    ///   - context: The context of the parent call. Default: the call of the action that runs on this thread, if any.
    ///   - timeout: The time that the call may take. Default: none.
    /// - Throws: The errors of ``HostContext/perform(_:_:_:timeout:)``; ``PluginError/Code/unknownService`` if the
    ///   service no longer exists.
    @discardableResult
    public func perform(
        _ action: String, _ parameters: Parameters = [:], in context: HostContext? = nil, timeout: Duration? = nil
    ) throws(PluginError) -> Value {
        try (context ?? self.context).perform(address(action), parameters, timeout: timeout)
    }

    /// Calls an action of the service, synchronous or asynchronous, without blocking a thread.
    ///
    /// - Throws: The errors of ``HostContext/call(_:_:_:timeout:)``; ``PluginError/Code/unknownService`` if the service
    ///   no longer exists.
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

/// A service as a type that the caller defines, with a function for each action that the caller uses.
///
///     struct HomeClient: ServiceClient {
///         static let serviceName = "HomeService"
///         static let minimumVersion: String? = "1.2.0"
///         let service: ServiceHandle
///         init(_ service: ServiceHandle) { self.service = service }
///
///         func title(of key: String) throws -> String {
///             try service.perform("title", ["key": key]).get(String.self)
///         }
///     }
///
///     let title = try context.service(HomeClient.self).title(of: "42")
public protocol ServiceClient {
    /// The name of the service.
    static var serviceName: String { get }
    /// The lowest acceptable version; `nil`, which is the default, for any.
    static var minimumVersion: String? { get }
    /// Makes a client from a service handle.
    init(_ service: ServiceHandle)
}

extension ServiceClient {
    public static var minimumVersion: String? { nil }
}

extension HostContext {
    /// Returns a service: the highest version that a module offers, and of equal versions the one with the highest
    /// priority.
    ///
    /// - Parameters:
    ///   - name: The name of the service.
    ///   - version: The lowest acceptable version. Default: any.
    /// - Throws: ``PluginError/Code/unknownService``, with the available versions in its message; the error of the
    ///   target if it cannot make the instance.
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

    /// Returns a service as a type that the caller defines.
    ///
    /// - Throws: The errors of ``service(_:from:)``.
    public func service<Client: ServiceClient>(_ type: Client.Type) throws(PluginError) -> Client {
        Client(try service(Client.serviceName, from: Client.minimumVersion))
    }

    /// Returns the implementation of a service, without making an instance.
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
    ///   - version: The lowest acceptable version. Default: any.
    ///   - timeout: How long to wait.
    /// - Returns: The implementation of the service. Use ``service(_:from:)`` to get the service itself.
    /// - Throws: ``PluginError/Code/deadlineExceeded`` if the timeout passes; ``PluginError/Code/hostStopped`` if the
    ///   host is shut down in the meantime; ``PluginError/Code/cancelled`` if this task is cancelled.
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
            let wanted = version.map { ", version \($0) or higher" } ?? ""
            throw PluginError(
                .deadlineExceeded,
                "Within \(timeout), no module offered the service “\(name.shortened)”\(wanted).")
        }
    }

    private var services: UnsafePointer<plugin_services> {
        get throws(PluginError) {
            guard let services = plugin_services_of(host) else {
                throw .missingExtension(PLUGIN_SERVICES_EXTENSION, .unknownService)
            }
            return services
        }
    }
}

/// The outcome of a request for a service, on the requester's stack.
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
                    "The host did not answer the request for the service “\(name.shortened)”.")
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
