/// Subscriptions to events: actions that are named like the events.
///
///     Subscribe {
///         Action("shop.sold", .context(), .optional("item", String.self)) { context, item in
///             context.log(.info, "sold \(item ?? "something")")
///         }
///     }
///
/// A subscriber gets only the parameters of the event that it declares. A module can subscribe to an event only once. A
/// sticky event that was posted before the module started is delivered after its `didStart`.
public struct Subscribe: ManifestPart {
    let actions: [ActionDeclaration]

    /// Subscribes to events.
    ///
    /// - Parameter actions: One action for each event. Their results are ignored; their errors are logged and reported
    ///   to the poster.
    public init(@ActionBuilder<Never> actions: () -> [ActionDeclaration]) { self.actions = actions() }

    public func add(to module: ModuleDescription) {
        module.events += module.add(actions, prefix: "!", showsResults: false)
    }
}
