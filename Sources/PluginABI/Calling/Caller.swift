/// What calls are made through: a ``HostContext`` in a module, a `PluginHost` in a program.
///
/// Code that is written against it works on both sides, generated façades above all (`pluginhost facade`). It asks for
/// nothing that the two do not have anyway; see their functions of the same names.
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

    /// Opens a URL that addresses an action of either kind.
    @discardableResult
    func open(
        _ url: String, _ parameters: Parameters, origin: CallOrigin, timeout: Duration?
    ) async throws(PluginError) -> Value

    /// Builds the URL of a route, given by its name or its pattern.
    func url(for route: String, _ parameters: [String: Value]) throws(PluginError) -> String

    /// Asks for a service, from a version on.
    func service(_ name: String, from version: String?) throws(PluginError) -> ServiceHandle
}

extension HostContext: Caller {}

extension Caller {
    /// Asks for a service as a type of the caller's. See ``HostContext/service(_:)``.
    public func service<Client: ServiceClient>(_ type: Client.Type) throws(PluginError) -> Client {
        Client(try service(Client.serviceName, from: Client.minimumVersion))
    }
}

extension Value {
    /// The result of an action as the type that its manifest declares.
    ///
    /// - Parameters:
    ///   - action: What gave it, for the message.
    ///   - type: The type; mostly understood from where the result goes.
    /// - Throws: ``PluginError/Code/invalidResult`` for a value of another type.
    public func result<T: ValueConvertible>(of action: String, as type: T.Type = T.self) throws(PluginError) -> T {
        do throws(PluginError) { return try T(self) } catch {
            throw PluginError(.invalidResult, "\(action) gave a result of another type. \(error.message)")
        }
    }

    /// The result of an action that declares an object. See ``result(of:as:)``.
    public func result(of action: String) throws(PluginError) -> Object {
        guard let object else {
            throw PluginError(.invalidResult, "\(action) gave a value of type \(kind), not an object.")
        }
        return object
    }
}
