/// Subscriptions to events: actions that are named like the events that they wait for.
///
///     Subscribe {
///         Action("shop.sold", .context(), .optional("item", String.self)) { context, item in
///             context.log(.info, "sold \(item ?? "something")")
///         }
///     }
///
/// What an event carries and a subscriber does not declare is left out for it. A module subscribes to an event once.
/// Who subscribes to a sticky event that was posted before gets it after its `didStart`.
public struct Subscribe: ManifestPart {
    let actions: [ActionDeclaration]

    /// Subscribes to events.
    ///
    /// - Parameter actions: One for each event. What they return is dropped; what they throw is logged, and the poster
    ///   is told.
    public init(@ActionBuilder<Never> actions: () -> [ActionDeclaration]) { self.actions = actions() }

    public func add(to module: ModuleDescription) {
        module.events += module.add(actions, prefix: "!", showsResults: false)
    }
}
