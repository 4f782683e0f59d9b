/// The interface for making calls: a ``HostContext`` in a module, a `PluginHost` in a program.
///
/// Code written against it works on both sides, in particular generated façades (`pluginhost facade`). For details, see
/// the functions of the same names in these types.
public protocol Caller: Sendable {
    /// Calls a synchronous action and returns its result.
    @discardableResult
    func perform(
        _ target: String, _ action: String, _ parameters: Parameters, timeout: Duration?
    ) throws(PluginError) -> Value

    /// Calls an action, synchronous or asynchronous, without blocking a thread.
    @discardableResult
    func call(
        _ target: String, _ action: String, _ parameters: Parameters, timeout: Duration?
    ) async throws(PluginError) -> Value

    /// Opens a URL that addresses a synchronous action.
    @discardableResult
    func open(
        _ url: String, _ parameters: Parameters, origin: CallOrigin, timeout: Duration?
    ) throws(PluginError) -> Value

    /// Opens a URL that addresses an action, synchronous or asynchronous.
    @discardableResult
    func open(
        _ url: String, _ parameters: Parameters, origin: CallOrigin, timeout: Duration?
    ) async throws(PluginError) -> Value

    /// Builds the URL of a route, given by its name or its pattern.
    func url(for route: String, _ parameters: [String: Value]) throws(PluginError) -> String

    /// Returns a service of at least the given version.
    func service(_ name: String, from version: String?) throws(PluginError) -> ServiceHandle
}

extension HostContext: Caller {}

extension Caller {
    /// Returns a service as a type of the caller's. See ``HostContext/service(_:)``.
    public func service<Client: ServiceClient>(_ type: Client.Type) throws(PluginError) -> Client {
        Client(try service(Client.serviceName, from: Client.minimumVersion))
    }
}

extension Value {
    /// Converts the result of an action to the type that the manifest declares.
    ///
    /// - Parameters:
    ///   - action: The action that returned the value, for the error message.
    ///   - type: The type; usually inferred.
    /// - Throws: ``PluginError/Code/invalidResult`` if the value is of another type.
    public func result<T: ValueConvertible>(of action: String, as type: T.Type = T.self) throws(PluginError) -> T {
        do throws(PluginError) { return try T(self) } catch {
            throw PluginError(.invalidResult, "\(action) returned a result of another type. \(error.message)")
        }
    }
}
