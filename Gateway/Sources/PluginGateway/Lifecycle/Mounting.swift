import HTTPTypes
public import Hummingbird

extension PluginGateway {
    /// Mounts the gateway in a router, under ``GatewayConfiguration/prefix``. The router's own, more specific routes have
    /// precedence. Middleware that has been added to the router before covers the gateway.
    ///
    ///     let gateway = PluginGateway(host)
    ///     gateway.mount(in: router)
    ///
    /// Without a prefix, the path `/` is left to the program, and so is the page:
    ///
    ///     router.get("/") { request, context in
    ///         await gateway.respond(to: request, connection: Connection(context.channel))
    ///     }
    ///
    /// - Parameter router: The router, or a group of routes without a path. With a context that is a
    ///   ``ConnectionContext``, such as ``GatewayContext``, clients that leave cancel their calls.
    public func mount<Context: RequestContext>(in router: some RouterMethods<Context>) {
        let responder = GatewayResponder<Context>(self) { context in
            (context as? any ConnectionContext).map { Connection($0.channel) }
        }
        for method in Self.methods {
            router.on(RouterPath("\(configuration.prefix)/**"), method: method, responder: responder)
            // The pattern does not match the prefix alone. A second route for `/` would end the program.
            if !configuration.prefix.isEmpty {
                router.on(RouterPath(configuration.prefix), method: method, responder: responder)
            }
        }
    }

    /// The responder for an application that serves nothing but the gateway.
    ///
    ///     Application(responder: gateway.responder)
    public var responder: GatewayResponder<GatewayContext> { GatewayResponder(self) { Connection($0.channel) } }

    private static var methods: [HTTPRequest.Method] {
        [.get, .head, .post, .put, .patch, .delete, .options, .trace, .connect]
    }
}

/// Answers requests with a gateway.
public struct GatewayResponder<Context: RequestContext>: HTTPResponder {
    private let gateway: PluginGateway
    /// Returns the connection of a request, if its context knows it.
    private let connection: @Sendable (Context) -> Connection?

    init(_ gateway: PluginGateway, _ connection: @escaping @Sendable (Context) -> Connection?) {
        (self.gateway, self.connection) = (gateway, connection)
    }

    public func respond(to request: Request, context: Context) async throws -> Response {
        await gateway.respond(to: request, connection: connection(context))
    }
}
